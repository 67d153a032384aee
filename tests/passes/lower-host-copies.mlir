// RUN: tandem-opt %s -split-input-file -tandem-lower-host-copies | FileCheck %s

// A kernel around a copy is the copy; other kernels stay.
// CHECK-LABEL: func.func @backward
// CHECK-NEXT: %[[X:.*]] = tandem.to_device %arg0 {buffer = #tandem.buffer<arena 0>}
// CHECK-NEXT: tandem.kernel "exp"(%[[X]])
module {
  func.func @backward(%h: tensor<64xf32> {tandem.role = #tandem.role<saved "h" {host}>}) -> (tensor<64xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %x = tandem.kernel "to_device" (%h) {
    ^bb0(%a: tensor<64xf32>):
      %0 = tandem.to_device %a : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    %y = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<64xf32>):
      %0 = tandem.exp %a : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    return %y : tensor<64xf32>
  }
}
