// RUN: tandem-opt %s -split-input-file -tandem-partition-joint | FileCheck %s

// What the backward needs of an all-reduce is saved, whatever that takes and
// whatever the region says; what the backward gathers itself, the forward does
// not.
// CHECK-LABEL: func.func @forward
// CHECK: %[[S:.*]] = tandem.all_reduce sum %{{.*}} over ["data"]
// CHECK-NOT: tandem.all_gather
// CHECK-NOT: tandem.all_reduce
// CHECK: return
// CHECK-LABEL: func.func @backward
// CHECK: tandem.all_gather %{{.*}} dim 0 over ["data"]
// CHECK-NOT: tandem.all_reduce
// CHECK: return
module @m attributes {tandem.phase = "optimize", tandem.loss = "y", tandem.mesh = #tandem.mesh<data = 2>} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<2xf32> {tandem.role = #tandem.role<param "w">},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<4xf32>
    %s = tandem.all_reduce sum %e over ["data"] {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<4xf32> -> tensor<4xf32>
    %y = tandem.sin %s {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<4xf32>
    %g = tandem.all_gather %w dim 0 over ["data"] {tandem.pass = "backward"} : tensor<2xf32> -> tensor<4xf32>
    %c = tandem.cos %s {tandem.pass = "backward"} : tensor<4xf32>
    %d = tandem.mul %c, %dy {tandem.pass = "backward"} : tensor<4xf32>
    %dx = tandem.mul %d, %g {tandem.pass = "backward"} : tensor<4xf32>
    return %y, %dx : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<4xf32>
  }
}
