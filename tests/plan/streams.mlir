// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// M20: a kernel is on the stream of its ops; ops of two streams are two
// kernels, also where one would be repeated for the other. The result that a
// stream's value is copied into is made there.
// CHECK-LABEL: module @streams
// CHECK: tandem.kernel "neg"(%arg0)
// CHECK-NOT: tandem.stream
// CHECK: stream = 1 : i64
// CHECK: tandem.kernel "fused_exp_mul"
// CHECK-NOT: stream =
// CHECK: tandem.kernel "reduce_sum"
// CHECK: stream = 2 : i64
// CHECK: tandem.kernel "reduce_sum"
// CHECK: stream = 2 : i64
// CHECK: tandem.kernel "copy"
// CHECK: stream = 2 : i64
module @streams attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<262144xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<262144xf32> {tandem.role = #tandem.role<output "a">}, tensor<f32> {tandem.role = #tandem.role<output "b">}, tensor<f32> {tandem.role = #tandem.role<output "c">}) {
    %0 = tandem.neg %x {tandem.stream = 1 : i64} : tensor<262144xf32>
    %1 = tandem.exp %0 : tensor<262144xf32>
    %2 = tandem.mul %1, %1 : tensor<262144xf32>
    %3 = tandem.reduce_sum %2 over [0] {tandem.stream = 2 : i64} : tensor<262144xf32> -> tensor<f32>
    return %2, %3, %3 : tensor<262144xf32>, tensor<f32>, tensor<f32>
  }
}
