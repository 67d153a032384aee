// RUN: tandem-opt %s -split-input-file -tandem-form-kernels -tandem-plan-memory | FileCheck %s

// What is between two kernels lies in the arena, and what is returned where the
// caller says.
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: tandem.plan = #tandem.plan<arena_bytes = 64
// CHECK: buffers = [#tandem.buffer<arena 0>]
// CHECK: buffers = [#tandem.buffer<result 0>]
func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
  %p = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %y = tandem.matmul %p, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
