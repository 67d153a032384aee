// RUN: tandem-opt %s -tandem-form-kernels -tandem-overlap-collectives | FileCheck %s
// RUN: tandem-opt %s -tandem-form-kernels -tandem-overlap-collectives=window=0 | FileCheck %s --check-prefix=KEEP
// RUN: sed 's/attributes {/&tandem.bucket_bytes = 255 : i64, /' %s | tandem-opt -tandem-form-kernels -tandem-overlap-collectives | FileCheck %s --check-prefix=BUCKET
// RUN: sed 's/attributes {/&tandem.target = #tandem.target<cuda {arch = "sm_90"}>, /' %s | tandem-opt -tandem-form-kernels -tandem-overlap-collectives | FileCheck %s --check-prefix=DEVICE

module attributes {tandem.mesh = #tandem.mesh<data = 4>} {

// A product is made while the sum of the first one is under way, and what reads
// the sum comes last.
// CHECK-LABEL: func.func @behind
// CHECK: tandem.kernel "matmul"
// CHECK: %[[SUM:.*]] = tandem.kernel "all_reduce"
// CHECK: tandem.kernel "matmul"
// CHECK: tandem.kernel {{.*}}(%[[SUM]]
// CHECK: return
// KEEP-LABEL: func.func @behind
// KEEP: tandem.kernel "matmul"
// KEEP: %[[SUM:.*]] = tandem.kernel "all_reduce"
// KEEP: tandem.kernel {{.*}}(%[[SUM]]
// KEEP: tandem.kernel "matmul"
func.func @behind(%x: tensor<512x512xf32> {tandem.role = #tandem.role<input "x">}, %y: tensor<512x512xf32> {tandem.role = #tandem.role<input "y">}) -> (tensor<512x512xf32> {tandem.role = #tandem.role<output "s">}, tensor<512x512xf32> {tandem.role = #tandem.role<output "t">}) {
  %p = tandem.matmul %x, %y : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  %a = tandem.all_reduce sum %p over ["data"] : tensor<512x512xf32> -> tensor<512x512xf32>
  %s = tandem.tanh %a : tensor<512x512xf32>
  %t = tandem.matmul %y, %x : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %s, %t : tensor<512x512xf32>, tensor<512x512xf32>
}

// What the second product reads is gathered before the first one.
// CHECK-LABEL: func.func @ahead
// CHECK: tandem.kernel "all_gather"
// CHECK: tandem.kernel "matmul"
// CHECK: tandem.kernel "matmul"
// KEEP-LABEL: func.func @ahead
// KEEP: tandem.kernel "matmul"
// KEEP: tandem.kernel "all_gather"
func.func @ahead(%x: tensor<512x512xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<128x512xf32> {tandem.role = #tandem.role<param "w" {sharding = [["data"], []]}>}) -> (tensor<512x512xf32> {tandem.role = #tandem.role<output "s">}) {
  %p = tandem.matmul %x, %x : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  %g = tandem.all_gather %w dim 0 over ["data"] : tensor<128x512xf32> -> tensor<512x512xf32>
  %s = tandem.matmul %p, %g : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %s : tensor<512x512xf32>
}

// Two small sums wait for each other, and go in one exchange.
// CHECK-LABEL: func.func @together
// CHECK: tandem.kernel "reduce_sum"
// CHECK: tandem.kernel "{{.*}}reduce_sum"
// CHECK: tandem.kernel "all_reduce"
// CHECK: tandem.kernel "all_reduce"
// CHECK: return
// KEEP-LABEL: func.func @together
// KEEP: tandem.kernel "reduce_sum"
// KEEP: tandem.kernel "all_reduce"
// KEEP: tandem.kernel "{{.*}}reduce_sum"
// KEEP: tandem.kernel "all_reduce"
func.func @together(%x: tensor<16x16xf32> {tandem.role = #tandem.role<input "x">}, %y: tensor<8x32xf32> {tandem.role = #tandem.role<input "y">}) -> (tensor<16xf32> {tandem.role = #tandem.role<output "s">}, tensor<32xf32> {tandem.role = #tandem.role<output "t">}) {
  %a = tandem.reduce_sum %x over [0] : tensor<16x16xf32> -> tensor<16xf32>
  %b = tandem.all_reduce sum %a over ["data"] : tensor<16xf32> -> tensor<16xf32>
  %c = tandem.reduce_sum %y over [0] : tensor<8x32xf32> -> tensor<32xf32>
  %d = tandem.all_reduce sum %c over ["data"] : tensor<32xf32> -> tensor<32xf32>
  return %b, %d : tensor<16xf32>, tensor<32xf32>
}

// So do they behind a product that takes much longer than an exchange, where
// ranks communicate in turn with computing; on devices they do not.
// CHECK-LABEL: func.func @filled
// CHECK: tandem.kernel "reduce_sum"
// CHECK: tandem.kernel "matmul"
// CHECK: tandem.kernel "{{.*}}reduce_sum"
// CHECK: tandem.kernel "all_reduce"
// CHECK: tandem.kernel "all_reduce"
// CHECK: return
// A quarter of a bucket of 255 bytes is less than the first sum.
// BUCKET-LABEL: func.func @filled
// BUCKET: tandem.kernel "reduce_sum"
// BUCKET: tandem.kernel "all_reduce"
// BUCKET: tandem.kernel "matmul"
// BUCKET: tandem.kernel "{{.*}}reduce_sum"
// BUCKET: tandem.kernel "all_reduce"
// DEVICE-LABEL: func.func @filled
// DEVICE: tandem.kernel "reduce_sum"
// DEVICE: tandem.kernel "all_reduce"
// DEVICE: tandem.kernel "matmul"
// DEVICE: tandem.kernel "{{.*}}reduce_sum"
// DEVICE: tandem.kernel "all_reduce"
func.func @filled(%x: tensor<16x16xf32> {tandem.role = #tandem.role<input "x">}, %y: tensor<2048x2048xf32> {tandem.role = #tandem.role<input "y">}) -> (tensor<16xf32> {tandem.role = #tandem.role<output "s">}, tensor<2048xf32> {tandem.role = #tandem.role<output "t">}) {
  %a = tandem.reduce_sum %x over [0] : tensor<16x16xf32> -> tensor<16xf32>
  %b = tandem.all_reduce sum %a over ["data"] : tensor<16xf32> -> tensor<16xf32>
  %p = tandem.matmul %y, %y : tensor<2048x2048xf32>, tensor<2048x2048xf32> -> tensor<2048x2048xf32>
  %c = tandem.reduce_sum %p over [0] : tensor<2048x2048xf32> -> tensor<2048xf32>
  %d = tandem.all_reduce sum %c over ["data"] : tensor<2048xf32> -> tensor<2048xf32>
  return %b, %d : tensor<16xf32>, tensor<2048xf32>
}
}
