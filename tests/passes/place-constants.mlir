// RUN: tandem-opt %s -split-input-file -tandem-form-kernels -tandem-plan-memory -tandem-place-constants | FileCheck %s

// A constant of two programs has one place.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.constant {tandem.buffer = #tandem.buffer<constant 0>} dense
// CHECK-LABEL: func.func @forward
// CHECK: tandem.constant {tandem.buffer = #tandem.buffer<constant 0>} dense
module {
  func.func @evaluate(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">}) {
    %c = tandem.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %y = tandem.matmul %x, %c : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    return %y : tensor<2x2xf32>
  }
  func.func @forward(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">}) {
    %c = tandem.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %y = tandem.matmul %c, %x : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    return %y : tensor<2x2xf32>
  }
}
