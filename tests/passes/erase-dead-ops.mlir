// RUN: tandem-opt %s -split-input-file -tandem-erase-dead-ops | FileCheck %s

// What nothing uses goes, and with it what only that uses.
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT: tandem.exp
// CHECK-NEXT: return
func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
  %a = tandem.sin %x : tensor<4xf32>
  %b = tandem.cos %a : tensor<4xf32>
  %y = tandem.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
