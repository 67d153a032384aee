// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// The gradient of a filter of few planes is a sum of parts, each of every 8th
// image, which are groups of a convolution of the same bytes. What follows from
// the gradient is done where parts are added.
// CHECK-LABEL: module @few_planes
// CHECK: %[[X:.*]] = tandem.reshape %arg0 to [4, 128, 32, 32]
// CHECK: %[[DY:.*]] = tandem.reshape %arg1 to [4, 128, 32, 32]
// CHECK: tandem.kernel "conv2d_filter_grad"(%[[X]], %[[DY]])
// CHECK: tandem.conv2d_filter_grad {{.*}} to [128, 16, 3, 3] {{.*}} groups 8
// CHECK: tandem.kernel "fused_reduce_sum_sub"
// CHECK: over [0] : tensor<8x16x16x3x3xf32> -> tensor<16x16x3x3xf32>
module @few_planes attributes {tandem.phase = "partition"} {
  func.func @update(%x: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "x">}, %dy: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "dy">}, %w: tensor<16x16x3x3xf32> {tandem.role = #tandem.role<param "w">}) -> (tensor<16x16x3x3xf32> {tandem.role = #tandem.role<update of "w">}) {
    %0 = tandem.conv2d_filter_grad %x, %dy to [16, 16, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<32x16x32x32xf32>, tensor<32x16x32x32xf32> -> tensor<16x16x3x3xf32>
    %1 = tandem.sub %w, %0 : tensor<16x16x3x3xf32>
    return %1 : tensor<16x16x3x3xf32>
  }
}

// -----

// Enough blocks of planes; and too little to be worth parts.
// CHECK-LABEL: module @whole
// CHECK: to [256, 256, 3, 3]
// CHECK: to [8, 8, 3, 3]
// CHECK-NOT: reduce_sum
module @whole attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<8x256x8x8xf32> {tandem.role = #tandem.role<input "x">}, %dy: tensor<8x256x8x8xf32> {tandem.role = #tandem.role<input "dy">}, %s: tensor<4x8x8x8xf32> {tandem.role = #tandem.role<input "s">}) -> (tensor<256x256x3x3xf32> {tandem.role = #tandem.role<output "a">}, tensor<8x8x3x3xf32> {tandem.role = #tandem.role<output "b">}) {
    %0 = tandem.conv2d_filter_grad %x, %dy to [256, 256, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<8x256x8x8xf32>, tensor<8x256x8x8xf32> -> tensor<256x256x3x3xf32>
    %1 = tandem.conv2d_filter_grad %s, %s to [8, 8, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<4x8x8x8xf32>, tensor<4x8x8x8xf32> -> tensor<8x8x3x3xf32>
    return %0, %1 : tensor<256x256x3x3xf32>, tensor<8x8x3x3xf32>
  }
}

// -----

// A GPU's code has its own ways.
// CHECK-LABEL: module @cuda
// CHECK: to [16, 16, 3, 3]
// CHECK-NOT: reduce_sum
module @cuda attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "x">}, %dy: tensor<32x16x32x32xf32> {tandem.role = #tandem.role<input "dy">}) -> (tensor<16x16x3x3xf32> {tandem.role = #tandem.role<output "w">}) {
    %0 = tandem.conv2d_filter_grad %x, %dy to [16, 16, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<32x16x32x32xf32>, tensor<32x16x32x32xf32> -> tensor<16x16x3x3xf32>
    return %0 : tensor<16x16x3x3xf32>
  }
}
