// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-record-readers | FileCheck %s

// The backward says who reads first what it takes of the forward; what the
// forward saves says the same.
// CHECK: func.func @forward
// CHECK-SAME: input "x" {requires_grad}
// CHECK-SAME: saved "sin.0" {where = "'tandem.exp' at record-readers.mlir:[[#EXP:]]:10"}
// CHECK-SAME: saved "unread">
// CHECK: func.func @backward
// CHECK-SAME: input "x" {requires_grad, where = "'tandem.mul' at record-readers.mlir:[[#]]:10"}
// CHECK-SAME: saved "sin.0" {where = "'tandem.exp' at record-readers.mlir:[[#EXP]]:10"}
// CHECK-SAME: saved "unread">
// CHECK-SAME: cotangent of "y">
module {
  func.func @forward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0">},
          tensor<8xf32> {tandem.role = #tandem.role<saved "unread">}) {
    %s = tandem.sin %x : tensor<8xf32>
    %y = tandem.exp %s : tensor<8xf32>
    return %y, %s, %y : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  func.func @backward(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %s: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0">},
      %u: tensor<8xf32> {tandem.role = #tandem.role<saved "unread">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.exp %s : tensor<8xf32>
    %d = tandem.mul %y, %x : tensor<8xf32>
    %e = tandem.mul %d, %s : tensor<8xf32>
    %g = tandem.mul %e, %dy : tensor<8xf32>
    return %g : tensor<8xf32>
  }
}

// -----

module {
  // expected-error@+1 {{expected argument #0 to have a role}}
  func.func @backward(%x: tensor<8xf32>, %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">}) { return }
}
