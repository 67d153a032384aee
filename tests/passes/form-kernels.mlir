// RUN: tandem-opt %s -split-input-file -tandem-form-kernels | FileCheck %s

// Pointwise ops behind a product are its kernel's.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "matmul_relu"(%arg0)
// CHECK: tandem.matmul
// CHECK: tandem.relu
// CHECK-NOT: tandem.kernel
// CHECK: return
func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
  %p = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %y = tandem.relu %p : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
