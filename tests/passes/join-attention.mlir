// RUN: tandem-opt %s -tandem-form-kernels -tandem-join-attention | FileCheck %s

// The gradients of attention for queries and for keys are one kernel. More of
// it: plan/join-attention.mlir.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[G:.*]]:3 = tandem.kernel "attention_grad"
// CHECK: %[[DK:.*]], %[[DV:.*]] = tandem.attention_key_grad
// CHECK: %[[DQ:.*]] = tandem.attention_query_grad
// CHECK: tandem.yield %[[DK]], %[[DV]], %[[DQ]]
// CHECK-NOT: tandem.kernel
// CHECK: return %[[G]]#2, %[[G]]#0, %[[G]]#1
module attributes {tandem.target = #tandem.target<cpu {arch = "x86-64"}>} {
  func.func @evaluate(%q: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "q">}, %k: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "k">}, %v: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "v">}, %dy: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "dy">}, %lse: tensor<16x8xf32> {tandem.role = #tandem.role<input "lse">}, %delta: tensor<16x8xf32> {tandem.role = #tandem.role<input "delta">})
      -> (tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dq">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dk">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dv">}) {
    %0 = tandem.attention_query_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8x4xf32>
    %1:2 = tandem.attention_key_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    return %0, %1#0, %1#1 : tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>
  }
}
