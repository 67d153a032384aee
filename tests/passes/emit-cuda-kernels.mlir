// RUN: tandem-opt %s -tandem-emit-cuda-kernels | FileCheck %s

// One function for two kernels, which says how it is launched.
// CHECK-COUNT-2: tandem.kernel "exp"
// CHECK: gpu.module @cuda
// CHECK: gpu.func @exp_0(%arg0: memref<65536xf32> {llvm.align = 64 : i64, llvm.noalias, llvm.readonly}, %arg1: memref<65536xf32> {llvm.align = 64 : i64, llvm.noalias}) kernel
// CHECK-SAME: tandem.kernel = #tandem.kernel_facts<kind = "pointwise", {{.*}}items = [[ITEMS:[0-9]+]], {{.*}}blocks = {{\[}}[[ITEMS]], 1, 1], block = [256, 1, 1]
// CHECK: gpu.thread_id
// CHECK-NOT: gpu.func
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<65536xf32>) -> tensor<65536xf32> {
    %a = tandem.kernel "exp" (%x) {
    ^bb0(%i: tensor<65536xf32>):
      %0 = tandem.exp %i : tensor<65536xf32>
      tandem.yield %0 : tensor<65536xf32>
    } {buffers = [#tandem.buffer<arena 0>], tandem.function = @cuda::@exp_0} : (tensor<65536xf32>) -> tensor<65536xf32>
    %b = tandem.kernel "exp" (%a) {
    ^bb0(%i: tensor<65536xf32>):
      %0 = tandem.exp %i : tensor<65536xf32>
      tandem.yield %0 : tensor<65536xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cuda::@exp_0} : (tensor<65536xf32>) -> tensor<65536xf32>
    return %b : tensor<65536xf32>
  }
}
