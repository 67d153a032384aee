// RUN: tandem-opt %s -split-input-file -tandem-split-reductions | FileCheck %s

// A sum of very many elements into one: rows first, then their sums. Over a
// dimension of size 1 there is nothing to add.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[R:.*]] = tandem.reduce_sum %arg0 over [1] : tensor<512x512xf32> -> tensor<512xf32>
// CHECK: tandem.reduce_sum %[[R]] over [0] : tensor<512xf32> -> tensor<f32>
// CHECK: tandem.reshape %arg1 to [4]
// CHECK: return
func.func @evaluate(%x: tensor<512x512xf32> {tandem.role = #tandem.role<input "x">}, %z: tensor<4x1xf32> {tandem.role = #tandem.role<input "z">})
    -> (tensor<f32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<output "s">}) {
  %y = tandem.reduce_sum %x over [0, 1] : tensor<512x512xf32> -> tensor<f32>
  %s = tandem.reduce_sum %z over [1] : tensor<4x1xf32> -> tensor<4xf32>
  return %y, %s : tensor<f32>, tensor<4xf32>
}

// -----

// On GPUs rows are added in the fewest parts that give two blocks to each of 132
// multiprocessors, 24 of 128 columns for each of 16 parts; of short rows at
// least one block to each where a part has one. Few rows have fewer parts, and
// numbers without a divisor those of the outermost dimension.
// CHECK-LABEL: module @blocks
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<256x64x768xf32> -> tensor<256x768xf32>
// CHECK: tandem.reduce_sum {{.*}} over [0] : tensor<256x768xf32> -> tensor<768xf32>
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<16x1024x3072xf32> -> tensor<16x3072xf32>
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<32x16x768xf32> -> tensor<32x768xf32>
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<8x1021x64xf32> -> tensor<8x64xf32>
// CHECK: return
module @blocks attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%a: tensor<16x1024x768xbf16> {tandem.role = #tandem.role<input "a">}, %b: tensor<16x1024x3072xf32> {tandem.role = #tandem.role<input "b">}, %c: tensor<512x768xf32> {tandem.role = #tandem.role<input "c">}, %d: tensor<8x1021x64xf32> {tandem.role = #tandem.role<input "d">})
      -> (tensor<768xbf16> {tandem.role = #tandem.role<output "p">}, tensor<3072xf32> {tandem.role = #tandem.role<output "q">}, tensor<768xf32> {tandem.role = #tandem.role<output "r">}, tensor<64xf32> {tandem.role = #tandem.role<output "s">}) {
    %p = tandem.reduce_sum %a over [0, 1] : tensor<16x1024x768xbf16> -> tensor<768xbf16>
    %q = tandem.reduce_sum %b over [0, 1] : tensor<16x1024x3072xf32> -> tensor<3072xf32>
    %r = tandem.reduce_sum %c over [0] : tensor<512x768xf32> -> tensor<768xf32>
    %s = tandem.reduce_sum %d over [0, 1] : tensor<8x1021x64xf32> -> tensor<64xf32>
    return %p, %q, %r, %s : tensor<768xbf16>, tensor<3072xf32>, tensor<768xf32>, tensor<64xf32>
  }
}

// -----

// What a product makes is added in parts of 64 rows, which it can add itself
// where it stores whole tiles.
// CHECK-LABEL: module @tiles
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<64x64x3072xf32> -> tensor<64x3072xf32>
// CHECK: tandem.reduce_sum {{.*}} over [0] : tensor<64x3072xf32> -> tensor<3072xf32>
// CHECK: return
module @tiles attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x: tensor<4096x64xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x3072xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<3072xbf16> {tandem.role = #tandem.role<output "s">}) {
    %y = tandem.matmul %x, %w : tensor<4096x64xbf16>, tensor<64x3072xbf16> -> tensor<4096x3072xbf16>
    %r = tandem.relu %y : tensor<4096x3072xbf16>
    %v = tandem.reshape %r to [4, 1024, 3072] : tensor<4096x3072xbf16> -> tensor<4x1024x3072xbf16>
    %s = tandem.reduce_sum %v over [0, 1] : tensor<4x1024x3072xbf16> -> tensor<3072xbf16>
    return %s : tensor<3072xbf16>
  }
}
