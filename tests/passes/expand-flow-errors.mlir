// RUN: tandem-opt %s -split-input-file -tandem-optimize-joint -verify-diagnostics

// For CUDA everything is expanded; every mistake is reported.
module attributes {tandem.phase = "joint", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<f32> {tandem.role = #tandem.role<input "x">},
                      %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}, tensor<f32> {tandem.role = #tandem.role<output "z">}) {
    // expected-error@+1 {{unsupported: 'tandem.while', whose number of iterations nothing bounds}}
    %y = tandem.while carries(%x) constants(%c) condition {
      ^bb0(%a: tensor<f32>, %d: tensor<i1>):
        tandem.yield %d : tensor<i1>
    } body {
      ^bb0(%a: tensor<f32>, %d: tensor<i1>):
        tandem.yield %a : tensor<f32>
    } : (tensor<f32>, tensor<i1>) -> tensor<f32>
    %z = tandem.scan 40000 carries(%x) inputs() constants() {
      ^bb0(%a: tensor<f32>):
        // expected-error@+1 {{unsupported: the loops of 'evaluate' become more than 30000 ops; expected fewer iterations}}
        %m = tandem.mul %a, %a : tensor<f32>
        tandem.yield %m : tensor<f32>
    } : (tensor<f32>) -> tensor<f32>
    return %y, %z : tensor<f32>, tensor<f32>
  }
}
