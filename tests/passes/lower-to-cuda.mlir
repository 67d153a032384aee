// RUN: tandem-opt %s -tandem-plan-programs -tandem-lower-to-cuda | FileCheck %s

// Each distinct kernel is a function of the device, and a program a list of
// launches of them.
// CHECK: module attributes {{.*}}tandem.phase = "lower"
// CHECK: func.func @evaluate
// CHECK: tandem.launch @cuda::@exp_0({{.*}}grid =
// CHECK: func.func @update
// CHECK: tandem.launch @cuda::@exp_0({{.*}}grid =
// CHECK: gpu.module @cuda
// CHECK: llvm.func @exp_0
// CHECK-SAME: tandem.kernel = #tandem.kernel_facts<
// CHECK-NOT: @exp_1
module attributes {tandem.phase = "partition", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "a">}) {
    %a = tandem.exp %x : tensor<64x64xf32>
    return %a : tensor<64x64xf32>
  }
  func.func @update(%z: tensor<64x64xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "b">}) {
    %b = tandem.exp %z : tensor<64x64xf32>
    return %b : tensor<64x64xf32>
  }
}
