// Attention reads its operands where they are: heads are not taken out of rows
// first, in the forward and in the backward.
//
// RUN: tandem-opt %s --tandem-build-joint=loss=loss --tandem-optimize-joint --tandem-partition-joint --tandem-plan-programs | FileCheck %s
//
// CHECK-LABEL: func.func @forward
// CHECK: tandem.kernel "matmul
// CHECK: tandem.kernel "attention_forward"
// CHECK-SAME: (%{{[^,]*}})
// CHECK: tandem.permute
// CHECK: tandem.slice
// CHECK: tandem.attention_forward
// CHECK-LABEL: func.func @backward
// CHECK: tandem.kernel "attention_query_grad"
// CHECK: tandem.slice
// CHECK: tandem.attention_query_grad
// CHECK: tandem.kernel "attention_key_grad"
// CHECK: tandem.slice
// CHECK: tandem.attention_key_grad
//
// What the views are of is made before, though it is cheap to make again.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "matmul_neg"
// CHECK: tandem.kernel "attention_forward"(%{{[^,]*}}) {
module attributes {tandem.phase = "functionalize", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(
      %x: tensor<32x48xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<48x96xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %o: tensor<32x16xf32> {tandem.role = #tandem.role<param "o" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.matmul %x, %w : tensor<32x48xf32>, tensor<48x96xf32> -> tensor<32x96xf32>
    %n = tandem.neg %a : tensor<32x96xf32>
    %r = tandem.reshape %n to [2, 16, 3, 2, 16] : tensor<32x96xf32> -> tensor<2x16x3x2x16xf32>
    %p = tandem.permute %r by [2, 0, 3, 1, 4] : tensor<2x16x3x2x16xf32> -> tensor<3x2x2x16x16xf32>
    %q1 = tandem.slice %p from [0, 0, 0, 0, 0] to [1, 2, 2, 16, 16] step [1, 1, 1, 1, 1] : tensor<3x2x2x16x16xf32> -> tensor<1x2x2x16x16xf32>
    %k1 = tandem.slice %p from [1, 0, 0, 0, 0] to [2, 2, 2, 16, 16] step [1, 1, 1, 1, 1] : tensor<3x2x2x16x16xf32> -> tensor<1x2x2x16x16xf32>
    %v1 = tandem.slice %p from [2, 0, 0, 0, 0] to [3, 2, 2, 16, 16] step [1, 1, 1, 1, 1] : tensor<3x2x2x16x16xf32> -> tensor<1x2x2x16x16xf32>
    %q = tandem.reshape %q1 to [2, 2, 16, 16] : tensor<1x2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    %k = tandem.reshape %k1 to [2, 2, 16, 16] : tensor<1x2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    %v = tandem.reshape %v1 to [2, 2, 16, 16] : tensor<1x2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    %y = tandem.attention %q, %k, %v {causal} : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    %z = tandem.permute %y by [0, 2, 1, 3] : tensor<2x2x16x16xf32> -> tensor<2x16x2x16xf32>
    %u = tandem.reshape %z to [32, 32] : tensor<2x16x2x16xf32> -> tensor<32x32xf32>
    %m = tandem.matmul %u, %o : tensor<32x32xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
    %s = tandem.mul %m, %m : tensor<32x16xf32>
    %loss = tandem.reduce_sum %s over [0, 1] : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
