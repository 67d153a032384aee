// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=default | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=min-cut | FileCheck %s

// What is to be offloaded is saved by every partition, like what is tagged
// 'save', and says that it is in the host's memory: the forward ends with a copy
// to it, the backward begins with one from it.
// CHECK-LABEL: module @offload
module @offload attributes {tandem.phase = "optimize", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "sin.0" {host, reason = "'tandem.offload' on 'tandem.sin' at partition-offload.mlir:[[#]]:[[#]]"
  // CHECK-NOT: tandem.offload
  // CHECK: %[[S:.*]] = tandem.sin
  // CHECK-NEXT: %[[H:.*]] = tandem.to_host %[[S]] : tensor<8xf32>
  // CHECK: return %{{.*}}, %[[H]]
  // CHECK: func.func @backward(
  // CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {host
  // CHECK: %[[D:.*]] = tandem.to_device %[[A]] : tensor<8xf32>
  // CHECK: tandem.cos %[[D]]
  // CHECK-NOT: %[[A]]
  // CHECK: return
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %s = tandem.sin %x {tandem.pass = "forward", tandem.offload} : tensor<8xf32>
    %y = tandem.sin %s {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.cos %s {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<8xf32>
    %2 = tandem.cos %x {tandem.pass = "backward"} : tensor<8xf32>
    %3 = tandem.mul %1, %2 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %3 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// Of a view it is what the view shows that leaves. An op may say 'save' as well.
// CHECK-LABEL: module @view
module @view attributes {tandem.phase = "optimize", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "exp.0" {host
  // CHECK: %[[E:.*]] = tandem.exp
  // CHECK-NEXT: tandem.to_host %[[E]] : tensor<2x4xf32>
  // CHECK-NOT: tandem.to_host
  // CHECK: func.func @backward(
  // CHECK: tandem.to_device
  // CHECK-NOT: tandem.to_device
  // CHECK: return
  func.func @joint(
      %x: tensor<2x4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<4x2xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward"} : tensor<2x4xf32>
    %p = tandem.permute %e by [1, 0] {tandem.pass = "forward", tandem.offload, tandem.save} : tensor<2x4xf32> -> tensor<4x2xf32>
    %y = tandem.sin %p {tandem.pass = "forward"} : tensor<4x2xf32>
    %0 = tandem.cos %p {tandem.pass = "backward"} : tensor<4x2xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<4x2xf32>
    %2 = tandem.permute %1 by [1, 0] {tandem.pass = "backward"} : tensor<4x2xf32> -> tensor<2x4xf32>
    %3 = tandem.mul %2, %e {tandem.pass = "backward"} : tensor<2x4xf32>
    return %y, %3 : tensor<4x2xf32>, tensor<2x4xf32>
  }
  func.func @evaluate() { return }
}
