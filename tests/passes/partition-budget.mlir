// RUN: tandem-opt %s -tandem-partition-joint=memory-budget=1 | FileCheck %s --check-prefixes=CHECK,FAST
// RUN: tandem-opt %s -tandem-partition-joint=memory-budget=0 | FileCheck %s --check-prefixes=CHECK,LEAST
// RUN: tandem-opt %s -tandem-partition-joint=memory-budget=2GiB | FileCheck %s --check-prefixes=CHECK,FAST
// RUN: not tandem-opt %s -tandem-partition-joint=memory-budget=1000 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not tandem-opt %s -tandem-partition-joint=memory-budget=1.5 2>&1 | FileCheck %s --check-prefix=WRONG

// Six products in a row, each through a tangent. The fastest step keeps every
// tangent; with less memory some are made again, and with them the products
// that they come of. What there was to choose from stands in the module.
// CHECK: module @row
// CHECK-SAME: tandem.partition = {chain = [{flops = {{[^}]*}}, peak = [[#LEAST:]] : i64, saved = [[#]] : i64, seconds = {{[^}]*}}},
// CHECK-SAME: ], seconds = {{[^,]*}} : f64}
// CHECK-LABEL: func.func @forward
// FAST-COUNT-6: tandem.role<saved "tanh.
// FAST-NOT: tandem.role<saved
// LEAST: tandem.role<saved "tanh.
// LEAST-SAME: the memory budget has room for it
// CHECK: func.func @backward
// FAST-NOT: tandem.tanh
// LEAST: tandem.tanh
// SMALL: unsupported --memory-budget=1000: a step needs at least {{[0-9]+}} bytes ({{.*}} MiB), but the budget is 1000 bytes (1000 bytes)
// WRONG: expected --memory-budget to be a number from 0 to 1, or bytes such as 500MB or 6GiB, but got '1.5'
module @row attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<4096x64xf32> {tandem.role = #tandem.role<input "x">},
      %w0: tensor<64x64xf32> {tandem.role = #tandem.role<param "w0" {requires_grad}>},
      %w1: tensor<64x64xf32> {tandem.role = #tandem.role<param "w1" {requires_grad}>},
      %w2: tensor<64x64xf32> {tandem.role = #tandem.role<param "w2" {requires_grad}>},
      %w3: tensor<64x64xf32> {tandem.role = #tandem.role<param "w3" {requires_grad}>},
      %w4: tensor<64x64xf32> {tandem.role = #tandem.role<param "w4" {requires_grad}>},
      %w5: tensor<64x64xf32> {tandem.role = #tandem.role<param "w5" {requires_grad}>},
      %dy: tensor<4096x64xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4096x64xf32> {tandem.role = #tandem.role<output "y">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w0">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w1">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w2">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w3">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w4">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "w5">}) {
    %one = tandem.constant {tandem.pass = "backward"} dense<1.0> : tensor<4096x64xf32>
    %p0 = tandem.matmul %x, %w0 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t0 = tandem.tanh %p0 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %p1 = tandem.matmul %t0, %w1 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t1 = tandem.tanh %p1 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %p2 = tandem.matmul %t1, %w2 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t2 = tandem.tanh %p2 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %p3 = tandem.matmul %t2, %w3 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t3 = tandem.tanh %p3 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %p4 = tandem.matmul %t3, %w4 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t4 = tandem.tanh %p4 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %p5 = tandem.matmul %t4, %w5 {tandem.pass = "forward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %t5 = tandem.tanh %p5 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %y = tandem.neg %t5 {tandem.pass = "forward"} : tensor<4096x64xf32>
    %d6 = tandem.neg %dy {tandem.pass = "backward"} : tensor<4096x64xf32>
    %s5 = tandem.mul %t5, %t5 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o5 = tandem.sub %one, %s5 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e5 = tandem.mul %d6, %o5 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g5 = tandem.matmul %t4, %e5 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    %d5 = tandem.matmul %e5, %w5 {transpose_rhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %s4 = tandem.mul %t4, %t4 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o4 = tandem.sub %one, %s4 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e4 = tandem.mul %d5, %o4 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g4 = tandem.matmul %t3, %e4 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    %d4 = tandem.matmul %e4, %w4 {transpose_rhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %s3 = tandem.mul %t3, %t3 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o3 = tandem.sub %one, %s3 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e3 = tandem.mul %d4, %o3 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g3 = tandem.matmul %t2, %e3 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    %d3 = tandem.matmul %e3, %w3 {transpose_rhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %s2 = tandem.mul %t2, %t2 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o2 = tandem.sub %one, %s2 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e2 = tandem.mul %d3, %o2 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g2 = tandem.matmul %t1, %e2 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    %d2 = tandem.matmul %e2, %w2 {transpose_rhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %s1 = tandem.mul %t1, %t1 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o1 = tandem.sub %one, %s1 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e1 = tandem.mul %d2, %o1 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g1 = tandem.matmul %t0, %e1 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    %d1 = tandem.matmul %e1, %w1 {transpose_rhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
    %s0 = tandem.mul %t0, %t0 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %o0 = tandem.sub %one, %s0 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %e0 = tandem.mul %d1, %o0 {tandem.pass = "backward"} : tensor<4096x64xf32>
    %g0 = tandem.matmul %x, %e0 {transpose_lhs, tandem.pass = "backward"} : tensor<4096x64xf32>, tensor<4096x64xf32> -> tensor<64x64xf32>
    return %y, %g0, %g1, %g2, %g3, %g4, %g5 : tensor<4096x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
  func.func @evaluate() { return }
}
