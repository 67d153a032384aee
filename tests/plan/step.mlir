// RUN: tandem-opt %s -split-input-file -tandem-plan-programs | FileCheck %s
// What the backward makes again is not made in a kernel of the forward, though
// it has the same inputs there: its result would live as long as a saved one.

module attributes {tandem.phase = "partition"} {
  // CHECK: func.func @step
  // CHECK: tandem.kernel "matmul_relu"
  // CHECK: tandem.kernel "matmul"
  // CHECK: tandem.kernel "relu"
  // CHECK: tandem.kernel "matmul
  // CHECK-NOT: tandem.pass
  func.func @step(
      %x: tensor<8x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x8xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<8x8xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<8x8xf32> {tandem.role = #tandem.role<update of "v">}) {
    %m = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %r = tandem.relu %m {tandem.pass = "forward"} : tensor<8x8xf32>
    %n = tandem.matmul %r, %v {tandem.pass = "forward"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %again = tandem.relu %m {tandem.pass = "backward"} : tensor<8x8xf32>
    %g = tandem.matmul %again, %n {transpose_lhs, tandem.pass = "backward"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %new = tandem.sub %v, %g : tensor<8x8xf32>
    return %new : tensor<8x8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// So it is where both make it from what the forward makes for itself.
module attributes {tandem.phase = "partition"} {
  // CHECK: func.func @step
  // CHECK: tandem.kernel "fused_reduce_sum_mul_relu"
  // CHECK: tandem.kernel "matmul"
  // CHECK: tandem.kernel "fused_mul_relu"
  // CHECK: tandem.kernel "matmul
  func.func @step(
      %x: tensor<8x8xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<8x8xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<8x8xf32> {tandem.role = #tandem.role<update of "v">}) {
    %d = tandem.reduce_sum %x over [1] {tandem.pass = "forward"} : tensor<8x8xf32> -> tensor<8xf32>
    %b = tandem.broadcast %d to [8, 8] along [0] {tandem.pass = "forward"} : tensor<8xf32> -> tensor<8x8xf32>
    %m = tandem.mul %x, %b {tandem.pass = "forward"} : tensor<8x8xf32>
    %r = tandem.relu %m {tandem.pass = "forward"} : tensor<8x8xf32>
    %n = tandem.matmul %r, %v {tandem.pass = "forward"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %c = tandem.broadcast %d to [8, 8] along [0] {tandem.pass = "backward"} : tensor<8xf32> -> tensor<8x8xf32>
    %k = tandem.mul %x, %c {tandem.pass = "backward"} : tensor<8x8xf32>
    %again = tandem.relu %k {tandem.pass = "backward"} : tensor<8x8xf32>
    %g = tandem.matmul %again, %n {transpose_lhs, tandem.pass = "backward"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %new = tandem.sub %v, %g : tensor<8x8xf32>
    return %new : tensor<8x8xf32>
  }
  func.func @evaluate() { return }
}
