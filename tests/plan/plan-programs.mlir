// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// One kernel of row statistics and what follows from them.
// CHECK: tandem.phase = "plan"
// CHECK-LABEL: func.func @evaluate
// CHECK-COUNT-1: tandem.kernel "fused_reduce_max_sub_exp_reduce_sum_div"(%arg0)
// CHECK-NOT: tandem.kernel
// CHECK: buffers = [#tandem.buffer<result 0>]
module @softmax attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<17x33xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<17x33xf32> {tandem.role = #tandem.role<output "y">}) {
    %m = tandem.reduce_max %x over [1] : tensor<17x33xf32> -> tensor<17xf32>
    %mb = tandem.broadcast %m to [17, 33] along [0] : tensor<17xf32> -> tensor<17x33xf32>
    %c = tandem.sub %x, %mb : tensor<17x33xf32>
    %e = tandem.exp %c : tensor<17x33xf32>
    %s = tandem.reduce_sum %e over [1] : tensor<17x33xf32> -> tensor<17xf32>
    %sb = tandem.broadcast %s to [17, 33] along [0] : tensor<17xf32> -> tensor<17x33xf32>
    %y = tandem.div %e, %sb : tensor<17x33xf32>
    return %y : tensor<17x33xf32>
  }
}

// -----

// Bias, activation and cast join the matrix product; the broadcast bias is
// never in memory. The gradient of the bias is a kernel of its own.
// CHECK-LABEL: module @mlp
// CHECK: tandem.kernel "matmul_add_relu"(%arg0, %arg1, %arg2)
// CHECK: tandem.matmul
// CHECK: tandem.broadcast
// CHECK: tandem.add
// CHECK: tandem.relu
// CHECK: buffers = [#tandem.buffer<arena 0>]
// CHECK: tandem.kernel "matmul"
// CHECK: buffers = [#tandem.buffer<result 0>]
module @mlp attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<32x20xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<20x64xf32> {tandem.role = #tandem.role<param "w">}, %b: tensor<64xf32> {tandem.role = #tandem.role<param "b">}, %v: tensor<64x3xf32> {tandem.role = #tandem.role<param "v">}) -> (tensor<32x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.matmul %x, %w : tensor<32x20xf32>, tensor<20x64xf32> -> tensor<32x64xf32>
    %1 = tandem.broadcast %b to [32, 64] along [1] : tensor<64xf32> -> tensor<32x64xf32>
    %2 = tandem.add %0, %1 : tensor<32x64xf32>
    %3 = tandem.relu %2 : tensor<32x64xf32>
    %4 = tandem.matmul %3, %v : tensor<32x64xf32>, tensor<64x3xf32> -> tensor<32x3xf32>
    return %4 : tensor<32x3xf32>
  }
}

// -----

// An update takes the place of the old value where nobody reads that later; a
// value that is read later keeps its place. The second momentum is read by the
// kernel that makes the output, which comes after.
// CHECK-LABEL: module @updates
// CHECK-SAME: tandem.phase
// CHECK: #tandem.role<update of "w" {in_place}>
// CHECK: #tandem.role<update of "s">
// CHECK: buffers = [#tandem.buffer<argument 0>], in_place = #tandem.in_place<0 over 0>
module @updates attributes {tandem.phase = "partition"} {
  func.func @update(%w: tensor<8xf32> {tandem.role = #tandem.role<param "w">}, %s: tensor<8xf32> {tandem.role = #tandem.role<state "s">}, %g: tensor<8xf32> {tandem.role = #tandem.role<grad of "w">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "w">}, tensor<8xf32> {tandem.role = #tandem.role<update of "s">}) {
    %0 = tandem.sub %w, %g : tensor<8xf32>
    %i = tandem.pad %s low [1] high [0] interior [0] with 0.0 : f32 : tensor<8xf32> -> tensor<9xf32>
    %1 = tandem.slice %i from [0] to [8] step [1] : tensor<9xf32> -> tensor<8xf32>
    %2 = tandem.exp %1 : tensor<8xf32>
    return %0, %2 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Arguments, constants and one value twice are returned through copies; a
// reshape of a kernel's result is free.
// CHECK-LABEL: module @copies
// CHECK: %[[E:.*]] = tandem.kernel "exp"(%arg0)
// CHECK: buffers = [#tandem.buffer<result 1>]
// CHECK: %[[X:.*]] = tandem.kernel "copy"(%arg0)
// CHECK: %[[R:.*]] = tandem.reshape %[[E]]
// CHECK: %[[TWICE:.*]] = tandem.kernel "copy"(%[[E]])
// CHECK: %[[C:.*]] = tandem.constant {tandem.buffer = #tandem.buffer<constant 0>}
// CHECK: %[[D:.*]] = tandem.kernel "copy"(%[[C]])
// CHECK: return %[[X]], %[[R]], %[[TWICE]], %[[D]]
module @copies attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "a">}, tensor<4xf32> {tandem.role = #tandem.role<output "b">}, tensor<2x2xf32> {tandem.role = #tandem.role<output "c">}, tensor<2xf32> {tandem.role = #tandem.role<output "d">}) {
    %c = tandem.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %e = tandem.exp %x : tensor<2x2xf32>
    %r = tandem.reshape %e to [4] : tensor<2x2xf32> -> tensor<4xf32>
    return %x, %r, %e, %c : tensor<2x2xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<2xf32>
  }
}

// -----

// A sum of everything has a first step with results for many threads.
// CHECK-LABEL: module @mean
// CHECK: tandem.kernel "reduce_sum"
// CHECK: tandem.reduce_sum {{.*}} over [1] : tensor<64x4096xf32> -> tensor<64xf32>
// CHECK: tandem.kernel "reduce_sum"
// CHECK: tandem.reduce_sum {{.*}} over [0] : tensor<64xf32> -> tensor<f32>
module @mean attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<262144xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.reduce_sum %x over [0] : tensor<262144xf32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A gradient is summed as it is and times something else. It is in memory for
// the first sum, so the kernel of the sums multiplies it: the product's was to
// write both.
// CHECK-LABEL: module @sums
// CHECK: tandem.kernel "matmul"(%arg0, %arg1)
// CHECK: tandem.kernel "fused_mul_reduce_sum_reduce_sum"(%0, %arg2)
// CHECK-NOT: tandem.kernel
// CHECK: return
module @sums attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<32x20xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<20x64xf32> {tandem.role = #tandem.role<param "w">}, %h: tensor<32x64xf32> {tandem.role = #tandem.role<input "h">}) -> (tensor<64xf32> {tandem.role = #tandem.role<output "a">}, tensor<64xf32> {tandem.role = #tandem.role<output "b">}) {
    %0 = tandem.matmul %x, %w : tensor<32x20xf32>, tensor<20x64xf32> -> tensor<32x64xf32>
    %1 = tandem.mul %0, %h : tensor<32x64xf32>
    %2 = tandem.reduce_sum %0 over [0] : tensor<32x64xf32> -> tensor<64xf32>
    %3 = tandem.reduce_sum %1 over [0] : tensor<32x64xf32> -> tensor<64xf32>
    return %2, %3 : tensor<64xf32>, tensor<64xf32>
  }
}
