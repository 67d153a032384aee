// RUN: tandem-opt %s -split-input-file -tandem-seal-mutations | FileCheck %s

// Argument 1 requires grad and the backward writes it; argument 0 it only
// writes.
// CHECK: tandem.mutated_in_backward = array<i64: 1>
module {
  func.func @joint(%s: tensor<4xf32> {tandem.role = #tandem.role<state "s">}, %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<grad of "w">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "s" {pass = "backward", where = "here"}>},
          tensor<4xf32> {tandem.role = #tandem.role<update of "w" {pass = "backward", where = "here"}>}) {
    return %w, %dy, %dy, %dy : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
