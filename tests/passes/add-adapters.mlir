// RUN: tandem-opt %s -split-input-file -tandem-add-adapters -verify-diagnostics | FileCheck %s

// A product gets the adapter's; the adapter alone is trained. A weight that
// lies as [in, out] says so in the name of its scale.
// CHECK: module {
// CHECK-LABEL: func.func @graph
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<3x6xf32> {tandem.role = #tandem.role<param "l.weight" {init = {kind = "constant", value = 1.000000e+00 : f64}}>}
// CHECK-SAME: %{{.*}}: tensor<3xf32> {tandem.role = #tandem.role<param "l.bias">}
// CHECK-SAME: %[[V:.*]]: tensor<3x5xf32> {tandem.role = #tandem.role<param "v">}
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<2x6xf32> {tandem.role = #tandem.role<param "l.lora_A.weight" {init = {high = {{[0-9.]+}} : f64, kind = "uniform", low = -{{[0-9.]+}} : f64}, requires_grad}>}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<3x2xf32> {tandem.role = #tandem.role<param "l.lora_B.weight" {init = {kind = "constant", value = 0.000000e+00 : f64}, requires_grad}>}
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<param "l.lora_scale" {init = {kind = "constant", value = 2.000000e+00 : f64}}>}
// CHECK-SAME: "v.lora_A"
// CHECK-SAME: "v.lora_B"
// CHECK-SAME: "v.lora_scale.fan_in_fan_out"
// CHECK: %[[Y:.*]] = tandem.linear %[[X]], %[[W]]
// CHECK: %[[P:.*]] = tandem.linear %[[X]], %[[A]]
// CHECK: %[[Q:.*]] = tandem.linear %[[P]], %[[B]]
// CHECK: %[[SB:.*]] = tandem.broadcast %[[S]]
// CHECK: %[[M:.*]] = tandem.mul %[[Q]], %[[SB]]
// CHECK: %[[R:.*]] = tandem.add %[[Y]], %[[M]]
// CHECK: tandem.matmul %[[R]], %[[V]]
module attributes {tandem.lora = ".:rank=2,alpha=4"} {
  func.func @graph(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "l.weight" {init = {kind = "constant", value = 1.0}, requires_grad}>},
                   %b: tensor<3xf32> {tandem.role = #tandem.role<param "l.bias" {requires_grad}>},
                   %v: tensor<3x5xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>})
      -> (tensor<4x5xf32> {tandem.role = #tandem.role<output "y">}) {
    %h = tandem.linear %x, %w, %b : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %y = tandem.matmul %h, %v : tensor<4x3xf32>, tensor<3x5xf32> -> tensor<4x5xf32>
    return %y : tensor<4x5xf32>
  }
}

// -----

module attributes {tandem.lora = "bias:rank=2"} {
  // expected-error @+1 {{--lora: 'bias' matches no weight that is the right factor of a product; there are 'w'}}
  func.func @graph(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %h = tandem.linear %x, %w : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %h : tensor<4x3xf32>
  }
}

// -----

module attributes {tandem.lora = "w:rank=2,modules_to_save=head"} {
  // expected-error @+1 {{--lora: modules_to_save 'head' matches no parameter of floats; there are 'w'}}
  func.func @graph(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %h = tandem.linear %x, %w : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %h : tensor<4x3xf32>
  }
}

// -----

// A tied table: the adapter of the product would not be one of the rows.
module attributes {tandem.lora = "w:rank=2"} {
  func.func @graph(%i: tensor<4xi64> {tandem.role = #tandem.role<input "i">},
                   %w: tensor<3x6xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error @+1 {{--lora: 'w' is read by 'tandem.take' besides its products, which an adapter would not change: expected the expression to leave it out}}
    %x = tandem.take %w, %i : tensor<3x6xf32>, tensor<4xi64> -> tensor<4x6xf32>
    %h = tandem.linear %x, %w : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %h : tensor<4x3xf32>
  }
}

// -----

// expected-error @+1 {{'tandem.lora': expected rank to be from 1 to 65536, but got '0'}}
module attributes {tandem.lora = "w:rank=0"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<f32>
  }
}

// -----

// A weight that is repeated for each batch of a product is one of a product.
// CHECK-LABEL: func.func @graph
// CHECK: %[[Y:.*]] = tandem.matmul
// CHECK: tandem.linear %{{.*}} : (tensor<2x4x6xf32>, tensor<2x6xf32>) -> tensor<2x4x2xf32>
module attributes {tandem.lora = "w:rank=2"} {
  func.func @graph(%x: tensor<2x4x6xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<6x3xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<2x4x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %b = tandem.broadcast %w to [2, 6, 3] along [1, 2] : tensor<6x3xf32> -> tensor<2x6x3xf32>
    %y = tandem.matmul %x, %b : tensor<2x4x6xf32>, tensor<2x6x3xf32> -> tensor<2x4x3xf32>
    return %y : tensor<2x4x3xf32>
  }
}
