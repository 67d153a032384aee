// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint

// expected-error@+1 {{expected phase 'optimize' but got 'joint'}}
module @phase attributes {tandem.phase = "joint"} {
}

// -----

// expected-error@+1 {{unknown optimizer 'tiger'; known are 'sgd', 'momentum', }}
module @optimizer attributes {tandem.phase = "optimize", tandem.optimizer = "tiger", tandem.loss = "y"} {
  func.func @joint(
      %x: tensor<f32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">},
          tensor<f32> {tandem.role = #tandem.role<grad of "x">}) {
    return %x, %dy : tensor<f32>, tensor<f32>
  }
  func.func @evaluate() { return }
}

// -----

// Everything that is wrong with a spec.
// expected-error@+1 {{unknown option 'rate' of optimizer 'adamw'; known are 'lr', 'beta1', 'beta2', 'eps', 'weight_decay'; expected option 'lr' to be 0, or from 1.18e-38 to 1e+06 but got 'fast'; expected option 'beta1' to be 0, or from 1.18e-38 and below 1 but got '1'; option 'eps' is given twice}}
module @options attributes {tandem.phase = "optimize", tandem.optimizer = "adamw:rate=1,lr=fast,beta1=1,eps=1,eps=2", tandem.loss = "y"} {
  func.func @joint(
      %x: tensor<f32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">},
          tensor<f32> {tandem.role = #tandem.role<grad of "x">}) {
    return %x, %dy : tensor<f32>, tensor<f32>
  }
  func.func @evaluate() { return }
}

// -----

module @vector attributes {tandem.phase = "optimize", tandem.optimizer = "sgd", tandem.loss = "y"} {
  // expected-error@+1 {{--loss: optimizer 'sgd' needs a loss of one element, but 'y' has type 'tensor<4xf32>'}}
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    return %x, %dy : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}

// -----

module @noloss attributes {tandem.phase = "optimize", tandem.optimizer = "sgd"} {
  // expected-error@+1 {{expected --loss=NAME, since optimizer 'sgd' needs one output as the loss, and the outputs are}}
  func.func @joint(
      %x: tensor<f32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">},
          tensor<f32> {tandem.role = #tandem.role<grad of "x">}) {
    return %x, %dy : tensor<f32>, tensor<f32>
  }
  func.func @evaluate() { return }
}

// -----

module @nograd attributes {tandem.phase = "optimize", tandem.optimizer = "sgd"} {
  // expected-error@+1 {{optimizer 'sgd' has nothing to do: no param has a gradient}}
  func.func @joint(%x: tensor<f32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<f32>
  }
  func.func @evaluate() { return }
}

// -----

// P16: an op with an effect is never removed, reordered or run again, for it
// does not get so far: no verifier behind functionalize lets it pass.
module @effect attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // expected-error@+1 {{'tandem.make_ref', an op with a memory effect}}
    %r = tandem.make_ref %x {tandem.pass = "forward"} : tensor<4xf32>
    // expected-error@+1 {{'tandem.read', an op with a memory effect}}
    %y = tandem.read %r {tandem.pass = "forward"} : !tandem.ref<4xf32>
    return %y, %dy : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}
