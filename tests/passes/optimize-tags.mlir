// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-optimize-joint | FileCheck %s

// Tags keep no equal ops apart, and are on what is left of them.
// CHECK-LABEL: module @merge
module @merge attributes {tandem.phase = "joint"} {
  func.func @evaluate() { return }
  // The exponential of the backward is that of the forward, which keeps its tag.
  // CHECK: func.func @joint
  // CHECK-NEXT: %[[E:.*]] = tandem.exp %{{.*}} {tandem.checkpoint = "r", tandem.pass = "forward", tandem.recompute}
  // A sine with and without a tag is tagged; of two regions, of none.
  // CHECK-NEXT: %[[S:.*]] = tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward", tandem.save}
  // CHECK-NEXT: %[[Y:.*]] = tandem.add %[[E]], %[[S]] {tandem.checkpoint = "r", tandem.pass = "forward"}
  // CHECK-NEXT: %[[Z:.*]] = tandem.mul %[[Y]], %[[S]] {tandem.checkpoint = "q", tandem.pass = "forward"}
  // CHECK-NEXT: tandem.mul %{{.*}}, %[[E]] {tandem.pass = "backward"}
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward", tandem.recompute, tandem.checkpoint = "r"} : tensor<8xf32>
    %s = tandem.sin %x {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<8xf32>
    %a = tandem.add %e, %s {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<8xf32>
    %t = tandem.sin %x {tandem.pass = "forward", tandem.save, tandem.checkpoint = "q"} : tensor<8xf32>
    %y = tandem.mul %a, %t {tandem.pass = "forward", tandem.checkpoint = "q"} : tensor<8xf32>
    %f = tandem.exp %x {tandem.pass = "backward"} : tensor<8xf32>
    %0 = tandem.mul %dy, %f {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %0 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// So does 'offload', beside 'save'.
// CHECK-LABEL: module @offload
module @offload attributes {tandem.phase = "joint"} {
  func.func @evaluate() { return }
  // CHECK: func.func @joint
  // CHECK-NEXT: tandem.exp %{{[a-z0-9]+}} {tandem.offload, tandem.pass = "forward"}
  // CHECK-NEXT: tandem.sin %{{[a-z0-9]+}} {tandem.offload, tandem.pass = "forward", tandem.save}
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward"} : tensor<8xf32>
    %d = tandem.detach %e {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %s = tandem.sin %x {tandem.pass = "forward", tandem.save} : tensor<8xf32>
    %t = tandem.sin %x {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %a = tandem.mul %d, %s {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.mul %a, %t {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.mul %dy, %d {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %0 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// What folds away says of the value that takes its place that it is saved, but
// not that this is never saved; what a fold makes is tagged as what it was.
// CHECK-LABEL: module @fold
module @fold attributes {tandem.phase = "joint"} {
  func.func @evaluate() { return }
  // CHECK: func.func @joint
  // CHECK-NEXT: tandem.exp %{{[a-z0-9]+}} {tandem.pass = "forward", tandem.save}
  // CHECK-NEXT: tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward"}
  // CHECK-NEXT: tandem.reshape %{{.*}} to [2, 4] {tandem.pass = "forward", tandem.recompute} : tensor<8xf32> -> tensor<2x4xf32>
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<2x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<2x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<output "z">},
          tensor<2x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %e = tandem.exp %x {tandem.pass = "forward"} : tensor<8xf32>
    %d = tandem.detach %e {tandem.pass = "forward", tandem.save} : tensor<8xf32>
    %s = tandem.sin %d {tandem.pass = "forward"} : tensor<8xf32>
    %z = tandem.detach %s {tandem.pass = "forward", tandem.recompute} : tensor<8xf32>
    %r = tandem.reshape %z to [4, 2] {tandem.pass = "forward"} : tensor<8xf32> -> tensor<4x2xf32>
    %y = tandem.reshape %r to [2, 4] {tandem.pass = "forward", tandem.recompute} : tensor<4x2xf32> -> tensor<2x4xf32>
    %0 = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<2x4xf32>
    return %y, %z, %0 : tensor<2x4xf32>, tensor<8xf32>, tensor<2x4xf32>
  }
}

// -----

// P06: equal ops that contradict each other.
module @conflict attributes {tandem.phase = "joint"} {
  func.func @evaluate() { return }
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-note@+1 {{the other one is here}}
    %e = tandem.exp %x {tandem.pass = "forward", tandem.recompute} : tensor<8xf32>
    // expected-error-re@+1 {{'tandem.exp' at optimize-tags.mlir:{{[0-9:]+}} is tagged 'tandem.save', but is the same as 'tandem.exp' at optimize-tags.mlir:{{[0-9:]+}}, which is tagged 'tandem.recompute'}}
    %f = tandem.exp %x {tandem.pass = "forward", tandem.save} : tensor<8xf32>
    %y = tandem.mul %e, %f {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %0 : tensor<8xf32>, tensor<8xf32>
  }
}
