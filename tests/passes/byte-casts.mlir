// RUN: tandem-opt %s -split-input-file -tandem-form-kernels | FileCheck %s

// A product reads the bytes that both of its factors are casts of; the scale
// joins behind it.
// CHECK-LABEL: module @read
// CHECK: tandem.kernel "cast_cast_matmul_mul"(%{{.*}}, %arg1)
// CHECK: tandem.cast %{{.*}} : tensor<8x8xf8E4M3FN> to tensor<8x8xf32>
// CHECK: tandem.cast %{{.*}} : tensor<8x8xf8E5M2> to tensor<8x8xf32>
// CHECK: tandem.matmul
// CHECK: tandem.mul
// CHECK-NOT: tandem.kernel
// CHECK: return
module @read attributes {tandem.target = #tandem.target<cuda {arch = "sm_89"}>} {
  func.func @evaluate(%x: tensor<2x4x8xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<8x8xf8E5M2> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %r = tandem.reshape %x to [8, 8] : tensor<2x4x8xf8E4M3FN> -> tensor<8x8xf8E4M3FN>
    %a = tandem.cast %r : tensor<8x8xf8E4M3FN> to tensor<8x8xf32>
    %b = tandem.cast %w : tensor<8x8xf8E5M2> to tensor<8x8xf32>
    %p = tandem.matmul %a, %b {precision = "tf32"} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %s = tandem.constant dense<0.5> : tensor<8x8xf32>
    %y = tandem.mul %p, %s : tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }
}

// -----

// Somebody asks for the wider numbers of one factor: the product has them, and
// those of the other factor, too.
// CHECK-LABEL: module @wider
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "matmul"
// CHECK: return
module @wider attributes {tandem.target = #tandem.target<cuda {arch = "sm_89"}>} {
  func.func @evaluate(%x: tensor<8x8xi8> {tandem.role = #tandem.role<input "x">}, %w: tensor<8x16xi8> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x16xf32> {tandem.role = #tandem.role<output "y">}, tensor<8x8xf32> {tandem.role = #tandem.role<output "a">}) {
    %a = tandem.cast %x : tensor<8x8xi8> to tensor<8x8xf32>
    %b = tandem.cast %w : tensor<8x16xi8> to tensor<8x16xf32>
    %y = tandem.matmul %a, %b : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
    return %y, %a : tensor<8x16xf32>, tensor<8x8xf32>
  }
}

// -----

// No such cores, or sums that have to be of f32.
// CHECK-LABEL: module @older
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "matmul"
// CHECK: return
module @older attributes {tandem.target = #tandem.target<cuda {arch = "sm_86"}>} {
  func.func @evaluate(%x: tensor<8x8xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<8x16xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<8x8xf8E4M3FN> to tensor<8x8xf32>
    %b = tandem.cast %w : tensor<8x16xf8E4M3FN> to tensor<8x16xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}

// -----

// CHECK-LABEL: module @exact
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "cast"
// CHECK: tandem.kernel "matmul"
// CHECK: return
module @exact attributes {tandem.target = #tandem.target<cuda {arch = "sm_89"}>} {
  func.func @evaluate(%x: tensor<8x8xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<8x16xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<8x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<8x8xf8E4M3FN> to tensor<8x8xf32>
    %b = tandem.cast %w : tensor<8x16xf8E4M3FN> to tensor<8x16xf32>
    %y = tandem.matmul %a, %b {precision = "f32"} : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}
