// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// The gradients of attention for queries and for keys are one kernel.
// CHECK-LABEL: module @joined
// CHECK: %[[G:.*]]:3 = tandem.kernel "attention_grad"
// CHECK: %[[DK:.*]], %[[DV:.*]] = tandem.attention_key_grad
// CHECK: %[[DQ:.*]] = tandem.attention_query_grad
// CHECK: tandem.yield %[[DK]], %[[DV]], %[[DQ]]
// CHECK: return %[[G]]#2, %[[G]]#0, %[[G]]#1
module @joined attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64"}>} {
  func.func @evaluate(%q: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "q">}, %k: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "k">}, %v: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "v">}, %dy: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "dy">}, %lse: tensor<16x8xf32> {tandem.role = #tandem.role<input "lse">}, %delta: tensor<16x8xf32> {tandem.role = #tandem.role<input "delta">})
      -> (tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dq">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dk">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dv">}) {
    %0 = tandem.attention_query_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8x4xf32>
    %1:2 = tandem.attention_key_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    return %0, %1#0, %1#1 : tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>
  }
}

// -----

// Its items are heads, of which there have to be enough.
// CHECK-LABEL: module @few_heads
// CHECK: tandem.kernel "attention_query_grad"
// CHECK: tandem.kernel "attention_key_grad"
module @few_heads attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64"}>} {
  func.func @evaluate(%q: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "q">}, %k: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "k">}, %v: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "v">}, %dy: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "dy">}, %lse: tensor<2x8xf32> {tandem.role = #tandem.role<input "lse">}, %delta: tensor<2x8xf32> {tandem.role = #tandem.role<input "delta">})
      -> (tensor<2x8x4xf32> {tandem.role = #tandem.role<output "dq">}, tensor<2x8x4xf32> {tandem.role = #tandem.role<output "dk">}, tensor<2x8x4xf32> {tandem.role = #tandem.role<output "dv">}) {
    %0 = tandem.attention_query_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
    %1:2 = tandem.attention_key_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>)
    return %0, %1#0, %1#1 : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
}

// -----

// CUDA has a kernel of each.
// CHECK-LABEL: module @cuda
// CHECK: tandem.kernel "attention_query_grad"
// CHECK: tandem.kernel "attention_key_grad"
module @cuda attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%q: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "q">}, %k: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "k">}, %v: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "v">}, %dy: tensor<16x8x4xf32> {tandem.role = #tandem.role<input "dy">}, %lse: tensor<16x8xf32> {tandem.role = #tandem.role<input "lse">}, %delta: tensor<16x8xf32> {tandem.role = #tandem.role<input "delta">})
      -> (tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dq">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dk">}, tensor<16x8x4xf32> {tandem.role = #tandem.role<output "dv">}) {
    %0 = tandem.attention_query_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8x4xf32>
    %1:2 = tandem.attention_key_grad %q, %k, %v, %dy, %lse, %delta {causal, scale = 0.5 : f64} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    return %0, %1#0, %1#1 : tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>
  }
}
