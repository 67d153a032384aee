// Which ranks have what of arguments and results, as plans and patterns say.
//
// RUN: tandem-opt %s -split-input-file -tandem-assign-shardings | FileCheck %s

// Rows of inputs and outputs, parameters by a pattern, gradients in pieces: also
// of what does not divide, but not of less than there are ranks.
// CHECK-LABEL: func.func @joint
// CHECK-SAME: input "x" {sharding = {{\[}}["data"], []]}
// CHECK-SAME: param "w" {requires_grad, sharding = {{\[}}[], ["tensor"]]}
// CHECK-SAME: param "b" {requires_grad}
// CHECK-SAME: cotangent of "y" {sharding = {{\[}}["data"], []]}
// CHECK-SAME: output "y" {sharding = {{\[}}["data"], []]}
// CHECK-SAME: grad of "w" {sharding = {{\[}}["data"], ["tensor"]]}
// CHECK-SAME: grad of "b" {sharding = {{\[}}["data"]]}
// CHECK-SAME: grad of "c">
module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>,
                   tandem.parallel = ["zero2", "tp"], tandem.shard = {"w.*" = [[], ["tensor"]]}} {
  func.func @joint(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<4x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %b: tensor<5xf32> {tandem.role = #tandem.role<param "b" {requires_grad}>},
                   %c: tensor<1xf32> {tandem.role = #tandem.role<param "c" {requires_grad}>},
                   %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4x6xf32> {tandem.role = #tandem.role<grad of "w">},
          tensor<5xf32> {tandem.role = #tandem.role<grad of "b">},
          tensor<1xf32> {tandem.role = #tandem.role<grad of "c">}) {
    %y = tandem.matmul %x, %w {tandem.pass = "forward", transpose_rhs} : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x4xf32>
    %dw = tandem.matmul %dy, %x {tandem.pass = "backward", transpose_lhs} : tensor<4x4xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %y, %dw, %b, %c : tensor<4x4xf32>, tensor<4x6xf32>, tensor<5xf32>, tensor<1xf32>
  }
}

// -----

// Views are of whole values: what would be one of a value in pieces has a value
// of its own, and what is one of a whole value stays a view.
// CHECK-LABEL: module @views
// CHECK: output "of y" {sharding = {{\[\[}}"data"], []]}
// CHECK-SAME: output "y" {sharding = {{\[\[}}"data"], []]}
// CHECK-SAME: output "of x" {sharding = {{\[\[}}"data"], []]}
// CHECK-SAME: output "of w" {alias = {of = "w", views = []}}
module @views attributes {tandem.mesh = #tandem.mesh<data = 2>, tandem.parallel = ["ddp"]} {
  func.func @joint(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<4x6xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x6xf32> {tandem.role = #tandem.role<output "of y" {alias = {output = "y", views = []}}>},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "of x" {alias = {of = "x", views = []}}>},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "of w" {alias = {of = "w", views = []}}>}) {
    %y = tandem.mul %x, %w {tandem.pass = "forward"} : tensor<4x6xf32>
    return %y, %y, %x, %w : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
  }
}

// -----

// States go with their parameter, and are cut besides.
// CHECK-LABEL: func.func @update
// CHECK-SAME: param "w" {sharding = {{\[}}[], ["tensor"]]}
// CHECK-SAME: state "momentum.velocity:w" {sharding = {{\[}}["data"], ["tensor"]]}
// CHECK-SAME: update of "w" {sharding = {{\[}}[], ["tensor"]]}
// CHECK-SAME: update of "momentum.velocity:w" {sharding = {{\[}}["data"], ["tensor"]]}
module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>, tandem.parallel = ["zero1"]} {
  func.func @update(%w: tensor<4x6xf32> {tandem.role = #tandem.role<param "w" {sharding = [[], ["tensor"]]}>},
                    %v: tensor<4x6xf32> {tandem.role = #tandem.role<state "momentum.velocity:w">})
      -> (tensor<4x6xf32> {tandem.role = #tandem.role<update of "w">},
          tensor<4x6xf32> {tandem.role = #tandem.role<update of "momentum.velocity:w">}) {
    %y = tandem.sub %w, %v : tensor<4x6xf32>
    return %y, %v : tensor<4x6xf32>, tensor<4x6xf32>
  }
}

// -----

// A stage of a pipeline: rows are those of the whole model's inputs; what crosses
// may have several lines for each of them, and a param that crosses has none.

// CHECK-LABEL: module @stage
// CHECK: input "pipe.0" {sharding = {{\[\[}}"data"], []]}
// CHECK-SAME: input "pipe.1">
// CHECK-SAME: output "pipe.2" {sharding = {{\[\[}}"data"]]}
module @stage attributes {tandem.mesh = #tandem.mesh<data = 2>, tandem.parallel = ["ddp"], tandem.phase = "optimize", tandem.pipeline = {gives = ["pipe.2"], inputs = [{role = #tandem.role<input "x">, type = tensor<4x2xf32>}], params = {"pipe.1" = "w"}, ranks = 3 : i64, stage = 1 : i64, stages = 3 : i64, takes = ["pipe.0", "pipe.1"]}} {
  func.func @forward(
      %h: tensor<12x3xf32> {tandem.role = #tandem.role<input "pipe.0">},
      %w: tensor<8xf32> {tandem.role = #tandem.role<input "pipe.1">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "pipe.2">}) {
    %y = tandem.exp %w : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
