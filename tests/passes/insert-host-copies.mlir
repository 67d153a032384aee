// RUN: tandem-opt %s -tandem-insert-host-copies | FileCheck %s

// What is saved in the host's memory goes there behind the op that makes it, and
// comes back before all that reads it.
// CHECK-LABEL: func.func @forward
// CHECK: %[[S:.*]] = tandem.sin
// CHECK-NEXT: %[[H:.*]] = tandem.to_host %[[S]] : tensor<8xf32>
// CHECK-NEXT: %[[E:.*]] = tandem.exp %[[S]]
// CHECK-NEXT: return %[[E]], %[[H]], %[[E]]
// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {host}>}
// CHECK-NEXT: %[[D:.*]] = tandem.to_device %[[A]] : tensor<8xf32>
// CHECK-NEXT: tandem.cos %[[D]]
// CHECK-NOT: tandem.to_device
module {
  func.func @forward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {host}>},
          tensor<8xf32> {tandem.role = #tandem.role<saved "exp.0">}) {
    %s = tandem.sin %x : tensor<8xf32>
    %e = tandem.exp %s : tensor<8xf32>
    return %e, %s, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  func.func @backward(
      %s: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {host}>},
      %e: tensor<8xf32> {tandem.role = #tandem.role<saved "exp.0">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %c = tandem.cos %s : tensor<8xf32>
    %d = tandem.mul %c, %e : tensor<8xf32>
    %g = tandem.mul %d, %dy : tensor<8xf32>
    return %g : tensor<8xf32>
  }
}
