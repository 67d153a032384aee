// RUN: tandem-opt %s -split-input-file -tandem-form-kernels -tandem-choose-libraries | FileCheck %s

// A product that a library can run, where the compilation asks for libraries.
// CHECK-LABEL: module @all
// CHECK: library = #tandem.library_call<
module @all attributes {tandem.target = #tandem.target<cuda {arch = "sm_90", libraries = "yes"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// CHECK-LABEL: module @none
// CHECK-NOT: library =
module @none attributes {tandem.target = #tandem.target<cuda {arch = "sm_90", libraries = "no"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}
