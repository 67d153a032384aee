module @state attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">}) {
    %y, %saved = tandem.custom_vjp "amax" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.sin %a : tensor<4xf32>
      tandem.yield %b, %a : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%a: tensor<4xf32>, %dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.maximum %old, %dy : tensor<4xf32>
      %dx = tandem.mul %dy, %a : tensor<4xf32>
      tandem.yield %dx, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 1, differentiable = 1, states = [{name = "s", written}]} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
