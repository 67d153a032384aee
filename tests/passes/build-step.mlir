// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-step | FileCheck %s
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-step -mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Forward, backward for a cotangent of one, update; the ops say of which pass
// they are, and in the update their locations do. The loss may be an output that is a view of another one. More of it:
// partition-step.mlir.
// CHECK-LABEL: module @step
// CHECK: func.func @step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "sgd.lr">})
// CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
// CHECK-SAME:     tensor<f32> {tandem.role = #tandem.role<update of "w">})
// CHECK: %[[Y:.*]] = tandem.exp %[[W]] {tandem.pass = "forward"}
// CHECK: tandem.exp %[[W]] {tandem.pass = "backward"}
// CHECK: return %[[Y]],
// LOC-LABEL: module @step
// LOC: func.func @step
// LOC: tandem.sub {{.*}} loc(#[[SUB:.*]])
// LOC: #[[SUB]] = loc("update by update"(
module @step attributes {tandem.optimizer = "sgd", tandem.loss = "loss"} {
  func.func @forward(%w: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %y = tandem.exp %w : tensor<f32>
    return %y : tensor<f32>
  }
  func.func @backward(%w: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">})
      -> (tensor<f32> {tandem.role = #tandem.role<grad of "w">}) {
    %y = tandem.exp %w : tensor<f32>
    %g = tandem.mul %dy, %y : tensor<f32>
    return %g : tensor<f32>
  }
  func.func @update(
      %w: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %g: tensor<f32> {tandem.role = #tandem.role<grad of "w">},
      %lr: tensor<f32> {tandem.role = #tandem.role<state "sgd.lr">})
      -> (tensor<f32> {tandem.role = #tandem.role<update of "w">}) {
    %d = tandem.mul %lr, %g : tensor<f32>
    %n = tandem.sub %w, %d : tensor<f32>
    return %n : tensor<f32>
  }
}

// -----

// CHECK-LABEL: module @inference
// CHECK-NOT: @step
module @inference attributes {tandem.optimizer = "sgd"} {
  func.func @evaluate() { return }
}

// -----

// expected-error@+1 {{expected functions 'backward' and 'update' beside 'forward', of which a step with optimizer 'sgd' is made (tandem-build-update)}}
module @early attributes {tandem.optimizer = "sgd", tandem.loss = "loss"} {
  func.func @forward() { return }
}

// -----

module @noloss attributes {tandem.optimizer = "sgd"} {
  // expected-error@+1 {{expected --loss=NAME, since optimizer 'sgd' needs one output as the loss, and the outputs are}}
  func.func @forward() { return }
  func.func @backward() { return }
  func.func @update() { return }
}

// -----

module @vector attributes {tandem.optimizer = "sgd", tandem.loss = "t"} {
  // expected-error@+1 {{--loss: optimizer 'sgd' needs a loss of one element, but 't' has type 'tensor<4xf32>'}}
  func.func @forward(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">})
      attributes {tandem.aliases = [{name = "t", output = "y", type = tensor<4xf32>, views = [{op = "reshape", shape = array<i64: 4>}]}]} {
    %y = tandem.exp %x : tensor<2x2xf32>
    return %y : tensor<2x2xf32>
  }
  func.func @backward() { return }
  func.func @update() { return }
}

// -----

module @twice attributes {tandem.optimizer = "sgd", tandem.loss = "loss"} {
  func.func @forward() { return }
  // expected-error@+1 {{expected no 'step' before one is made}}
  func.func @step() { return }
}
