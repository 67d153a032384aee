// Attention is one op, which keeps no scores; unless it is differentiated twice.
//
// RUN: sed s/KIND/cuda/ %s | tandem-opt --tandem-build-joint=loss=y | FileCheck %s --check-prefixes=FUSED
// RUN: sed s/KIND/cpu/ %s | tandem-opt --tandem-build-joint=loss=y | FileCheck %s --check-prefixes=FUSED
// RUN: sed s/KIND/cuda/ %s | tandem-opt "--tandem-build-joint=loss=y order=2" | FileCheck %s --check-prefixes=TWICE
// RUN: sed s/KIND/cpu/ %s | tandem-opt "--tandem-build-joint=loss=y order=2" | FileCheck %s --check-prefixes=TWICE
// RUN: sed s/KIND/cuda/ %s | tandem-opt --tandem-build-joint=loss=y --tandem-optimize-joint --tandem-partition-joint | FileCheck %s --check-prefixes=SAVED
// RUN: sed s/KIND/cpu/ %s | tandem-opt --tandem-build-joint=loss=y --tandem-optimize-joint --tandem-partition-joint | FileCheck %s --check-prefixes=SAVED
//
// FUSED-LABEL: func.func @joint
// FUSED: %[[Y:.*]], %[[LSE:.*]] = tandem.attention_forward %{{.*}} {causal, scale = 5.000000e-01 : f64, tandem.pass = "forward"}
// FUSED: %[[DELTA:.*]] = tandem.reduce_sum %{{.*}} over [2]
// FUSED: tandem.attention_query_grad %{{.*}}, %[[LSE]], %[[DELTA]] {causal, scale = 5.000000e-01 : f64, tandem.pass = "backward"}
// FUSED: tandem.attention_key_grad %{{.*}}, %[[LSE]], %[[DELTA]] {causal, scale = 5.000000e-01 : f64, tandem.pass = "backward"}
// FUSED-NOT: tensor<2x6x6x
// FUSED-LABEL: func.func @evaluate
// FUSED: tandem.attention_forward
//
// TWICE-NOT: attention_
// TWICE: func.func @evaluate
// TWICE: attention_forward
//
// What is saved: the result and a number of each row.
// SAVED-LABEL: func.func @forward
// SAVED-NOT: tensor<2x6x6x
// SAVED: #tandem.role<saved "attention_forward.{{[0-9]+}}"
// SAVED-NOT: tensor<2x6x6x
module attributes {tandem.phase = "functionalize", tandem.target = #tandem.target<KIND {arch = "sm_90"}>} {
  func.func @graph(
      %q: tensor<2x6x4xf32> {tandem.role = #tandem.role<input "q" {requires_grad}>},
      %k: tensor<2x6x4xf32> {tandem.role = #tandem.role<input "k" {requires_grad}>},
      %v: tensor<2x6x8xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.attention %q, %k, %v {causal} : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32> -> tensor<2x6x8xf32>
    %s = tandem.mul %a, %a : tensor<2x6x8xf32>
    %y = tandem.reduce_sum %s over [0, 1, 2] : tensor<2x6x8xf32> -> tensor<f32>
    return %y : tensor<f32>
  }
}
