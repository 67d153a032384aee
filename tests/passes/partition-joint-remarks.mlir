// RUN: tandem-opt %s -verify-diagnostics "-tandem-partition-joint=kind=min-cut remarks=true"

module attributes {tandem.phase = "optimize"} {
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    // expected-remark@+1 {{saved the result of 'tandem.matmul' ('tensor<4x4xf32>', 64 bytes): contraction ops are not computed again; making it again would take 1.0 us}}
    %m = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    // expected-remark@+1 {{'tandem.exp' is computed again in the backward, in 0.0 us: a kernel of the backward is expected to take it in}}
    %e = tandem.exp %m {tandem.pass = "forward"} : tensor<4x4xf32>
    %y = tandem.sin %e {tandem.pass = "forward"} : tensor<4x4xf32>
    %c = tandem.cos %e {tandem.pass = "backward"} : tensor<4x4xf32>
    %f = tandem.mul %c, %m {tandem.pass = "backward"} : tensor<4x4xf32>
    %d = tandem.mul %dy, %f {tandem.pass = "backward"} : tensor<4x4xf32>
    %h = tandem.mul %d, %m {tandem.pass = "backward"} : tensor<4x4xf32>
    %g = tandem.matmul %x, %h {transpose_lhs, tandem.pass = "backward"} : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    return %y, %g : tensor<4x4xf32>, tensor<8x4xf32>
  }
  func.func @evaluate() { return }
}
