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

// -----

// A mask that two levels of a row need is kept as bytes: stores of single bits
// become no vectors.
// CHECK-LABEL: module @masks
// CHECK: [[MASK:%.+]] = memref.view {{.*}} to memref<512xi8>
// CHECK: [[BIT:%.+]] = arith.cmpf ogt
// CHECK: [[BYTE:%.+]] = arith.extui [[BIT]] : i1 to i8
// CHECK: memref.store [[BYTE]], [[MASK]]
// CHECK: [[READ:%.+]] = memref.load [[MASK]]
// CHECK: arith.cmpi ne, [[READ]]
// CHECK-NOT: memref<512xi1>
module @masks attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<64x512xf32>, %g: tensor<64x512xf32>) -> tensor<64x512xf32> {
    %a = tandem.kernel "mask" (%x, %g) {
    ^bb0(%i: tensor<64x512xf32>, %j: tensor<64x512xf32>):
      %zero = tandem.constant dense<0.0> : tensor<64x512xf32>
      %0 = tandem.mul %i, %i : tensor<64x512xf32>
      %1 = tandem.add %0, %i : tensor<64x512xf32>
      %2 = tandem.sub %1, %0 : tensor<64x512xf32>
      %3 = tandem.relu %2 : tensor<64x512xf32>
      %mask = tandem.compare gt %3, %zero : tensor<64x512xf32>
      %4 = tandem.select %mask, %j, %zero : tensor<64x512xi1>, tensor<64x512xf32>
      %5 = tandem.reduce_sum %4 over [1] : tensor<64x512xf32> -> tensor<64xf32>
      %6 = tandem.broadcast %5 to [64, 512] along [0] : tensor<64xf32> -> tensor<64x512xf32>
      %7 = tandem.select %mask, %6, %j : tensor<64x512xi1>, tensor<64x512xf32>
      tandem.yield %7 : tensor<64x512xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@mask_0} : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
    return %a : tensor<64x512xf32>
  }
}

// -----

// A loop over 16 elements is not written out before it becomes vectors.
// CHECK: [[UNROLL:#loop_unroll[0-9]*]] = #llvm.loop_unroll<disable = true>
// CHECK: [[KEPT:#loop_annotation[0-9]*]] = #llvm.loop_annotation<unroll = [[UNROLL]]>
// CHECK-LABEL: module @short
// CHECK: func.func private @mul_0.body
// CHECK: arith.mulf
// CHECK: {loop_annotation = [[KEPT]]}
module @short attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<64x128x16xf32>, %s: tensor<64x128xf32>) -> tensor<64x128x16xf32> {
    %a = tandem.kernel "mul" (%x, %s) {
    ^bb0(%i: tensor<64x128x16xf32>, %j: tensor<64x128xf32>):
      %0 = tandem.broadcast %j to [64, 128, 16] along [0, 1] : tensor<64x128xf32> -> tensor<64x128x16xf32>
      %1 = tandem.mul %i, %0 : tensor<64x128x16xf32>
      tandem.yield %1 : tensor<64x128x16xf32>
    } {buffers = [#tandem.buffer<result 0>], tandem.function = @cpu::@mul_0} : (tensor<64x128x16xf32>, tensor<64x128xf32>) -> tensor<64x128x16xf32>
    return %a : tensor<64x128x16xf32>
  }
}

// -----

// What follows from sums is computed with vectors of them, functions too.
// CHECK-LABEL: module @silu
// CHECK: func.func private @conv2d_0.body
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK-NOT: math.exp {{.*}} : f32
module @silu attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<4x32x8x8xf32>, %w: tensor<32x32x1x1xf32>) -> tensor<4x32x8x8xf32> {
    %a = tandem.kernel "conv2d" (%x, %w) {
    ^bb0(%i: tensor<4x32x8x8xf32>, %j: tensor<32x32x1x1xf32>):
      %0 = tandem.conv2d %i, %j : tensor<4x32x8x8xf32>, tensor<32x32x1x1xf32> -> tensor<4x32x8x8xf32>
      %1 = tandem.sigmoid %0 : tensor<4x32x8x8xf32>
      %2 = tandem.mul %0, %1 : tensor<4x32x8x8xf32>
      tandem.yield %2 : tensor<4x32x8x8xf32>
    } {buffers = [#tandem.buffer<result 0>], schedule = #tandem.schedule<chosen(method = pointwise)>, scratch_bytes = 32832 : i64, tandem.function = @cpu::@conv2d_0} : (tensor<4x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<4x32x8x8xf32>
    return %a : tensor<4x32x8x8xf32>
  }
}
