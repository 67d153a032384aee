// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-split-joint

// Marks where they say nothing: all are reported.
module @marks {
  // expected-error@+2 {{'input "x"' (argument #0) keeps its value for the backward, so that 'tandem.saved' says nothing}}
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>, tandem.saved = "me"},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    // expected-error@+1 {{'tandem.constant' op is in both programs, so that 'tandem.saved' says nothing}}
    %c = tandem.constant {tandem.pass = "forward", tandem.saved = "me"} dense<1.0> : tensor<8xf32>
    %y = tandem.add %x, %c {tandem.pass = "forward"} : tensor<8xf32>
    // expected-error@+1 {{'tandem.mul' op has 'tandem.saved', but may not be saved: 'tandem.recompute' on 'tandem.mul' at}}
    %z = tandem.mul %y, %x {tandem.pass = "forward", tandem.recompute, tandem.saved = "me"} : tensor<8xf32>
    %0 = tandem.mul %z, %x {tandem.pass = "backward"} : tensor<8xf32>
    // expected-error@+1 {{'tandem.mul' op exists in the backward alone, where 'tandem.saved' says nothing}}
    %g = tandem.mul %dy, %0 {tandem.pass = "backward", tandem.saved = "me"} : tensor<8xf32>
    return %y, %g : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// A mark is missing on what the forward overwrites.
module @overwritten {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      // expected-error@+1 {{'state "s"' (argument #1) has no 'tandem.saved', but the backward needs it, and it does not keep its value}}
      %s: tensor<8xf32> {tandem.role = #tandem.role<state "s">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<update of "s">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    %y = tandem.mul %x, %s {tandem.pass = "forward"} : tensor<8xf32>
    %g = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %y, %g : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// One is missing where a tag asks for it.
module @tags {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    // expected-error@+1 {{'tandem.sin' op has no 'tandem.saved', but has to be saved: 'tandem.save' on 'tandem.sin' at}}
    %s = tandem.sin %x {tandem.pass = "forward", tandem.save} : tensor<8xf32>
    %y = tandem.exp %s {tandem.pass = "forward"} : tensor<8xf32>
    %g = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %g : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// One is missing on a sum, which the backward would add up in another order.
module @sums {
  func.func @joint(
      %x: tensor<8x8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8x8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    // expected-error@+1 {{'tandem.reduce_sum' op has no 'tandem.saved', but the backward needs it, and may not compute it again: a floating-point sum that is computed again could have other bits}}
    %s = tandem.reduce_sum %x over [0] {tandem.pass = "forward"} : tensor<8x8xf32> -> tensor<8xf32>
    %y = tandem.exp %s {tandem.pass = "forward"} : tensor<8xf32>
    %d = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<8xf32>
    %g = tandem.broadcast %d to [8, 8] along [1] {tandem.pass = "backward"} : tensor<8xf32> -> tensor<8x8xf32>
    return %y, %g : tensor<8xf32>, tensor<8x8xf32>
  }
}

// -----

// Nobody has chosen.
module @unchosen {
  // expected-error@+1 {{expected 'joint' to say 'tandem.saved_by': nobody has chosen what is saved (tandem-choose-saved)}}
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}

// -----

module @twice {
  // expected-error@+1 {{expected no 'forward' in a module whose joint is divided}}
  func.func @forward() { return }
  func.func @joint() attributes {tandem.saved_by = "me"} { return }
}

// -----

module @second {
  // expected-error@+1 {{phase 'optimize' left 'grad_joint' without a 'joint'}}
  func.func @grad_joint() { return }
}

// -----

// The form of marks.
module @form {
  func.func @joint(%q: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "q">}) {
    // expected-error@+1 {{'tandem.attention_forward' op expected 'tandem.saved' to be a list of 2, a reason or 'unit' for each result, at least one of them a reason, but got ["a"]}}
    %o, %m = tandem.attention_forward %q, %q, %q {scale = 0.5 : f64, tandem.pass = "forward", tandem.saved = ["a"]} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
    return
  }
}

// -----

module @unit {
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}) {
    // expected-error@+1 {{'tandem.sin' op expected 'tandem.saved' to be a reason, as a string, but got unit}}
    %y = tandem.sin %x {tandem.pass = "forward", tandem.saved} : tensor<8xf32>
    return
  }
}

// -----

module @argument {
  // expected-error@+1 {{expected 'tandem.saved' on argument #0 to be a reason, as a string, but got 3 : i64}}
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">, tandem.saved = 3}) {
    return
  }
}

// -----

module @result {
  func.func @joint() {
    // expected-error@+1 {{'func.return' op has no result that 'tandem.saved' could be about}}
    return {tandem.saved = "me"}
  }
}
