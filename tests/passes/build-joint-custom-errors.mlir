// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-joint

// J11: a wrong count of gradients.
module @count attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{expected the backward to yield 1 gradients, but got 2}}
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      tandem.yield %dy, %dy : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// J11: a wrong shape; a wrong element type.
module @shape attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{expected the backward's gradient #0 to have type 'tensor<4xf32>', but got 'tensor<f32>'}}
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      %s = tandem.reduce_sum %dy over [0] : tensor<4xf32> -> tensor<f32>
      tandem.yield %s : tensor<f32>
    } {outputs = 1, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module @type attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{expected the backward's gradient #0 to have type 'tensor<4xf32>', but got 'tensor<4xf64>'}}
    %z = tandem.custom_vjp "g" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      %s = tandem.cast %dy : tensor<4xf32> to tensor<4xf64>
      tandem.yield %s : tensor<4xf64>
    } {outputs = 1, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>
    return %z : tensor<4xf32>
  }
}

// -----

// B09: what functionalize found that a backward cannot do.
module @rejected attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+2 {{changes the metadata of 'input "x"'}}
    // expected-note@+1 {{in the backward of custom_vjp "f"}}
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      tandem.yield %dy : tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, rejected = [{message = "changes the metadata of 'input \"x\"'"}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A state that is no argument; one of another type.
module @states attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{has a backward that reads or writes 's', but there is no such argument}}
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %s: tensor<4xf32>):
      tandem.yield %dy, %s : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "s", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    // expected-error@+1 {{expected 'x' to have type 'tensor<4xf32>' in its backward, but got 'tensor<2xf32>'}}
    %z = tandem.custom_vjp "f" (%y) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %s: tensor<2xf32>):
      tandem.yield %dy, %s : tensor<4xf32>, tensor<2xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %z : tensor<4xf32>
  }
}

// -----

// J16: a gradient inside of the forward with respect to something that is not
// reached; of an op that writes in its backward; and through one that is marked
// first-order, differentiated again.
module @unreached attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x">}, %w: tensor<f32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    %e = tandem.sin %w : tensor<f32>
    %m = tandem.exp %x : tensor<f32>
    // expected-error@+2 {{asks for a gradient with respect to 'input "x"', which what is differentiated does not depend on}}
    // expected-error@+1 {{asks for a gradient with respect to value #2, which what is differentiated does not depend on}}
    %f, %g, %h = tandem.grad %e wrt (%x, %w, %m) : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32>, tensor<f32>
    return %f : tensor<f32>
  }
}

// -----

module @writes attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{reads or writes 'x' in its backward, which a gradient inside of the forward cannot do}}
    %e = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<f32>):
      tandem.yield %a : tensor<f32>
    } backward {
    ^bb0(%dy: tensor<f32>, %s: tensor<f32>):
      tandem.yield %dy, %s : tensor<f32>, tensor<f32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<f32>), () -> tensor<f32>
    %f = tandem.grad %e wrt (%x) : tensor<f32>, tensor<f32> -> tensor<f32>
    return %f : tensor<f32>
  }
}

// -----

module @first_order attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{custom_vjp "f" is marked first-order, but 'input "x"' (argument #0) requires a second derivative through it}}
    %e, %s = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<f32>):
      tandem.yield %a, %a : tensor<f32>, tensor<f32>
    } backward {
    ^bb0(%a: tensor<f32>, %dy: tensor<f32>):
      %g = tandem.mul %a, %dy : tensor<f32>
      tandem.yield %g : tensor<f32>
    } {first_order, outputs = 1, saved = 1, differentiable = 1} : (tensor<f32>), () -> tensor<f32>, tensor<f32>
    %f = tandem.grad %e wrt (%x) : tensor<f32>, tensor<f32> -> tensor<f32>
    return %f : tensor<f32>
  }
}

// -----

// J22: an integer has no gradient.
module @integer attributes {tandem.phase = "functionalize"} {
  // expected-error@+1 {{'input "x"' requires grad, so expected floating-point elements, but got 'tensor<4xi32>'}}
  func.func @graph(%x: tensor<4xi32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xi32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<4xi32>
  }
}
