// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-joint=loss=loss

// expected-error@+1 {{expected phase 'functionalize' but got 'capture'}}
module @phase attributes {tandem.phase = "capture"} {
}

// -----

module @none attributes {tandem.phase = "functionalize"} {
  // expected-error@+1 {{the loss 'loss' is no output; the outputs are 'a' ('tensor<f32>'), 'b' ('tensor<4xi32>')}}
  func.func @graph(
      %x: tensor<f32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %i: tensor<4xi32> {tandem.role = #tandem.role<input "i">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "a">},
          tensor<4xi32> {tandem.role = #tandem.role<output "b">}) {
    return %x, %i : tensor<f32>, tensor<4xi32>
  }
}

// -----

module @integer attributes {tandem.phase = "functionalize"} {
  // expected-error@+1 {{the loss 'loss' has no floating-point elements; the outputs are 'loss' ('tensor<4xi32>')}}
  func.func @graph(%i: tensor<4xi32> {tandem.role = #tandem.role<input "i">})
      -> (tensor<4xi32> {tandem.role = #tandem.role<output "loss">}) {
    return %i : tensor<4xi32>
  }
}

// -----

module @independent attributes {tandem.phase = "functionalize"} {
  // expected-error@+1 {{the loss 'loss' depends on no argument that requires grad; the outputs are 'loss' ('tensor<4xf32>')}}
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">}) {
    return %x : tensor<4xf32>
  }
}

// -----

// M03: the graph may not write a param that it wants the gradient of, so that
// gradients would flow through the write.
module @leaf attributes {tandem.phase = "functionalize"} {
  // expected-error@+2 {{'param "w"' (argument #0) requires grad, but the graph writes it: 'tandem.write' at m.mlir:3:5}}
  func.func @graph(
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "w" {visible, where = "'tandem.write' at m.mlir:3:5"}>}) {
    %y = tandem.exp %w : tensor<4xf32>
    return %w, %y : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// An argument that requires grad and gets none: a warning, and no result.
module @unreachable attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      // expected-warning@+1 {{'param "v"' requires grad, but no output that has a gradient depends on it; it gets none}}
      %v: tensor<4xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">}) {
    return %w : tensor<4xf32>
  }
}
