// RUN: tandem-opt %s --tandem-thin-images --split-input-file | FileCheck %s

// Lines of 14 pixels fill no vectors of 8: what is seen is made an image.
// CHECK-LABEL: module @odd
// CHECK: [[SEEN:%.*]] = tandem.slice %arg0 from [0, 0, 0, 0] to [8, 256, 27, 27] step [1, 1, 2, 2] {tandem.pass = "forward"} : tensor<8x256x28x28xf32> -> tensor<8x256x14x14xf32>
// CHECK: tandem.conv2d [[SEEN]], %arg1 {tandem.pass = "forward"} : tensor<8x256x14x14xf32>, tensor<512x256x1x1xf32> -> tensor<8x512x14x14xf32>
module @odd attributes {tandem.target = #tandem.target<cpu {vector_bits = 256 : i64}>} {
  func.func @evaluate(%x: tensor<8x256x28x28xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x256x1x1xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x512x14x14xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.conv2d %x, %w strides [2, 2] {tandem.pass = "forward"} : tensor<8x256x28x28xf32>, tensor<512x256x1x1xf32> -> tensor<8x512x14x14xf32>
    return %y : tensor<8x512x14x14xf32>
  }
}

// -----

// Lines of 16 are read in place; so are windows of several pixels, and what is
// too little work for a slice.
// CHECK-LABEL: module @stays
// CHECK-NOT: tandem.slice
module @stays attributes {tandem.target = #tandem.target<cpu {vector_bits = 256 : i64}>} {
  func.func @evaluate(%x: tensor<8x256x32x32xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x256x1x1xf32> {tandem.role = #tandem.role<input "w">}, %v: tensor<512x256x3x3xf32> {tandem.role = #tandem.role<input "v">}, %s: tensor<1x8x28x28xf32> {tandem.role = #tandem.role<input "s">}, %u: tensor<4x8x1x1xf32> {tandem.role = #tandem.role<input "u">}) -> (tensor<8x512x16x16xf32> {tandem.role = #tandem.role<output "y">}, tensor<8x512x15x15xf32> {tandem.role = #tandem.role<output "z">}, tensor<1x4x14x14xf32> {tandem.role = #tandem.role<output "q">}) {
    %y = tandem.conv2d %x, %w strides [2, 2] : tensor<8x256x32x32xf32>, tensor<512x256x1x1xf32> -> tensor<8x512x16x16xf32>
    %z = tandem.conv2d %x, %v strides [2, 2] : tensor<8x256x32x32xf32>, tensor<512x256x3x3xf32> -> tensor<8x512x15x15xf32>
    %q = tandem.conv2d %s, %u strides [2, 2] : tensor<1x8x28x28xf32>, tensor<4x8x1x1xf32> -> tensor<1x4x14x14xf32>
    return %y, %z, %q : tensor<8x512x16x16xf32>, tensor<8x512x15x15xf32>, tensor<1x4x14x14xf32>
  }
}

// -----

// A GPU gathers windows as it goes.
// CHECK-LABEL: module @gpu
// CHECK-NOT: tandem.slice
module @gpu attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x: tensor<8x256x28x28xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x256x1x1xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x512x14x14xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.conv2d %x, %w strides [2, 2] : tensor<8x256x28x28xf32>, tensor<512x256x1x1xf32> -> tensor<8x512x14x14xf32>
    return %y : tensor<8x512x14x14xf32>
  }
}
