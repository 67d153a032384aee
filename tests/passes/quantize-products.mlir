// RUN: tandem-opt %s -split-input-file -tandem-quantize-products -verify-diagnostics | FileCheck %s

// The histories are states behind the other arguments; those of the factors are
// updates of the graph, that of the gradient is the backward's. The bias is
// added outside.
// CHECK-LABEL: func.func @graph
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x2x6xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<3x6xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<3xf32>
// CHECK-SAME: %[[HX:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<state "fp8.x:w" {init = {kind = "constant", value = 0.000000e+00 : f64}}>}
// CHECK-SAME: %[[HW:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<state "fp8.w:w"
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<state "fp8.grad:w"
// CHECK-SAME: update of "fp8.x:w" {where = "'tandem.custom_vjp' 'fp8' at quantize-products.mlir:{{[0-9]+}}:10"}
// CHECK-SAME: update of "fp8.w:w"
// CHECK-NOT: update of
// CHECK: %[[FLAT:.*]] = tandem.reshape %[[X]] to [4, 6]
// CHECK: %[[Y:.*]]:7 = tandem.custom_vjp "fp8"(%[[FLAT]], %[[W]], %[[HX]], %[[HW]]) forward {
// CHECK: tandem.reduce_max %{{.*}} over [0] : tensor<4xf32> -> tensor<f32>
// CHECK: tandem.cast %{{.*}} : tensor<4x6xf32> to tensor<4x6xf8E4M3FN>
// CHECK: tandem.cast %{{.*}} : tensor<3x6xf32> to tensor<3x6xf8E4M3FN>
// CHECK: tandem.matmul %{{.*}}, %{{.*}} {precision = "tf32", transpose_rhs} : tensor<4x6xf32>, tensor<3x6xf32> -> tensor<4x3xf32>
// CHECK: } backward {
// CHECK: tandem.cast %{{.*}} : tensor<4x3xf32> to tensor<4x3xf8E5M2>
// CHECK: tandem.matmul {{.*}} -> tensor<4x6xf32>
// CHECK: tandem.matmul {{.*}} -> tensor<3x6xf32>
// CHECK: differentiable = 2 : i64, first_order, outputs = 1 : i64, saved = 4 : i64, states = [{name = "fp8.grad:w", written}]
// CHECK: %[[BB:.*]] = tandem.broadcast %[[B]]
// CHECK: %[[SUM:.*]] = tandem.add %[[Y]]#0, %[[BB]]
// CHECK: %[[R:.*]] = tandem.reshape %[[SUM]] to [2, 2, 3]
// CHECK: return %[[R]], %[[Y]]#1, %[[Y]]#2
module attributes {tandem.fp8 = "^w$:amax_history_len=4,margin=1"} {
  // expected-remark @+1 {{--fp8: 1 product has factors of f8E4M3FN and gradients of f8E5M2; the target multiplies f8 values in f32: exact, but slower than without --fp8}}
  func.func @graph(%x: tensor<2x2x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %b: tensor<3xf32> {tandem.role = #tandem.role<param "b" {requires_grad}>})
      -> (tensor<2x2x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.linear %x, %w, %b : (tensor<2x2x6xf32>, tensor<3x6xf32>, tensor<3xf32>) -> tensor<2x2x3xf32>
    return %y : tensor<2x2x3xf32>
  }
}

// -----

module attributes {tandem.fp8 = "b"} {
  // expected-error @+1 {{--fp8: 'b' matches no weight that is the right factor of a product; there are 'w'}}
  func.func @graph(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %b: tensor<3xf32> {tandem.role = #tandem.role<param "b" {requires_grad}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.linear %x, %w, %b : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}

// -----

module attributes {tandem.fp8 = "w"} {
  func.func @graph(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error @+1 {{--fp8: a product of 'w' has a type by --precision: expected the expression to leave it out}}
    %y = tandem.linear %x, %w {tandem.compute_type = f32} : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}

// -----

// expected-error @+1 {{'tandem.fp8': expected margin to be from 0 to 16, but got '-1'}}
module attributes {tandem.fp8 = "w:margin=-1"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<f32>
  }
}
