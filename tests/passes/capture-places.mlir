// Every op has a place in the model, or a name: messages about gradients and
// saved values say where.
//
// RUN: not tandem-opt %s -tandem-functionalize 2>&1 | FileCheck %s

// CHECK: phase 'capture' left 'tandem.exp' without a place in the model
// CHECK-NOT: phase 'capture'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.exp %x : tensor<4xf32> loc(unknown)
    %b = tandem.sin %a : tensor<4xf32> loc("sine")
    %y = tandem.cos %b : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
