module @mlp attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 3 : i64}>},
      %w: tensor<3x8xf32> {tandem.role = #tandem.role<param "w" {requires_grad, init = {kind = "uniform", low = -0.2, high = 0.2}}>},
      %b: tensor<3xf32> {tandem.role = #tandem.role<param "b" {requires_grad, init = {kind = "constant", value = 0.0}}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<4x3xf32> {tandem.role = #tandem.role<output "logits">}) {
    %scale = tandem.constant dense<0.125> : tensor<4x8xf32>
    %in = tandem.mul %x, %scale : tensor<4x8xf32>
    %a = tandem.linear %in, %w, %b : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %logits = tandem.relu %a : tensor<4x3xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<4x3xf32>, tensor<4xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<4x3xf32>
  }
}
