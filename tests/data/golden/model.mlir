// The model of the golden artifacts (tools/golden-artifact): a multilayer
// perceptron that is as small as one can be and has parameters, states of an
// optimizer, and what each program says. It calls no function of libm.
#x = #tandem.role<input "x" {requires_grad}>
#y = #tandem.role<input "y">
#w0 = #tandem.role<param "w0" {requires_grad, init = {kind = "uniform", low = -0.5, high = 0.5}}>
#b0 = #tandem.role<param "b0" {requires_grad, init = {kind = "constant", value = 0.125}}>
#w1 = #tandem.role<param "w1" {requires_grad, init = {kind = "uniform", low = -0.5, high = 0.5}}>
#loss = #tandem.role<output "loss">
#pred = #tandem.role<output "pred">

module @golden attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x3xf32> {tandem.role = #x},
      %y: tensor<4x2xf32> {tandem.role = #y},
      %w0: tensor<5x3xf32> {tandem.role = #w0},
      %b0: tensor<5xf32> {tandem.role = #b0},
      %w1: tensor<2x5xf32> {tandem.role = #w1})
      -> (tensor<f32> {tandem.role = #loss}, tensor<4x2xf32> {tandem.role = #pred}) {
    %a0 = tandem.linear %x, %w0, %b0 : (tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32>) -> tensor<4x5xf32>
    %h0 = tandem.relu %a0 : tensor<4x5xf32>
    %pred = tandem.linear %h0, %w1 : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
    %loss = tandem.mse_loss %pred, %y : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<f32>
    return %loss, %pred : tensor<f32>, tensor<4x2xf32>
  }
}
