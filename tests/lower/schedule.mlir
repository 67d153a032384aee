// RUN: tandem-opt %s --tandem-lower-to-cpu --split-input-file | FileCheck %s

// What a kernel is made with stands at its function; kernels that ask for
// different schedules have functions of their own. What they do not say, as
// modules that were written by hand, is the tables' choice.
// CHECK-LABEL: module @asks
// CHECK: launch @cpu::@matmul_0
// CHECK: launch @cpu::@matmul_1
// CHECK: llvm.func @matmul_0({{.*}}schedule = <rows = 3, vectors = 1, chosen(method = gemm, block = 6, columns = {{[0-9]+}}, packs = false)>
// CHECK: llvm.func @matmul_1({{.*}}schedule = <packs = false, chosen(method = gemm, rows = 4, vectors = 1, block = 4, columns = {{[0-9]+}})>
module @asks attributes {tandem.phase = "plan"} {
  func.func @evaluate(%a: tensor<4x4xf32> {tandem.role = #tandem.role<input "a">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 128, peak_bytes = 64, lower_bound_bytes = 64>} {
    %0 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 0>], schedule = #tandem.schedule<vectors = 2, rows = 3>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = tandem.kernel "matmul" (%a) {
    ^bb0(%x: tensor<4x4xf32>):
      %y = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      tandem.yield %y : tensor<4x4xf32>
    } {buffers = [#tandem.buffer<arena 64>], schedule = #tandem.schedule<packs = false>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

// Of what takes long for each element an item has fewer: with items of 4096 all
// of this was one thread's.
// CHECK-LABEL: module @items
// CHECK: llvm.func @{{.*}}tanh{{.*}}chosen(method = pointwise, vectors = {{[0-9]+}}, block = 1024)
// CHECK: llvm.func @{{.*}}relu{{.*}}chosen(method = pointwise, vectors = {{[0-9]+}}, block = 4096)
module @items attributes {tandem.phase = "plan"} {
  func.func @evaluate(%a: tensor<32x256xf32> {tandem.role = #tandem.role<input "a">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 65536, peak_bytes = 65536, lower_bound_bytes = 65536>} {
    %0 = tandem.kernel "tanh" (%a) {
    ^bb0(%x: tensor<32x256xf32>):
      %1 = tandem.tanh %x : tensor<32x256xf32>
      %2 = tandem.tanh %1 : tensor<32x256xf32>
      %3 = tandem.exp %2 : tensor<32x256xf32>
      %4 = tandem.tanh %3 : tensor<32x256xf32>
      %5 = tandem.tanh %4 : tensor<32x256xf32>
      tandem.yield %5 : tensor<32x256xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<32x256xf32>) -> tensor<32x256xf32>
    %1 = tandem.kernel "relu" (%0) {
    ^bb0(%x: tensor<32x256xf32>):
      %2 = tandem.relu %x : tensor<32x256xf32>
      tandem.yield %2 : tensor<32x256xf32>
    } {buffers = [#tandem.buffer<arena 32768>]} : (tensor<32x256xf32>) -> tensor<32x256xf32>
    return
  }
}
