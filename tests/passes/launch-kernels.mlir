// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-launch-kernels | FileCheck %s

// Launches have the work, the grain and the grid that functions say; grains are
// said by launches alone from here on.
// CHECK-LABEL: module @launches
// CHECK: tandem.launch @cpu::@exp_0(%arg0) {buffers = [#tandem.buffer<arena 0>], grain = 2 : i64, work = 4 : i64}
// CHECK: tandem.launch @cuda::@sin_0(%{{.*}}) {buffers = [#tandem.buffer<result 0>], grain = 1 : i64, grid = array<i64: 3, 2, 1>, stream = 1 : i64, work = 6 : i64}
// CHECK-NOT: tandem.grain
module @launches {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<arena 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = tandem.kernel "sin" (%0) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.sin %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], stream = 1 : i64, tandem.function = @cuda::@sin_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @exp_0(!llvm.ptr, i64, i64, !llvm.ptr) attributes {tandem.grain = 2 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 4>}
  }
  gpu.module @cuda {
    llvm.func @sin_0(!llvm.ptr, !llvm.ptr) attributes {tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.sin"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 6, blocks = [3, 2, 1], block = [32, 1, 1]>}
  }
}

// -----

func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'tandem.kernel' op expected a function of it that says 'tandem.kernel'}}
  %0 = tandem.kernel "exp" (%x) {
  ^bb0(%a: tensor<8xf32>):
    %1 = tandem.exp %a : tensor<8xf32>
    tandem.yield %1 : tensor<8xf32>
  } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The code of another kernel, of the same shape.
module @swapped {
  func.func @evaluate(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{'tandem.kernel' op expected 'tandem.function' to name a function of ["tandem.exp"], but @cpu::@sin_0 is one of ["tandem.sin"]}}
    %0 = tandem.kernel "exp" (%x) {
    ^bb0(%a: tensor<8xf32>):
      %1 = tandem.exp %a : tensor<8xf32>
      tandem.yield %1 : tensor<8xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@sin_0} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @cpu {
    llvm.func @sin_0(!llvm.ptr, i64, i64, !llvm.ptr) attributes {tandem.grain = 2 : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.sin"], type = (tensor<8xf32>) -> tensor<8xf32>, items = 4>}
  }
}
