// RUN: tandem-opt %s -tandem-form-kernels -tandem-plan-memory -tandem-choose-non-temporal-stores | FileCheck %s

// A large value that is read late; a small result never goes past the caches.
// More of it: plan/past-caches.mlir.
// CHECK-LABEL: module @late
// CHECK: tandem.kernel "exp"
// CHECK: non_temporal = array<i64: 0>
// CHECK: tandem.kernel "log"
// CHECK-NOT: non_temporal
// CHECK: return
module @late attributes {tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = [], vector_bits = 512 : i64, last_cache_bytes = 134217728 : i64}>} {
  func.func @evaluate(%x: tensor<4096x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<1024x8xf32> {tandem.role = #tandem.role<input "w">}, %z: tensor<1023x1024xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<4096x8xf32> {tandem.role = #tandem.role<output "p">}, tensor<1023x1024xf32> {tandem.role = #tandem.role<output "v">}) {
    %y = tandem.exp %x : tensor<4096x1024xf32>
    %p = tandem.matmul %y, %w : tensor<4096x1024xf32>, tensor<1024x8xf32> -> tensor<4096x8xf32>
    %v = tandem.log %z : tensor<1023x1024xf32>
    return %p, %v : tensor<4096x8xf32>, tensor<1023x1024xf32>
  }
}
