// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-emit-cpu-kernels | FileCheck %s

// One function for two kernels, which says what they are and how they can be
// split; the kernels stay.
// CHECK-LABEL: module @shared
// CHECK-COUNT-2: tandem.kernel "exp"
// CHECK: module @cpu
// CHECK: func.func private @exp_0.body(%arg0: memref<1048576xf32> {llvm.align = 64 : i64, llvm.noalias}, %arg1: memref<1048576xf32> {{.*}}, %arg2: index, %arg3: index, %arg4: memref<1xi8>
// CHECK-SAME: tandem.grain = [[GRAIN:[0-9]+]] : i64, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], {{.*}}items = [[ITEMS:[0-9]+]]
// CHECK: math.exp
// CHECK-NOT: func.func
module @shared attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
    %a = tandem.kernel "exp" (%x) {
    ^bb0(%i: tensor<1048576xf32>):
      %0 = tandem.exp %i : tensor<1048576xf32>
      tandem.yield %0 : tensor<1048576xf32>
    } {buffers = [#tandem.buffer<arena 0>], tandem.function = @cpu::@exp_0} : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %b = tandem.kernel "exp" (%a) {
    ^bb0(%i: tensor<1048576xf32>):
      %0 = tandem.exp %i : tensor<1048576xf32>
      tandem.yield %0 : tensor<1048576xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<1048576xf32>) -> tensor<1048576xf32>
    return %b : tensor<1048576xf32>
  }
}

// -----

func.func @evaluate(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'tandem.kernel' op expected 'tandem.function': tandem-deduplicate-kernels comes before its code}}
  %a = tandem.kernel "exp" (%x) {
  ^bb0(%i: tensor<64xf32>):
    %0 = tandem.exp %i : tensor<64xf32>
    tandem.yield %0 : tensor<64xf32>
  } {buffers = [#tandem.buffer<result 0>]} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

// Another kernel's code was launched, without a word.
func.func @evaluate(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  // expected-note @below {{which is this kernel's}}
  %a = tandem.kernel "exp" (%x) {
  ^bb0(%i: tensor<64xf32>):
    %0 = tandem.exp %i : tensor<64xf32>
    tandem.yield %0 : tensor<64xf32>
  } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@exp_0} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{'tandem.kernel' op expected 'tandem.function' to be that of kernels with equal code, but got @cpu::@exp_0}}
  %b = tandem.kernel "sin" (%x) {
  ^bb0(%i: tensor<64xf32>):
    %0 = tandem.sin %i : tensor<64xf32>
    tandem.yield %0 : tensor<64xf32>
  } {buffers = [#tandem.buffer<result 1>], tandem.function = @cpu::@exp_0} : (tensor<64xf32>) -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// -----

// A branch whose regions are nowhere.
func.func @evaluate(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // expected-error @below {{'tandem.kernel' op expected 'tandem.regions' to name functions that there are, planned by tandem-outline-regions, but got [@gone, @lost]}}
  %a = tandem.kernel "if" (%x, %c) {
  ^bb0(%i: tensor<4xf32>, %b: tensor<i1>):
    %0 = tandem.if %b (%i) then {
      ^bb0(%p: tensor<4xf32>):
        %s = tandem.sqrt %p : tensor<4xf32>
        tandem.yield %s : tensor<4xf32>
    } else {
      ^bb0(%p: tensor<4xf32>):
        tandem.yield %p : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    tandem.yield %0 : tensor<4xf32>
  } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@if_0, tandem.regions = [@gone, @lost]} : (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @backward(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = tandem.kernel "to_device" (%x) {
  ^bb0(%i: tensor<64xf32>):
    // expected-error @below {{is of a device's program, but this is lowered for the host}}
    %0 = tandem.to_device %i : tensor<64xf32>
    tandem.yield %0 : tensor<64xf32>
  } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@to_device_0} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}
