// RUN: tandem-opt %s -verify-diagnostics -tandem-check-plan

// An edited dump: the pieces of the others would overwrite what is sent.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<8x4xf32> {tandem.role = #tandem.role<output "y">}) attributes {tandem.plan = #tandem.plan<arena_bytes = 128, peak_bytes = 128, lower_bound_bytes = 128>} {
    %0 = tandem.kernel "exp"(%x) {
    ^bb0(%a: tensor<4x4xf32>):
      %p = tandem.exp %a : tensor<4x4xf32>
      tandem.yield %p : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{expected values that live at once to have places of their own, but #tandem.buffer<arena 0> is taken}}
    %1 = tandem.kernel "all_gather"(%0) {
    ^bb0(%a: tensor<4x4xf32>):
      %p = tandem.all_gather %a dim 0 over ["data"] : tensor<4x4xf32> -> tensor<8x4xf32>
      tandem.yield %p : tensor<8x4xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = tandem.kernel "exp"(%1) {
    ^bb0(%a: tensor<8x4xf32>):
      %p = tandem.exp %a : tensor<8x4xf32>
      tandem.yield %p : tensor<8x4xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
