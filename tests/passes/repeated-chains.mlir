// RUN: tandem-opt %s --tandem-form-kernels --split-input-file | FileCheck %s

// What a kernel would compute anew for each element of what is eight times as
// large is a kernel of its own where it is much; its last ops may be repeated.
// CHECK-LABEL: module @much
// CHECK: tandem.kernel
// CHECK: tandem.yield {{.*}} : tensor<64x64xf32>
// CHECK: tandem.kernel
// CHECK: tandem.reduce_sum
// CHECK: return
module @much {
  func.func @evaluate(%a: tensor<64x64xf32> {tandem.role = #tandem.role<input "a">}, %b: tensor<64x64xf32> {tandem.role = #tandem.role<input "b">}, %c: tensor<64x8x64xf32> {tandem.role = #tandem.role<input "c">}) -> (tensor<64x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %m0 = tandem.mul %a, %b : tensor<64x64xf32>
    %m1 = tandem.mul %m0, %b : tensor<64x64xf32>
    %m2 = tandem.mul %m1, %b : tensor<64x64xf32>
    %m3 = tandem.mul %m2, %b : tensor<64x64xf32>
    %m4 = tandem.mul %m3, %b : tensor<64x64xf32>
    %m5 = tandem.mul %m4, %b : tensor<64x64xf32>
    %m6 = tandem.mul %m5, %b : tensor<64x64xf32>
    %m7 = tandem.mul %m6, %b : tensor<64x64xf32>
    %m8 = tandem.mul %m7, %b : tensor<64x64xf32>
    %m9 = tandem.mul %m8, %b : tensor<64x64xf32>
    %m10 = tandem.mul %m9, %b : tensor<64x64xf32>
    %m11 = tandem.mul %m10, %b : tensor<64x64xf32>
    %m12 = tandem.mul %m11, %b : tensor<64x64xf32>
    %m13 = tandem.mul %m12, %b : tensor<64x64xf32>
    %m14 = tandem.mul %m13, %b : tensor<64x64xf32>
    %m15 = tandem.mul %m14, %b : tensor<64x64xf32>
    %m16 = tandem.mul %m15, %b : tensor<64x64xf32>
    %m17 = tandem.mul %m16, %b : tensor<64x64xf32>
    %m18 = tandem.mul %m17, %b : tensor<64x64xf32>
    %m19 = tandem.mul %m18, %b : tensor<64x64xf32>
    %m20 = tandem.mul %m19, %b : tensor<64x64xf32>
    %m21 = tandem.mul %m20, %b : tensor<64x64xf32>
    %m22 = tandem.mul %m21, %b : tensor<64x64xf32>
    %m23 = tandem.mul %m22, %b : tensor<64x64xf32>
    %m24 = tandem.mul %m23, %b : tensor<64x64xf32>
    %m25 = tandem.mul %m24, %b : tensor<64x64xf32>
    %m26 = tandem.mul %m25, %b : tensor<64x64xf32>
    %m27 = tandem.mul %m26, %b : tensor<64x64xf32>
    %m28 = tandem.mul %m27, %b : tensor<64x64xf32>
    %m29 = tandem.mul %m28, %b : tensor<64x64xf32>
    %m30 = tandem.mul %m29, %b : tensor<64x64xf32>
    %m31 = tandem.mul %m30, %b : tensor<64x64xf32>
    %m32 = tandem.mul %m31, %b : tensor<64x64xf32>
    %m33 = tandem.mul %m32, %b : tensor<64x64xf32>
    %m34 = tandem.mul %m33, %b : tensor<64x64xf32>
    %m35 = tandem.mul %m34, %b : tensor<64x64xf32>
    %m36 = tandem.mul %m35, %b : tensor<64x64xf32>
    %m37 = tandem.mul %m36, %b : tensor<64x64xf32>
    %m38 = tandem.mul %m37, %b : tensor<64x64xf32>
    %m39 = tandem.mul %m38, %b : tensor<64x64xf32>
    %m40 = tandem.mul %m39, %b : tensor<64x64xf32>
    %m41 = tandem.mul %m40, %b : tensor<64x64xf32>
    %m42 = tandem.mul %m41, %b : tensor<64x64xf32>
    %m43 = tandem.mul %m42, %b : tensor<64x64xf32>
    %m44 = tandem.mul %m43, %b : tensor<64x64xf32>
    %m45 = tandem.mul %m44, %b : tensor<64x64xf32>
    %m46 = tandem.mul %m45, %b : tensor<64x64xf32>
    %m47 = tandem.mul %m46, %b : tensor<64x64xf32>
    %m48 = tandem.mul %m47, %b : tensor<64x64xf32>
    %m49 = tandem.mul %m48, %b : tensor<64x64xf32>
    %m50 = tandem.mul %m49, %b : tensor<64x64xf32>
    %m51 = tandem.mul %m50, %b : tensor<64x64xf32>
    %m52 = tandem.mul %m51, %b : tensor<64x64xf32>
    %m53 = tandem.mul %m52, %b : tensor<64x64xf32>
    %m54 = tandem.mul %m53, %b : tensor<64x64xf32>
    %m55 = tandem.mul %m54, %b : tensor<64x64xf32>
    %m56 = tandem.mul %m55, %b : tensor<64x64xf32>
    %m57 = tandem.mul %m56, %b : tensor<64x64xf32>
    %m58 = tandem.mul %m57, %b : tensor<64x64xf32>
    %m59 = tandem.mul %m58, %b : tensor<64x64xf32>
    %l = tandem.broadcast %m59 to [64, 8, 64] along [0, 2] : tensor<64x64xf32> -> tensor<64x8x64xf32>
    %p = tandem.mul %l, %c : tensor<64x8x64xf32>
    %y = tandem.reduce_sum %p over [2] : tensor<64x8x64xf32> -> tensor<64x8xf32>
    return %y : tensor<64x8xf32>
  }
}

// -----

// CHECK-LABEL: module @little
// CHECK: tandem.kernel
// CHECK: tandem.reduce_sum
// CHECK-NOT: tandem.kernel
// CHECK: return
module @little {
  func.func @evaluate(%a: tensor<64x64xf32> {tandem.role = #tandem.role<input "a">}, %b: tensor<64x64xf32> {tandem.role = #tandem.role<input "b">}, %c: tensor<64x8x64xf32> {tandem.role = #tandem.role<input "c">}) -> (tensor<64x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %m0 = tandem.mul %a, %b : tensor<64x64xf32>
    %m1 = tandem.mul %m0, %b : tensor<64x64xf32>
    %m2 = tandem.mul %m1, %b : tensor<64x64xf32>
    %m3 = tandem.mul %m2, %b : tensor<64x64xf32>
    %m4 = tandem.mul %m3, %b : tensor<64x64xf32>
    %m5 = tandem.mul %m4, %b : tensor<64x64xf32>
    %m6 = tandem.mul %m5, %b : tensor<64x64xf32>
    %m7 = tandem.mul %m6, %b : tensor<64x64xf32>
    %m8 = tandem.mul %m7, %b : tensor<64x64xf32>
    %m9 = tandem.mul %m8, %b : tensor<64x64xf32>
    %m10 = tandem.mul %m9, %b : tensor<64x64xf32>
    %m11 = tandem.mul %m10, %b : tensor<64x64xf32>
    %m12 = tandem.mul %m11, %b : tensor<64x64xf32>
    %m13 = tandem.mul %m12, %b : tensor<64x64xf32>
    %m14 = tandem.mul %m13, %b : tensor<64x64xf32>
    %m15 = tandem.mul %m14, %b : tensor<64x64xf32>
    %m16 = tandem.mul %m15, %b : tensor<64x64xf32>
    %m17 = tandem.mul %m16, %b : tensor<64x64xf32>
    %m18 = tandem.mul %m17, %b : tensor<64x64xf32>
    %m19 = tandem.mul %m18, %b : tensor<64x64xf32>
    %l = tandem.broadcast %m19 to [64, 8, 64] along [0, 2] : tensor<64x64xf32> -> tensor<64x8x64xf32>
    %p = tandem.mul %l, %c : tensor<64x8x64xf32>
    %y = tandem.reduce_sum %p over [2] : tensor<64x8x64xf32> -> tensor<64x8xf32>
    return %y : tensor<64x8xf32>
  }
}
