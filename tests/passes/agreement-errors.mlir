// A10: edits of one program passed: a misspelt name of a program, an input or a
// range that another program has otherwise, a gradient that was taken out, so
// that its parameter silently stayed as it was.
//
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-optimize-joint

module @names attributes {tandem.phase = "joint"} {
  func.func @evaluate() {
    return
  }
  // expected-error@+1 {{phase 'joint' left an unexpected function 'jiont' (did you mean 'joint'?)}}
  func.func @jiont() {
    return
  }
}

// -----

module @values attributes {tandem.phase = "joint"} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %l: tensor<4xi64> {tandem.role = #tandem.role<input "l" {high = 4}>},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {init = {kind = "constant", value = 0.0}}>},
      %n: tensor<f32> {tandem.role = #tandem.role<state "n">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.add %x, %w {tandem.pass = "forward"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  // expected-error@+6 {{phase 'joint' left 'input "l"' with 'high' 3 : i64 in 'evaluate', but with 'high' 4 : i64 in 'joint'}}
  // expected-error@+5 {{phase 'joint' left 'param "w"' with 'init' {kind = "constant", value = 1.000000e+00 : f64} in 'evaluate', but with 'init' {kind = "constant", value = 0.000000e+00 : f64} in 'joint'}}
  // expected-error@+4 {{phase 'joint' left 'input "n"' in 'evaluate', but 'state "n"' in 'joint'}}
  // expected-error@+3 {{phase 'joint' left 'input "xs"' in 'evaluate', which 'joint' does not take (did you mean 'x'?)}}
  // expected-error@+2 {{phase 'joint' left 'output "z"' in 'evaluate', which 'joint' does not give (did you mean 'y'?)}}
  // expected-error@+1 {{phase 'joint' left 'param "w"' with 'requires_grad' in 'evaluate', but without 'requires_grad' in 'joint'}}
  func.func @evaluate(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "xs">},
      %l: tensor<4xi64> {tandem.role = #tandem.role<input "l" {high = 3}>},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad, init = {kind = "constant", value = 1.0}}>},
      %n: tensor<f32> {tandem.role = #tandem.role<input "n">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "z">}) {
    %y = tandem.add %x, %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module @types attributes {tandem.phase = "joint"} {
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.exp %x {tandem.pass = "forward"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  // expected-error@+2 {{phase 'joint' left 'input "x"' of type 'tensor<8xf32>' in 'evaluate', but of type 'tensor<4xf32>' in 'joint'}}
  // expected-error@+1 {{phase 'joint' left 'output "y"' of type 'tensor<8xf32>' in 'evaluate', but of type 'tensor<4xf32>' in 'joint'}}
  func.func @evaluate(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.exp %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}

// -----

// A gradient is there, or its value says that there is none.
module @gradients attributes {tandem.phase = "joint"} {
  // expected-error@+2 {{phase 'joint' left no 'grad of "b"' in 'joint', although 'param "b"' requires grad}}
  // expected-error@+1 {{phase 'joint' left 'grad of "c"' in 'joint', although 'param "c"' gets none}}
  func.func @joint(
      %a: tensor<4xf32> {tandem.role = #tandem.role<param "a" {requires_grad}>},
      %b: tensor<4xf32> {tandem.role = #tandem.role<param "b" {requires_grad}>},
      %c: tensor<4xf32> {tandem.role = #tandem.role<param "c" {no_grad, requires_grad}>},
      %d: tensor<4xf32> {tandem.role = #tandem.role<param "d" {no_grad, requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "a">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "c">}) {
    %0 = tandem.add %a, %b {tandem.pass = "forward"} : tensor<4xf32>
    %y = tandem.add %0, %c {tandem.pass = "forward"} : tensor<4xf32>
    return %y, %dy, %dy : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() {
    return
  }
}
