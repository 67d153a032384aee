module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                   %n: tensor<i64> {tandem.role = #tandem.role<input "n">},
                   %xs: tensor<5x4xf32> {tandem.role = #tandem.role<input "xs" {requires_grad}>},
                   %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "loss">}, tensor<i64> {tandem.role = #tandem.role<output "i">}) {
    %h, %i = tandem.scan 5 carries(%x, %n) inputs(%xs) constants(%w) {
      ^bb0(%a: tensor<4xf32>, %b: tensor<i64>, %s: tensor<4xf32>, %v: tensor<4xf32>):
        %p = tandem.mul %a, %v : tensor<4xf32>
        %q = tandem.add %p, %s : tensor<4xf32>
        %o = tandem.add %b, %b : tensor<i64>
        tandem.yield %q, %o : tensor<4xf32>, tensor<i64>
    } : (tensor<4xf32>, tensor<i64>, tensor<5x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>)
    %y = tandem.if %c (%h, %w) then {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %p = tandem.mul %a, %b : tensor<4xf32>
        tandem.yield %p : tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %e = tandem.silu %a : tensor<4xf32>
        tandem.yield %e : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y, %i : tensor<4xf32>, tensor<i64>
  }
}
