// RUN: tandem-opt %s -tandem-expand-grads | FileCheck %s

// A gradient inside of a program is the ops that compute it; ops of the program
// that it begins from are not made twice.
// CHECK-LABEL: func.func @graph
// CHECK: %[[S:.*]] = tandem.sin %arg0
// CHECK-NOT: tandem.grad
// CHECK: %[[C:.*]] = tandem.cos %arg0
// CHECK: return
func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
    -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
  %s = tandem.sin %x : tensor<4xf32>
  %l = tandem.reduce_sum %s over [0] : tensor<4xf32> -> tensor<f32>
  %g = tandem.grad %l wrt (%x) : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  return %g : tensor<4xf32>
}
