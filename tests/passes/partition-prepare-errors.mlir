// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-partition-joint

// expected-error@+1 {{'tandem.prepare' is for inference alone, but there is a function 'joint'}}
module @training attributes {tandem.phase = "optimize", tandem.prepare} {
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

// expected-error@+1 {{expected 'tandem.prepare' to be a unit attribute, but got "yes"}}
module @text attributes {tandem.phase = "optimize", tandem.prepare = "yes"} {
}

// -----

module @op attributes {tandem.phase = "optimize"} {
  // expected-error@+1 {{'tandem.prepare' belongs on a module}}
  func.func @evaluate() attributes {tandem.prepare} { return }
}
