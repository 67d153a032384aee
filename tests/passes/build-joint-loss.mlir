// RUN: tandem-opt %s -split-input-file -tandem-build-joint=inference=true | FileCheck %s

// An artifact for inference computed the loss, and wanted labels for it.
// CHECK-LABEL: module @labels
module @labels attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @evaluate(%{{[a-z0-9]+}}: tensor<4x10xf32> {tandem.role = #tandem.role<input "x">},
  // CHECK-SAME: %{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<input "unused">})
  // CHECK-SAME: -> (tensor<4x10xf32> {tandem.role = #tandem.role<output "y">})
  // CHECK-NEXT: tandem.neg
  // CHECK-NEXT: return
  func.func @graph(
      %x: tensor<4x10xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<4xi64> {tandem.role = #tandem.role<input "labels">},
      %unused: tensor<4xf32> {tandem.role = #tandem.role<input "unused">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<4x10xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.neg %x : tensor<4x10xf32>
    %loss = tandem.cross_entropy %y, %labels : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<4x10xf32>
  }
}

// -----

// The loss that the module names; its labels are read by another output.
// CHECK-LABEL: module @named
module @named attributes {tandem.phase = "functionalize", tandem.loss = "cost"} {
  // CHECK: func.func @evaluate({{.*}}input "x">}, {{.*}}input "labels" {high = 10 : i64}>})
  // CHECK-SAME: -> (tensor<4xi1> {tandem.role = #tandem.role<output "hit">})
  func.func @graph(
      %x: tensor<4x10xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 10 : i64}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "cost">},
          tensor<4xi1> {tandem.role = #tandem.role<output "hit">}) {
    %loss = tandem.cross_entropy %x, %labels : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    %best = tandem.argmax %x dim 1 : tensor<4x10xf32> -> tensor<4xi64>
    %hit = tandem.compare eq %best, %labels : tensor<4xi64>
    return %loss, %hit : tensor<f32>, tensor<4xi1>
  }
}

// -----

// A graph with nothing but a loss keeps it.
// CHECK-LABEL: module @alone
module @alone attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @evaluate({{.*}}-> (tensor<f32> {tandem.role = #tandem.role<output "loss">})
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %loss = tandem.reduce_sum %x over [0] : tensor<4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
