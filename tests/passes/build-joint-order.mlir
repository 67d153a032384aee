// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-joint=order=2

// J15: a second derivative through a custom_vjp that is marked first-order.
module @first_order attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{custom_vjp "f" is marked first-order, but 'input "cotangent of y"' (argument #1) requires a second derivative through it}}
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      %g = tandem.neg %dy : tensor<4xf32>
      tandem.yield %g : tensor<4xf32>
    } {first_order, outputs = 1, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// J15: one that writes an input that requires grad.
module @writes attributes {tandem.phase = "functionalize"} {
  // expected-error-re@+1 {{'input "x"' (argument #0) requires grad and is written by the backward, which cannot be differentiated again: 'tandem.custom_vjp' 'f' at {{.*}}:{{[0-9]+}}:10}}
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %s: tensor<4xf32>):
      tandem.yield %dy, %dy : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// The names that order 2 gives to what it adds are not for others.

module @names attributes {tandem.phase = "functionalize"} {
  // expected-error@+1 {{expected no 'input "cotangent of y"' with order 2, which names what it adds like that}}
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %y: tensor<4xf32> {tandem.role = #tandem.role<input "cotangent of y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %o = tandem.mul %x, %y : tensor<4xf32>
    return %o : tensor<4xf32>
  }
}
