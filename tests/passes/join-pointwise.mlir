// RUN: tandem-opt %s -tandem-form-kernels -tandem-join-pointwise | FileCheck %s

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
