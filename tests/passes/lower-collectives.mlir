// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-lower-collectives | FileCheck %s

// A kernel around a collective is the collective; other kernels stay.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @evaluate
  // CHECK-NEXT: %[[X:.*]] = tandem.all_reduce sum %arg0 over ["data"] {buffer = #tandem.buffer<arena 0>}
  // CHECK-NEXT: tandem.barrier over ["data"]
  // CHECK-NEXT: tandem.kernel "exp"(%[[X]])
  func.func @evaluate(%h: tensor<64xf32> {tandem.role = #tandem.role<input "h">}) -> (tensor<64xf32> {tandem.role = #tandem.role<output "y">}) {
    %x = tandem.kernel "all_reduce" (%h) {
    ^bb0(%a: tensor<64xf32>):
      %0 = tandem.all_reduce sum %a over ["data"] : tensor<64xf32> -> tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    tandem.kernel "barrier" () {
      tandem.barrier over ["data"]
      tandem.yield
    } : () -> ()
    %y = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<64xf32>):
      %0 = tandem.exp %a : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    return %y : tensor<64xf32>
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>, tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%h: tensor<64x2xf32> {tandem.role = #tandem.role<input "h">}) -> (tensor<64x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %x = tandem.kernel "all_gather" (%h) {
    ^bb0(%a: tensor<64x2xf32>):
      // expected-error @+1 {{'tandem.all_gather' op expected 'dim' to be 0 in a planned program, but got 1}}
      %0 = tandem.all_gather %a dim 1 over ["data"] : tensor<64x2xf32> -> tensor<64x4xf32>
      tandem.yield %0 : tensor<64x4xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<64x2xf32>) -> tensor<64x4xf32>
    return %x : tensor<64x4xf32>
  }
}
