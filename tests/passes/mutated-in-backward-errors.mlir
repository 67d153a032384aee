// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-optimize-joint

// B06: the list is made by the joint and sealed: changed or removed, it is
// refused, and before the joint there is none.
// expected-error@+1 {{expected 'tandem.mutated_in_backward' to be [1], the arguments that require grad and that the backward updates, but got [0]}}
module @changed attributes {tandem.phase = "joint", tandem.mutated_in_backward = array<i64: 0>} {
  func.func @joint(
      %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "s" {pass = "backward"}>},
          tensor<4xf32> {tandem.role = #tandem.role<update of "x" {pass = "backward"}>}) {
    return %x, %dy, %dy : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// expected-error@+1 {{expected 'tandem.mutated_in_backward' to be [0], the arguments that require grad and that the backward updates, but got none}}
module @removed attributes {tandem.phase = "joint"} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "x" {pass = "backward"}>}) {
    return %x, %dy : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// expected-error@+1 {{expected no 'tandem.mutated_in_backward' before the joint is built}}
module @early attributes {tandem.phase = "functionalize", tandem.mutated_in_backward = array<i64: 0>} {
  func.func @graph() { return }
}
