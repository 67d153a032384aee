// RUN: tandem-opt %s -tandem-split-filter-grads | FileCheck %s

// The gradient of a filter of few planes is a sum of parts, each of every 8th
// image. More of it: plan/split-filter-grads.mlir.
// CHECK-LABEL: func.func @update
// CHECK: tandem.reshape %{{[a-z0-9]+}} to [4, 128, 32, 32]
// CHECK: %[[P:.*]] = tandem.conv2d_filter_grad {{.*}} to [128, 16, 3, 3] {{.*}} groups 8
// CHECK: tandem.reduce_sum %{{[a-z0-9]+}} over [0] : tensor<8x16x16x3x3xf32> -> tensor<16x16x3x3xf32>
module {
  func.func @update(%x: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "x">}, %dy: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "dy">}) -> (tensor<16x16x3x3xf32> {tandem.role = #tandem.role<output "w">}) {
    %0 = tandem.conv2d_filter_grad %x, %dy to [16, 16, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<32x16x32x32xf32>, tensor<32x16x32x32xf32> -> tensor<16x16x3x3xf32>
    return %0 : tensor<16x16x3x3xf32>
  }

  // Sums of parts of bf16 are of f32.
  // CHECK-LABEL: func.func @narrow
  // CHECK: tandem.conv2d_filter_grad {{.*}} groups 8 {precision = "sums"} : {{.*}}xbf16> -> tensor<128x16x3x3xf32>
  // CHECK: %[[S:.*]] = tandem.reduce_sum %{{[a-z0-9]+}} over [0] : tensor<8x16x16x3x3xf32> -> tensor<16x16x3x3xf32>
  // CHECK: tandem.cast %[[S]] : tensor<16x16x3x3xf32> to tensor<16x16x3x3xbf16>
  func.func @narrow(%x: tensor<32x16x32x32xbf16> {tandem.role = #tandem.role<input "x">}, %dy: tensor<32x16x32x32xbf16> {tandem.role = #tandem.role<input "dy">}) -> (tensor<16x16x3x3xbf16> {tandem.role = #tandem.role<output "w">}) {
    %0 = tandem.conv2d_filter_grad %x, %dy to [16, 16, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<32x16x32x32xbf16>, tensor<32x16x32x32xbf16> -> tensor<16x16x3x3xbf16>
    return %0 : tensor<16x16x3x3xbf16>
  }
}
