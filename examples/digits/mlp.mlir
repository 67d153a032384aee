// A multilayer perceptron for the 8x8 handwritten digits: 64 pixels (0 to 16),
// two hidden layers, ten classes. Batches of 32.
//
//   tandem compile mlp.mlir -o mlp.tdm --optimizer=adamw:lr=2e-3
#x = #tandem.role<input "x">
#labels = #tandem.role<input "labels" {high = 10 : i64}>
#w0 = #tandem.role<param "fc0.w" {requires_grad, init = {kind = "uniform", low = -0.216, high = 0.216}}>
#b0 = #tandem.role<param "fc0.b" {requires_grad, init = {kind = "constant", value = 0.0}}>
#w1 = #tandem.role<param "fc1.w" {requires_grad, init = {kind = "uniform", low = -0.153, high = 0.153}}>
#b1 = #tandem.role<param "fc1.b" {requires_grad, init = {kind = "constant", value = 0.0}}>
#w2 = #tandem.role<param "fc2.w" {requires_grad, init = {kind = "uniform", low = -0.153, high = 0.153}}>
#b2 = #tandem.role<param "fc2.b" {requires_grad, init = {kind = "constant", value = 0.0}}>
#loss = #tandem.role<output "loss">
#logits = #tandem.role<output "logits">

module @digits_mlp attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<32x64xf32> {tandem.role = #x},
      %labels: tensor<32xi64> {tandem.role = #labels},
      %w0: tensor<128x64xf32> {tandem.role = #w0},
      %b0: tensor<128xf32> {tandem.role = #b0},
      %w1: tensor<128x128xf32> {tandem.role = #w1},
      %b1: tensor<128xf32> {tandem.role = #b1},
      %w2: tensor<10x128xf32> {tandem.role = #w2},
      %b2: tensor<10xf32> {tandem.role = #b2})
      -> (tensor<f32> {tandem.role = #loss}, tensor<32x10xf32> {tandem.role = #logits}) {
    // Pixels are 0 to 16; the network sees -1 to 1.
    %eighth = tandem.constant dense<0.125> : tensor<32x64xf32>
    %one = tandem.constant dense<1.0> : tensor<32x64xf32>
    %scaled = tandem.mul %x, %eighth : tensor<32x64xf32>
    %in = tandem.sub %scaled, %one : tensor<32x64xf32>

    %a0 = tandem.linear %in, %w0, %b0 : (tensor<32x64xf32>, tensor<128x64xf32>, tensor<128xf32>) -> tensor<32x128xf32>
    %h0 = tandem.relu %a0 : tensor<32x128xf32>
    %a1 = tandem.linear %h0, %w1, %b1 : (tensor<32x128xf32>, tensor<128x128xf32>, tensor<128xf32>) -> tensor<32x128xf32>
    %h1 = tandem.relu %a1 : tensor<32x128xf32>
    %logits = tandem.linear %h1, %w2, %b2 : (tensor<32x128xf32>, tensor<10x128xf32>, tensor<10xf32>) -> tensor<32x10xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<32x10xf32>, tensor<32xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<32x10xf32>
  }
}
