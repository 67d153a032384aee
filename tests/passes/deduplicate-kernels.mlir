// RUN: tandem-opt %s -tandem-deduplicate-kernels | FileCheck %s
// RUN: tandem-opt %s -tandem-deduplicate-kernels=target=cuda | FileCheck %s --check-prefix=CUDA

// Equal kernels have one function, whatever their names, places and programs;
// one that asks for another schedule has its own.
module {
  // CHECK-LABEL: func.func @forward
  // CUDA-LABEL: func.func @forward
  func.func @forward(%x: tensor<64xf32>) -> tensor<64xf32> {
    // CHECK: tandem.function = @cpu::@exp_0
    // CUDA: tandem.function = @cuda::@exp_0
    %a = tandem.kernel "exp" (%x) {
    ^bb0(%i: tensor<64xf32>):
      %0 = tandem.exp %i : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    // CHECK: tandem.function = @cpu::@exp_1
    %b = tandem.kernel "exp" (%a) {
    ^bb0(%i: tensor<64xf32>):
      %0 = tandem.exp %i : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<vectors = 2>} : (tensor<64xf32>) -> tensor<64xf32>
    return %b : tensor<64xf32>
  }
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate(%x: tensor<64xf32>) -> tensor<64xf32> {
    // CHECK: tandem.function = @cpu::@exp_0
    %a = tandem.kernel "other" (%x) {
    ^bb0(%i: tensor<64xf32>):
      %0 = tandem.exp %i : tensor<64xf32>
      tandem.yield %0 : tensor<64xf32>
    } {buffers = [#tandem.buffer<result 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    return %a : tensor<64xf32>
  }
}
