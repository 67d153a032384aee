// RUN: tandem-opt %s -split-input-file -tandem-split-reductions | FileCheck %s

// A sum of very many elements into one: rows first, then their sums. Over a
// dimension of size 1 there is nothing to add.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[R:.*]] = tandem.reduce_sum %arg0 over [1] : tensor<512x512xf32> -> tensor<512xf32>
// CHECK: tandem.reduce_sum %[[R]] over [0] : tensor<512xf32> -> tensor<f32>
// CHECK: tandem.reshape %arg1 to [4]
// CHECK: return
func.func @evaluate(%x: tensor<512x512xf32> {tandem.role = #tandem.role<input "x">}, %z: tensor<4x1xf32> {tandem.role = #tandem.role<input "z">})
    -> (tensor<f32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<output "s">}) {
  %y = tandem.reduce_sum %x over [0, 1] : tensor<512x512xf32> -> tensor<f32>
  %s = tandem.reduce_sum %z over [1] : tensor<4x1xf32> -> tensor<4xf32>
  return %y, %s : tensor<f32>, tensor<4xf32>
}
