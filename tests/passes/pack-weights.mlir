// RUN: tandem-opt %s -split-input-file -tandem-pack-weights | FileCheck %s

// Products of some rows read panels of their weights, which two of them share:
// views that say what they are to be called. Products of one row, and of what
// changes, do not.
// CHECK-LABEL: module @weights
// CHECK: func.func @evaluate
// CHECK: %[[R:.*]] = tandem.reshape %[[W:[a-z0-9]+]] to [512, 4, 64]
// CHECK: %[[P:.*]] = tandem.permute %[[R]] by [1, 0, 2] {tandem.prepared = "panels"}
// CHECK: %[[Q:.*]] = tandem.permute %[[P]] by [1, 0, 2] :
// CHECK: %[[V:.*]] = tandem.reshape %[[Q]] to [512, 256]
// CHECK: tandem.matmul %{{[a-z0-9]+}}, %[[V]]
// CHECK-NOT: tandem.prepared
// CHECK: tandem.permute %[[P]] by [1, 0, 2] :
// CHECK: tandem.matmul
// CHECK: tandem.matmul %{{[a-z0-9]+}}, %[[W]] : tensor<1x512xf32>
module @weights attributes {tandem.prepare, tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = ["avx2", "avx512f"]}>} {
  func.func @evaluate(
      %x: tensor<32x512xf32> {tandem.role = #tandem.role<input "x">},
      %y: tensor<64x512xf32> {tandem.role = #tandem.role<input "y">},
      %z: tensor<1x512xf32> {tandem.role = #tandem.role<input "z">},
      %w: tensor<512x256xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<32x256xf32> {tandem.role = #tandem.role<output "a">},
          tensor<64x256xf32> {tandem.role = #tandem.role<output "b">},
          tensor<1x256xf32> {tandem.role = #tandem.role<output "c">}) {
    %a = tandem.matmul %x, %w : tensor<32x512xf32>, tensor<512x256xf32> -> tensor<32x256xf32>
    %b = tandem.matmul %y, %w : tensor<64x512xf32>, tensor<512x256xf32> -> tensor<64x256xf32>
    %c = tandem.matmul %z, %w : tensor<1x512xf32>, tensor<512x256xf32> -> tensor<1x256xf32>
    return %a, %b, %c : tensor<32x256xf32>, tensor<64x256xf32>, tensor<1x256xf32>
  }
}

// -----

// Where nobody asks that anything be computed once.
// CHECK-LABEL: module @plain
// CHECK-NOT: tandem.permute
module @plain attributes {tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = ["avx2", "avx512f"]}>} {
  func.func @evaluate(
      %x: tensor<32x512xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<512x256xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<32x256xf32> {tandem.role = #tandem.role<output "a">}) {
    %a = tandem.matmul %x, %w : tensor<32x512xf32>, tensor<512x256xf32> -> tensor<32x256xf32>
    return %a : tensor<32x256xf32>
  }
}

// -----

// With vectors of 256 bits panels are as wide as a product's tiles.
// CHECK-LABEL: module @avx2
// CHECK: tandem.reshape %{{[a-z0-9]+}} to [512, 16, 16]
// CHECK: tandem.permute %{{.*}} by [1, 0, 2] {tandem.prepared = "panels"}
module @avx2 attributes {tandem.prepare, tandem.target = #tandem.target<cpu {arch = "x86-64-v3", features = ["avx2"]}>} {
  func.func @evaluate(
      %x: tensor<512x512xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<512x256xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<512x256xf32> {tandem.role = #tandem.role<output "a">}) {
    %a = tandem.matmul %x, %w : tensor<512x512xf32>, tensor<512x256xf32> -> tensor<512x256xf32>
    return %a : tensor<512x256xf32>
  }
}
