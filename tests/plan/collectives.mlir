// RUN: tandem-opt %s -tandem-plan-programs | FileCheck %s

// A collective is a kernel of its own: nothing joins it, and its operand is in
// memory, also where it repeats one number. They stand in the order of their
// numbers, then of the program, whatever less memory would need.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "fused_add_exp"
// CHECK: tandem.kernel "all_reduce"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: tandem.all_reduce sum %{{.*}} over ["tensor"] {number = 0 : i64}
// CHECK-NEXT: tandem.yield
// CHECK: tandem.kernel "reduce_scatter"
// CHECK: tandem.kernel "barrier"()
// CHECK-NEXT: tandem.barrier over ["data"]
// CHECK-NEXT: tandem.yield
// CHECK: tandem.kernel "broadcast_from"
// CHECK: tandem.kernel "constant"
// CHECK: tandem.kernel "all_reduce"
// CHECK: return
module attributes {tandem.phase = "partition", tandem.mesh = #tandem.mesh<data = 2, tensor = 2>} {
  func.func @evaluate(%x: tensor<8x4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<8x4xf32> {tandem.role = #tandem.role<output "b">},
          tensor<8x4xf32> {tandem.role = #tandem.role<output "c">},
          tensor<f32> {tandem.role = #tandem.role<output "d">}) {
    %e = tandem.exp %x : tensor<8x4xf32>
    %s = tandem.reduce_scatter sum %e dim 0 over ["data"] : tensor<8x4xf32> -> tensor<4x4xf32>
    %t = tandem.tanh %s : tensor<4x4xf32>
    %y = tandem.add %x, %x : tensor<8x4xf32>
    %n = tandem.all_reduce sum %y over ["tensor"] {number = 0} : tensor<8x4xf32> -> tensor<8x4xf32>
    tandem.barrier over ["data"]
    %b = tandem.broadcast_from %x root 1 over ["data"] : tensor<8x4xf32> -> tensor<8x4xf32>
    %one = tandem.constant dense<1.0> : tensor<f32>
    %d = tandem.all_reduce sum %one over ["data"] : tensor<f32> -> tensor<f32>
    return %t, %n, %b, %d : tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
  }
}
