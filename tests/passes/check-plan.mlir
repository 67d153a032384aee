// RUN: tandem-opt %s -verify-diagnostics -tandem-check-plan

// The second product writes over what it reads.
module {
  func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) attributes {tandem.plan = #tandem.plan<arena_bytes = 64, peak_bytes = 64, lower_bound_bytes = 64>} {
    %0 = tandem.kernel "first"(%x) {
    ^bb0(%a: tensor<4x4xf32>):
      %p = tandem.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %p : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error@+1 {{expected values that live at once to have places of their own, but #tandem.buffer<arena 0> is taken}}
    %1 = tandem.kernel "second"(%0) {
    ^bb0(%a: tensor<4x4xf32>):
      %p = tandem.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %p : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = tandem.kernel "third"(%1, %0) {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %p = tandem.matmul %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %p : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}
