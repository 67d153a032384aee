// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-check-save-tags

// Tags that can be obeyed pass. More errors: partition-tags-errors.mlir.
module @right {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward", tandem.save} : tensor<8xf32>
    %y = tandem.sin %e {tandem.pass = "forward", tandem.recompute} : tensor<8xf32>
    %0 = tandem.mul %y, %e {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %1 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// One op is to be saved, its source never: the way by which the backward comes
// to need it.
module @conflict {
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
    %y = tandem.sin %p {tandem.pass = "forward"} : tensor<2x2xf32>
    // expected-note@+1 {{'tandem.mul' of the backward needs it}}
    %0 = tandem.mul %dy, %p {tandem.pass = "backward"} : tensor<2x2xf32>
    return %y, %0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
}

// -----

// What is called a joint is none.
module @none {
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{phase 'optimize' left 'tandem.sin' without 'tandem.pass'}}
    %y = tandem.sin %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}

// -----

module @declared {
  // expected-error@+1 {{phase 'optimize' left function 'joint' without a body of one block}}
  func.func private @joint(tensor<8xf32> {tandem.role = #tandem.role<input "x">})
}
