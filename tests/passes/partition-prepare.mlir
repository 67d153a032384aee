// RUN: tandem-opt %s -split-input-file -tandem-partition-joint | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-partition-joint | tandem-opt -split-input-file -tandem-plan-programs | FileCheck %s --check-prefix=PLAN

// A cast of weights, and the scale of a normalization, of which the broadcasting
// stays: reading it would take more than making it. All arguments stay.
// CHECK-LABEL: module @casts
// CHECK: func.func @prepare(
// CHECK-SAME: param "w"
// CHECK-SAME: state "v"
// CHECK-SAME: -> (tensor<64x32xbf16> {tandem.role = #tandem.role<prepared "w.cast">},
// CHECK-SAME:     tensor<32xf32> {tandem.role = #tandem.role<prepared "v.rsqrt">})
// CHECK-DAG: tandem.cast
// CHECK-DAG: tandem.rsqrt
// CHECK: func.func @evaluate(
// CHECK-SAME: input "x"
// CHECK-SAME: param "w"
// CHECK-SAME: state "v"
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<64x32xbf16> {tandem.role = #tandem.role<prepared "w.cast">}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<32xf32> {tandem.role = #tandem.role<prepared "v.rsqrt">}
// CHECK-NEXT: tandem.matmul %{{.*}}, %[[W]]
// CHECK-NOT: tandem.rsqrt
// CHECK: tandem.broadcast %[[V]] to [4, 32]
// PLAN-LABEL: module @casts
// PLAN-SAME: prepared = 4224 : i64
// PLAN: func.func @prepare(
// PLAN: buffers = [#tandem.buffer<result 0>]
// PLAN: buffers = [#tandem.buffer<result 1>]
module @casts attributes {tandem.phase = "optimize", tandem.prepare} {
  func.func @evaluate(
      %x: tensor<4x64xbf16> {tandem.role = #tandem.role<input "x">},
      %w: tensor<64x32xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<32xf32> {tandem.role = #tandem.role<state "v">})
      -> (tensor<4x32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.cast %w : tensor<64x32xf32> to tensor<64x32xbf16>
    %1 = tandem.matmul %x, %0 : tensor<4x64xbf16>, tensor<64x32xbf16> -> tensor<4x32xbf16>
    %2 = tandem.cast %1 : tensor<4x32xbf16> to tensor<4x32xf32>
    %3 = tandem.rsqrt %v : tensor<32xf32>
    %4 = tandem.broadcast %3 to [4, 32] along [1] : tensor<32xf32> -> tensor<4x32xf32>
    %5 = tandem.mul %2, %4 : tensor<4x32xf32>
    return %5 : tensor<4x32xf32>
  }
}

// -----

// Nothing but views, a cast to a larger type, and what is given out as it is.
// CHECK-LABEL: module @nothing
// CHECK-NOT: @prepare
// CHECK: func.func @evaluate
// PLAN-LABEL: module @nothing
// PLAN-NOT: @prepare
// PLAN: func.func @evaluate
module @nothing attributes {tandem.phase = "optimize", tandem.prepare} {
  func.func @evaluate(
      %x: tensor<4x64xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<32x64xbf16> {tandem.role = #tandem.role<param "w">},
      %u: tensor<8xf32> {tandem.role = #tandem.role<param "u">})
      -> (tensor<4x32xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<output "z">}) {
    %0 = tandem.permute %w by [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
    %1 = tandem.cast %0 : tensor<64x32xbf16> to tensor<64x32xf32>
    %2 = tandem.matmul %x, %1 : tensor<4x64xf32>, tensor<64x32xf32> -> tensor<4x32xf32>
    %3 = tandem.exp %u : tensor<8xf32>
    return %2, %3 : tensor<4x32xf32>, tensor<8xf32>
  }
}

// -----

// What an output needs is prepared, but not the output; two values of one name
// are told apart; what two prepared values share is not prepared itself.
// CHECK-LABEL: module @shared
// CHECK: func.func @prepare(
// CHECK-SAME: -> (tensor<8xf32> {tandem.role = #tandem.role<prepared "u.sin">},
// CHECK-SAME:     tensor<8xf32> {tandem.role = #tandem.role<prepared "u.mul">},
// CHECK-SAME:     tensor<8xf32> {tandem.role = #tandem.role<prepared "u.mul.1">})
// CHECK: tandem.exp
// CHECK: func.func @evaluate(
// CHECK-NOT: tandem.exp
// CHECK: tandem.cos
// CHECK: return
module @shared attributes {tandem.phase = "optimize", tandem.prepare} {
  func.func @evaluate(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %u: tensor<8xf32> {tandem.role = #tandem.role<param "u">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<output "z">}) {
    %0 = tandem.sin %u : tensor<8xf32>
    %1 = tandem.cos %0 : tensor<8xf32>
    %2 = tandem.exp %u : tensor<8xf32>
    %3 = tandem.mul %2, %u : tensor<8xf32>
    %4 = tandem.mul %2, %2 : tensor<8xf32>
    %5 = tandem.add %x, %3 : tensor<8xf32>
    %6 = tandem.mul %5, %4 : tensor<8xf32>
    return %6, %1 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Where nobody asked for it.
// CHECK-LABEL: module @plain
// CHECK-NOT: @prepare
module @plain attributes {tandem.phase = "optimize"} {
  func.func @evaluate(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %u: tensor<8xf32> {tandem.role = #tandem.role<param "u">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.exp %u : tensor<8xf32>
    %1 = tandem.mul %x, %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
