// RUN: tandem-opt %s -split-input-file -tandem-inline-custom-vjps | FileCheck %s

// A function that nobody differentiates needs no custom backward.
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT: tandem.exp
// CHECK-NEXT: return
func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
  %y = tandem.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
