// RUN: tandem-opt %s -split-input-file -tandem-build-joint | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-build-joint=inference=true | FileCheck %s --check-prefix=INFERENCE
// RUN: tandem-opt %s -split-input-file -tandem-build-joint -mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// A product and a square: gradients of both params, none of the input; the sum
// of the two cotangents of %y; the update stays out of @evaluate.
// CHECK-LABEL: module @chain
// CHECK-SAME: tandem.loss = "loss", tandem.phase = "joint"
// INFERENCE-LABEL: module @chain
// LOC-LABEL: module @chain
module @chain attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: tensor<2x3xf32> {tandem.role = #tandem.role<input "x">},
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<3x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
  // CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<2x4xf32> {tandem.role = #tandem.role<state "s">},
  // CHECK-SAME: %[[DL:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">})
  // CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
  // CHECK-SAME:     tensor<2x4xf32> {tandem.role = #tandem.role<update of "s">},
  // CHECK-SAME:     tensor<3x4xf32> {tandem.role = #tandem.role<grad of "w">})
  // INFERENCE-NOT: @joint
  // INFERENCE-NOT: @graph
  // INFERENCE: func.func @evaluate(
  // INFERENCE-NOT: update
  // INFERENCE: tandem.reduce_sum
  // INFERENCE-NOT: tandem.pass
  func.func @graph(
      %x: tensor<2x3xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<3x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %s: tensor<2x4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<2x4xf32> {tandem.role = #tandem.role<update of "s">}) {
    // CHECK-NEXT: %[[Y:.*]] = tandem.matmul %[[X]], %[[W]] {tandem.pass = "forward"}
    // CHECK-NEXT: %[[Y2:.*]] = tandem.mul %[[Y]], %[[Y]] {tandem.pass = "forward"}
    // CHECK-NEXT: %[[L:.*]] = tandem.reduce_sum %[[Y2]] over [0, 1] {tandem.pass = "forward"}
    // CHECK-NEXT: %[[S2:.*]] = tandem.add %[[S]], %[[Y]] {tandem.pass = "forward"}
    // CHECK-NEXT: %[[DY2:.*]] = tandem.broadcast %[[DL]] to [2, 4] along [] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[D1:.*]] = tandem.mul %[[DY2]], %[[Y]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[D2:.*]] = tandem.mul %[[DY2]], %[[Y]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[DY:.*]] = tandem.add %[[D1]], %[[D2]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[DW:.*]] = tandem.matmul %[[X]], %[[DY]] {tandem.pass = "backward", transpose_lhs}
    // CHECK-NEXT: return %[[L]], %[[S2]], %[[DW]]
    // LOC: tandem.mul {{.*}}"forward"{{.*}} loc(#[[MUL:.*]])
    // LOC: tandem.mul {{.*}}"backward"{{.*}} loc(#[[GRAD:.*]])
    // LOC: #[[GRAD]] = loc("grad of mul"(#[[MUL]]))
    %y = tandem.matmul %x, %w : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
    %y2 = tandem.mul %y, %y : tensor<2x4xf32>
    %loss = tandem.reduce_sum %y2 over [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %s2 = tandem.add %s, %y : tensor<2x4xf32>
    return %loss, %s2 : tensor<f32>, tensor<2x4xf32>
  }
  // CHECK: func.func @evaluate(
  // CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<output "loss">})
  // CHECK-NOT: tandem.add
  // CHECK: return
}

// -----

// Gradients of a product have its precision.
// CHECK-LABEL: module @precision
module @precision attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<2x3xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<4x3xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<2x4xf32> {tandem.role = #tandem.role<output "y">}) {
    // CHECK: tandem.matmul {{.*}} {precision = "tf32", tandem.pass = "forward", transpose_rhs}
    // CHECK: tandem.matmul {{.*}} {precision = "tf32", tandem.pass = "backward"}
    // CHECK: tandem.matmul {{.*}} {precision = "tf32", tandem.pass = "backward", transpose_lhs}
    %y = tandem.linear %x, %w {precision = "tf32"} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}

// -----

// Gradients stop at detach, at no-grad regions and at integers; what reaches
// the outputs by another path alone counts. Without a loss every
// floating-point output that depends on an argument has a cotangent.
// CHECK-LABEL: module @cut
// CHECK-NOT: tandem.loss
module @cut attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[W:[a-z0-9]+]]: tensor<4xf32>
  // CHECK-SAME: %[[DA:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "a">},
  // CHECK-SAME: %[[DB:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "b">})
  func.func @graph(
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4xi32> {tandem.role = #tandem.role<output "c">},
          tensor<4xf32> {tandem.role = #tandem.role<output "d">},
          tensor<4xf32> {tandem.role = #tandem.role<output "e" {no_grad}>}) {
    // CHECK: tandem.exp %[[W]] {tandem.no_grad, tandem.pass = "forward"}
    // CHECK: %[[ADD:.*]] = tandem.add {{.*}} {tandem.pass = "forward"}
    // CHECK-NOT: "backward"
    // CHECK: %[[N:.*]] = tandem.neg %[[DB]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[G:.*]] = tandem.accumulate %[[N]], %[[DA]] {tandem.pass = "backward"}
    // CHECK-NEXT: return {{.*}}, %[[G]]
    %d = tandem.detach %w : tensor<4xf32>
    %e = tandem.exp %w {tandem.no_grad} : tensor<4xf32>
    %i = tandem.cast %w : tensor<4xf32> to tensor<4xi32>
    %j = tandem.cast %i : tensor<4xi32> to tensor<4xf32>
    %0 = tandem.add %d, %e : tensor<4xf32>
    %1 = tandem.add %0, %j : tensor<4xf32>
    %a = tandem.add %w, %1 : tensor<4xf32>
    %b = tandem.neg %w : tensor<4xf32>
    return %a, %b, %i, %0, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Nothing requires grad: no cotangents, no gradients.
// CHECK-LABEL: module @nothing
module @nothing attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
  // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">})
  // CHECK-NOT: backward
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">}) {
    %y = tandem.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// An argument that is an output; one that is an output twice.
// CHECK-LABEL: module @identity
module @identity attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{.*}}, %[[DA:[a-z0-9]+]]: {{.*}}, %[[DB:[a-z0-9]+]]:
  // CHECK-NEXT: %[[G:.*]] = tandem.accumulate %[[DA]], %[[DB]] {tandem.pass = "backward"}
  // CHECK-NEXT: return %[[X]], %[[X]], %[[G]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4xf32> {tandem.role = #tandem.role<output "b">}) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// The module names the loss: the other output has no cotangent.
// CHECK-LABEL: module @named
// CHECK-SAME: tandem.loss = "b"
module @named attributes {tandem.phase = "functionalize", tandem.loss = "b"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{.*}}, %[[DB:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "b">})
  // CHECK: tandem.neg %[[DB]] {tandem.pass = "backward"}
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">},
          tensor<4xf32> {tandem.role = #tandem.role<output "b">}) {
    %b = tandem.neg %x : tensor<4xf32>
    return %x, %b : tensor<4xf32>, tensor<4xf32>
  }
}
