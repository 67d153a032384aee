// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint=kind=default
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint=kind=min-cut

// P07: a value whose view is to be saved and that is itself never to be: the
// way by which the backward comes to need it, each step with its reason.
module attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<2x2xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x2xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-error@+3 {{the tags leave no partition: the backward needs the result of 'tandem.exp', which may neither be saved nor be computed again}}
    // expected-note@+2 {{'tandem.exp' may not be computed again: 'tandem.save' on 'tandem.permute' at}}
    // expected-note@+1 {{'tandem.exp' may not be saved: 'tandem.recompute' on 'tandem.exp' at}}
    %e = tandem.exp %x {tandem.pass = "forward", tandem.recompute} : tensor<2x2xf32>
    // expected-note@+1 {{'tandem.permute' is a view of it}}
    %p = tandem.permute %e by [1, 0] {tandem.pass = "forward", tandem.save} : tensor<2x2xf32> -> tensor<2x2xf32>
    // expected-note@+1 {{'tandem.sin' uses it, and may not be saved: 'tandem.recompute' on 'tandem.sin' at}}
    %y = tandem.sin %p {tandem.pass = "forward", tandem.recompute} : tensor<2x2xf32>
    // expected-note@+1 {{'tandem.mul' of the backward needs it}}
    %0 = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<2x2xf32>
    return %y, %0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
  func.func @evaluate() { return }
}

// -----

// Two are reported at once.
module attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    // expected-error@+1 {{'tandem.neg' op exists in the backward alone, where 'tandem.recompute' says nothing}}
    %0 = tandem.neg %dy {tandem.pass = "backward", tandem.recompute} : tensor<8xf32>
    // expected-error@+1 {{'tandem.mul' op exists in the backward alone, where 'tandem.checkpoint' says nothing}}
    %1 = tandem.mul %0, %x {tandem.pass = "backward", tandem.checkpoint = "r"} : tensor<8xf32>
    return %y, %1 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}
