// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// A large value is stored past the caches if it is read late or if its memory
// was touched long ago; so is what is returned, in memory of the caller. An
// eighth of the last cache counts, here 64 MiB: the first value is read by the
// next kernel, and in the next run its memory is still in the cache.
// CHECK-LABEL: module @soon
// CHECK: tandem.kernel "exp"
// CHECK: {buffers = [#tandem.buffer<arena 0>]}
// CHECK: tandem.kernel "matmul"
// CHECK-NOT: past_caches
// CHECK: tandem.kernel "log"
// CHECK: {buffers = [#tandem.buffer<result 1>], past_caches = array<i64: 0>}
module @soon attributes {tandem.phase = "partition", tandem.target = {kind = "cpu", arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 536870912 : i64}} {
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
// CHECK: {buffers = [#tandem.buffer<arena 0>], past_caches = array<i64: 0>}
// CHECK: tandem.kernel "log"
// CHECK-NOT: past_caches
module @late attributes {tandem.phase = "partition", tandem.target = {kind = "cpu", arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 134217728 : i64}} {
  func.func @evaluate(%x: tensor<4096x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x8xf32> {tandem.role = #tandem.role<input "w">}, %z: tensor<1023x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<4096x8xf32> {tandem.role = #tandem.role<output "p">}, tensor<1023x1024xf32> {tandem.role = #tandem.role<output "v">}) {
    %y = tandem.exp %x : tensor<4096x1024xf32>
    %p = tandem.matmul %y, %w : tensor<4096x1024xf32>, tensor<1024x8xf32> -> tensor<4096x8xf32>
    %v = tandem.log %z : tensor<1023x1024xf32>
    return %p, %v : tensor<4096x8xf32>, tensor<1023x1024xf32>
  }
}
