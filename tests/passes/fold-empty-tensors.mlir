// RUN: tandem-opt %s -split-input-file -tandem-fold-empty-tensors | FileCheck %s

// What has no elements is a constant, and so is a sum of none; a sum of some is
// left.
// CHECK-LABEL: func.func @evaluate
// CHECK-DAG: tandem.constant dense<> : tensor<0x2xf32>
// CHECK-DAG: tandem.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK-NOT: tandem.exp
// CHECK: tandem.reduce_sum %arg1
// CHECK: return
func.func @evaluate(%x: tensor<0x2xf32> {tandem.role = #tandem.role<input "x">}, %z: tensor<3x2xf32> {tandem.role = #tandem.role<input "z">})
    -> (tensor<0x2xf32> {tandem.role = #tandem.role<output "e">}, tensor<2xf32> {tandem.role = #tandem.role<output "s">}, tensor<2xf32> {tandem.role = #tandem.role<output "t">}) {
  %e = tandem.exp %x : tensor<0x2xf32>
  %s = tandem.reduce_sum %e over [0] : tensor<0x2xf32> -> tensor<2xf32>
  %t = tandem.reduce_sum %z over [0] : tensor<3x2xf32> -> tensor<2xf32>
  return %e, %s, %t : tensor<0x2xf32>, tensor<2xf32>, tensor<2xf32>
}
