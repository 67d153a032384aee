// RUN: tandem-opt %s --tandem-lower-to-cuda | FileCheck %s

// As tests/lower/edited-schedules.mlir: whole schedules that no table would
// choose are what code is made of.
// CHECK-LABEL: module @cuda
// CHECK: llvm.func @product_0({{.*}}schedule = <method = mma, block_m = 32, block_n = 64, block_k = 64, warps_m = 2, warps_n = 2, stages = 4, splits = 1>, blocks = [8, 1, 1]
// CHECK: llvm.func @threads_0({{.*}}schedule = <method = simt, block_m = 64, block_n = 64, block_k = 16, warps_m = 2, warps_n = 2, stages = 2, splits = 1>, blocks = [4, 1, 1]
// CHECK: llvm.func @attention_0({{.*}}schedule = <method = tiles, block_m = 32, block_n = 16, warps_m = 2>, blocks = [5, 1, 1]
// CHECK: llvm.func @loop_0({{.*}}schedule = <method = pointwise>, blocks = [6, 1, 1]
module @cuda attributes {tandem.phase = "plan", tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x0: tensor<128x128xbf16> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<128x128xbf16> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<128x128xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<128x128xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<150x32xbf16> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<150x32xbf16> {tandem.role = #tandem.role<input "x5">}, %x6: tensor<150x32xbf16> {tandem.role = #tandem.role<input "x6">}, %x7: tensor<64x96xf32> {tandem.role = #tandem.role<input "x7">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 65536, peak_bytes = 65536, lower_bound_bytes = 65536>} {
    %y_product = tandem.kernel "product" (%x0, %x1) {
    ^bb0(%a0: tensor<128x128xbf16>, %a1: tensor<128x128xbf16>):
      %y = tandem.matmul %a0, %a1 : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xbf16>
      tandem.yield %y : tensor<128x128xbf16>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = mma, block_m = 32, block_n = 64, block_k = 64, warps_m = 2, warps_n = 2, stages = 4, splits = 1>} : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
    %y_threads = tandem.kernel "threads" (%x2, %x3) {
    ^bb0(%a0: tensor<128x128xf32>, %a1: tensor<128x128xf32>):
      %y = tandem.matmul %a0, %a1 : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
      tandem.yield %y : tensor<128x128xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = simt, block_m = 64, block_n = 64, block_k = 16, warps_m = 2, warps_n = 2, stages = 2, splits = 1>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
    %y_attention = tandem.kernel "attention" (%x4, %x5, %x6) {
    ^bb0(%a0: tensor<150x32xbf16>, %a1: tensor<150x32xbf16>, %a2: tensor<150x32xbf16>):
      %y, %l = tandem.attention_forward %a0, %a1, %a2 {scale = 0.5 : f64} : (tensor<150x32xbf16>, tensor<150x32xbf16>, tensor<150x32xbf16>) -> (tensor<150x32xbf16>, tensor<150xf32>)
      tandem.yield %y : tensor<150x32xbf16>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = tiles, block_m = 32, block_n = 16, warps_m = 2>} : (tensor<150x32xbf16>, tensor<150x32xbf16>, tensor<150x32xbf16>) -> tensor<150x32xbf16>
    %y_loop = tandem.kernel "loop" (%x7) {
    ^bb0(%a0: tensor<64x96xf32>):
      %y = tandem.permute %a0 by [1, 0] : tensor<64x96xf32> -> tensor<96x64xf32>
      tandem.yield %y : tensor<96x64xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<method = pointwise>} : (tensor<64x96xf32>) -> tensor<96x64xf32>
    return
  }
}
