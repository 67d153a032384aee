// RUN: tandem-opt %s -split-input-file -tandem-form-kernels -tandem-join-pointwise | FileCheck %s

// Two small kernels whose results are only returned are parts of one.
// CHECK-LABEL: module @joined
// CHECK: tandem.kernel {{.*}}(%arg0, %arg1)
// CHECK: parts
// CHECK-NOT: tandem.kernel
// CHECK: return
module @joined attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @update(%x: tensor<64xf32> {tandem.role = #tandem.role<param "x">}, %z: tensor<32xf32> {tandem.role = #tandem.role<param "z">}) -> (tensor<64xf32> {tandem.role = #tandem.role<update of "x">}, tensor<32xf32> {tandem.role = #tandem.role<update of "z">}) {
    %y = tandem.exp %x : tensor<64xf32>
    %w = tandem.sqrt %z : tensor<32xf32>
    return %y, %w : tensor<64xf32>, tensor<32xf32>
  }
}

// -----

// So are updates of vectors that begin with the sum of a gradient's parts. What
// sums rows is not: its threads share no columns.
// CHECK-LABEL: module @sums
// CHECK: tandem.kernel "fused_reduce_sum_sub"
// CHECK-SAME: (%arg4, %arg5)
// CHECK: tandem.kernel "fused_reduce_sum_sub_x2"
// CHECK-SAME: (%arg0, %arg1, %arg2, %arg3)
// CHECK: parts = array<i64: 1, 1>
// CHECK-NOT: tandem.kernel
// CHECK: return
module @sums attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @update(%a: tensor<16x64xf32> {tandem.role = #tandem.role<input "a">}, %x: tensor<64xf32> {tandem.role = #tandem.role<param "x">}, %b: tensor<8x64xf32> {tandem.role = #tandem.role<input "b">}, %y: tensor<64xf32> {tandem.role = #tandem.role<param "y">}, %c: tensor<64x16xf32> {tandem.role = #tandem.role<input "c">}, %z: tensor<64xf32> {tandem.role = #tandem.role<param "z">}) -> (tensor<64xf32> {tandem.role = #tandem.role<update of "x">}, tensor<64xf32> {tandem.role = #tandem.role<update of "y">}, tensor<64xf32> {tandem.role = #tandem.role<update of "z">}) {
    %s = tandem.reduce_sum %a over [0] : tensor<16x64xf32> -> tensor<64xf32>
    %t = tandem.reduce_sum %b over [0] : tensor<8x64xf32> -> tensor<64xf32>
    %u = tandem.reduce_sum %c over [1] : tensor<64x16xf32> -> tensor<64xf32>
    %p = tandem.sub %x, %s : tensor<64xf32>
    %q = tandem.sub %y, %t : tensor<64xf32>
    %r = tandem.sub %z, %u : tensor<64xf32>
    return %p, %q, %r : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
}
