// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-optimize-joint

// expected-error@+1 {{expected phase 'joint' but got 'capture'}}
module @phase attributes {tandem.phase = "capture"} {
}

// -----

// An edited module that is no joint is refused, with everything that is wrong.
module @edited attributes {tandem.phase = "joint"} {
  // expected-error@+2 {{phase 'joint' left 'cotangent of "z"' without an output of its type}}
  // expected-error@+1 {{phase 'joint' left 'grad of "x"' without an argument of its type that requires grad}}
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<param "x">},
      %dz: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "z">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-error@+1 {{phase 'joint' left 'tandem.exp' without 'tandem.pass'}}
    %y = tandem.exp %x : tensor<4xf32>
    return %y, %dz : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}

// -----

module @untrue attributes {tandem.phase = "joint"} {
  // expected-error@+1 {{phase 'joint' left 'output "y"' depending on the backward}}
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "backward"} : tensor<4xf32>
    // expected-error@+1 {{phase 'joint' left 'tandem.mul', a forward op that depends on the backward}}
    %m = tandem.mul %dy, %x {tandem.pass = "forward"} : tensor<4xf32>
    return %e, %m : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// What is edited in the second joint must still belong to the first.
module @second attributes {tandem.phase = "joint"} {
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}) { return }
  // expected-error@+2 {{phase 'joint' left 'input "z"' in 'grad_joint', which is nothing of 'joint'}}
  // expected-error@+1 {{phase 'joint' left 'input "cotangent of y"' in 'grad_joint', which is nothing of 'joint'}}
  func.func @grad_joint(
      %z: tensor<4xf32> {tandem.role = #tandem.role<input "z">},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<input "cotangent of y">}) { return }
  func.func @evaluate() { return }
}
