// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// A large value is stored past the caches if it is read late or if its memory
// was touched long ago. An eighth of the last cache counts, here 64 MiB: the
// first value is read by the next kernel, and in the next run its memory is
// still in the cache. What is returned is read after the program, which moves
// less than that.
// CHECK-LABEL: module @soon
// CHECK: tandem.kernel "exp"
// CHECK: {buffers = [#tandem.buffer<arena 0>], schedule
// CHECK: tandem.kernel "matmul"
// CHECK-NOT: non_temporal
// CHECK: tandem.kernel "log"
// CHECK-NOT: non_temporal
// CHECK: return
module @soon attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 536870912 : i64}>} {
  func.func @evaluate(%x: tensor<4096x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x8xf32> {tandem.role = #tandem.role<input "w">}, %z: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<4096x8xf32> {tandem.role = #tandem.role<output "p">}, tensor<1024x1024xf32> {tandem.role = #tandem.role<output "v">}) {
    %y = tandem.exp %x : tensor<4096x1024xf32>
    %p = tandem.matmul %y, %w : tensor<4096x1024xf32>, tensor<1024x8xf32> -> tensor<4096x8xf32>
    %v = tandem.log %z : tensor<1024x1024xf32>
    return %p, %v : tensor<4096x8xf32>, tensor<1024x1024xf32>
  }
}

// -----

// With a smaller cache it is not; and a small result never goes past it.
// CHECK-LABEL: module @late
// CHECK: tandem.kernel "exp"
// CHECK: {buffers = [#tandem.buffer<arena 0>], non_temporal = array<i64: 0>, schedule
// CHECK: tandem.kernel "log"
// CHECK-NOT: non_temporal
// CHECK: return
module @late attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 134217728 : i64}>} {
  func.func @evaluate(%x: tensor<4096x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x8xf32> {tandem.role = #tandem.role<input "w">}, %z: tensor<1023x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<4096x8xf32> {tandem.role = #tandem.role<output "p">}, tensor<1023x1024xf32> {tandem.role = #tandem.role<output "v">}) {
    %y = tandem.exp %x : tensor<4096x1024xf32>
    %p = tandem.matmul %y, %w : tensor<4096x1024xf32>, tensor<1024x8xf32> -> tensor<4096x8xf32>
    %v = tandem.log %z : tensor<1023x1024xf32>
    return %p, %v : tensor<4096x8xf32>, tensor<1023x1024xf32>
  }
}

// -----

// Returned memory was touched before the program, by a caller who wrote as much
// beside it. Here more than 16 MiB have been moved since then when the second
// result is stored, and less when the first is.
// CHECK-LABEL: module @returned
// CHECK: tandem.kernel "fused_log_reduce_sum"
// CHECK: {buffers = [#tandem.buffer<result 0>, #tandem.buffer<arena 0>], schedule
// CHECK: tandem.kernel "div"
// CHECK: {buffers = [#tandem.buffer<result 1>], non_temporal = array<i64: 0>, schedule
module @returned attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 134217728 : i64}>} {
  func.func @evaluate(%z: tensor<1280x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<1280x1024xf32> {tandem.role = #tandem.role<output "v">}, tensor<1280x1024xf32> {tandem.role = #tandem.role<output "q">}) {
    %v = tandem.log %z : tensor<1280x1024xf32>
    %s = tandem.reduce_sum %v over [0] : tensor<1280x1024xf32> -> tensor<1024xf32>
    %wide = tandem.broadcast %s to [1280, 1024] along [1] : tensor<1024xf32> -> tensor<1280x1024xf32>
    %q = tandem.div %v, %wide : tensor<1280x1024xf32>
    return %v, %q : tensor<1280x1024xf32>, tensor<1280x1024xf32>
  }
}

// -----

// What overwrites an argument is read in the next run: in the first program by
// its first kernel, in the second one after 20 MiB.
// CHECK-LABEL: module @updates
// CHECK: func.func @evaluate
// CHECK: tandem.kernel "exp"
// CHECK: {buffers = [#tandem.buffer<argument 0>], schedule
// CHECK: func.func @update
// CHECK: tandem.kernel "exp"
// CHECK: {buffers = [#tandem.buffer<argument 0>], non_temporal = array<i64: 0>, schedule
module @updates attributes {tandem.phase = "partition", tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 134217728 : i64}>} {
  func.func @evaluate(%s: tensor<1024x1024xf32> {tandem.role = #tandem.role<state "s">}, %x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<1024xf32> {tandem.role = #tandem.role<output "p">}, tensor<1024x1024xf32> {tandem.role = #tandem.role<update of "s">}) {
    %p = tandem.reduce_sum %s over [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
    %v = tandem.exp %x : tensor<1024x1024xf32>
    return %p, %v : tensor<1024xf32>, tensor<1024x1024xf32>
  }
  func.func @update(%s: tensor<1024x1024xf32> {tandem.role = #tandem.role<state "s">}, %x: tensor<1024x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x5120xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<1024xf32> {tandem.role = #tandem.role<output "p">}, tensor<1024x1024xf32> {tandem.role = #tandem.role<update of "s">}) {
    %r = tandem.reduce_sum %w over [1] : tensor<1024x5120xf32> -> tensor<1024xf32>
    %wide = tandem.broadcast %r to [1024, 1024] along [1] : tensor<1024xf32> -> tensor<1024x1024xf32>
    %sum = tandem.add %s, %wide : tensor<1024x1024xf32>
    %p = tandem.reduce_sum %sum over [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
    %v = tandem.exp %x : tensor<1024x1024xf32>
    return %p, %v : tensor<1024xf32>, tensor<1024x1024xf32>
  }
}
