// RUN: tandem-opt %s -split-input-file -tandem-split-reductions -tandem-form-kernels | FileCheck %s

// A product of bytes whose result becomes bytes again finds their largest
// magnitude by parts of 64 rows on its way: what is stored is the bytes, and
// nobody makes the numbers of f32. (A kernel read them again.)
// CHECK-LABEL: module @bytes
// CHECK: tandem.kernel {{.*}}(%arg0, %arg1, %arg2) {
// CHECK-DAG: tandem.matmul
// CHECK-DAG: tandem.abs
// CHECK-DAG: tandem.reduce_max {{.*}} over [1] : tensor<4x64x512xf32> -> tensor<4x512xf32>
// CHECK: tandem.yield %{{[0-9]+}}, %{{[0-9]+}} : tensor<256x512xf8E4M3FN>, tensor<4x512xf32>
// CHECK: tandem.kernel
// CHECK: tandem.reduce_max {{.*}} over [1] : tensor<4x512xf32> -> tensor<4xf32>
// CHECK: tandem.reduce_max {{.*}} over [0] : tensor<4xf32> -> tensor<f32>
// CHECK: return
module @bytes attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<256x64xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x64xf8E4M3FN> {tandem.role = #tandem.role<input "w">}, %s: tensor<256x512xf32> {tandem.role = #tandem.role<input "s">}) -> (tensor<256x512xf8E4M3FN> {tandem.role = #tandem.role<output "q">}, tensor<f32> {tandem.role = #tandem.role<output "amax">}) {
    %a = tandem.cast %x : tensor<256x64xf8E4M3FN> to tensor<256x64xf32>
    %b = tandem.cast %w : tensor<512x64xf8E4M3FN> to tensor<512x64xf32>
    %y = tandem.matmul %a, %b {precision = "tf32", transpose_rhs} : tensor<256x64xf32>, tensor<512x64xf32> -> tensor<256x512xf32>
    %r = tandem.mul %y, %s : tensor<256x512xf32>
    %q = tandem.cast %r : tensor<256x512xf32> to tensor<256x512xf8E4M3FN>
    %m = tandem.abs %r : tensor<256x512xf32>
    %amax = tandem.reduce_max %m over [0, 1] : tensor<256x512xf32> -> tensor<f32>
    return %q, %amax : tensor<256x512xf8E4M3FN>, tensor<f32>
  }
}

// -----

// Of f32 it is another kernel that does, as are rows that are no whole tiles.
// CHECK-LABEL: module @wide
// CHECK: tandem.matmul
// CHECK-NOT: tandem.reduce_max
// CHECK: tandem.kernel
// CHECK: tandem.reduce_max
module @wide attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%a: tensor<256x64xf32> {tandem.role = #tandem.role<input "x">}, %b: tensor<512x64xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x512xf8E4M3FN> {tandem.role = #tandem.role<output "q">}, tensor<f32> {tandem.role = #tandem.role<output "amax">}) {
    %y = tandem.matmul %a, %b {precision = "tf32", transpose_rhs} : tensor<256x64xf32>, tensor<512x64xf32> -> tensor<256x512xf32>
    %q = tandem.cast %y : tensor<256x512xf32> to tensor<256x512xf8E4M3FN>
    %m = tandem.abs %y : tensor<256x512xf32>
    %amax = tandem.reduce_max %m over [0, 1] : tensor<256x512xf32> -> tensor<f32>
    return %q, %amax : tensor<256x512xf8E4M3FN>, tensor<f32>
  }
}

// -----

// CHECK-LABEL: module @parts_of_tiles
// CHECK: tandem.matmul
// CHECK-NOT: tandem.reduce_max
// CHECK: tandem.kernel
// CHECK: tandem.reduce_max
module @parts_of_tiles attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<320x64xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<512x64xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<320x512xf8E4M3FN> {tandem.role = #tandem.role<output "q">}, tensor<f32> {tandem.role = #tandem.role<output "amax">}) {
    %a = tandem.cast %x : tensor<320x64xf8E4M3FN> to tensor<320x64xf32>
    %b = tandem.cast %w : tensor<512x64xf8E4M3FN> to tensor<512x64xf32>
    %y = tandem.matmul %a, %b {precision = "tf32", transpose_rhs} : tensor<320x64xf32>, tensor<512x64xf32> -> tensor<320x512xf32>
    %q = tandem.cast %y : tensor<320x512xf32> to tensor<320x512xf8E4M3FN>
    %m = tandem.abs %y : tensor<320x512xf32>
    %amax = tandem.reduce_max %m over [0, 1] : tensor<320x512xf32> -> tensor<f32>
    return %q, %amax : tensor<320x512xf8E4M3FN>, tensor<f32>
  }
}
