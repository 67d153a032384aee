// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// A08: what other arguments show is not overwritten while the program runs: not
// the storage of another argument, nor a view of it, nor another view.
// CHECK-LABEL: module @aliases
// CHECK-NOT: in_place
// CHECK: #tandem.role<update of "b" {in_place}>
// CHECK-NOT: in_place}
module @aliases attributes {tandem.phase = "partition"} {
  func.func @forward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %v: tensor<4xf32> {tandem.role = #tandem.role<input "v" {alias = {of = "x", views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 1>}]}}>}, %p: tensor<4xf32> {tandem.role = #tandem.role<input "p" {alias = {of = "mem", type = tensor<8xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 1>}]}}>}, %q: tensor<4xf32> {tandem.role = #tandem.role<input "q" {alias = {of = "mem", type = tensor<8xf32>, views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 6>, strides = array<i64: 1>}]}}>}, %b: tensor<8xf32> {tandem.role = #tandem.role<input "b">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "x">}, tensor<4xf32> {tandem.role = #tandem.role<update of "v">}, tensor<4xf32> {tandem.role = #tandem.role<update of "p">}, tensor<4xf32> {tandem.role = #tandem.role<update of "q">}, tensor<8xf32> {tandem.role = #tandem.role<update of "b">}) {
    %0 = tandem.exp %x : tensor<8xf32>
    %1 = tandem.exp %v : tensor<4xf32>
    %2 = tandem.sin %p : tensor<4xf32>
    %3 = tandem.sin %q : tensor<4xf32>
    %4 = tandem.exp %b : tensor<8xf32>
    return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
  }
}

// -----

// B05, B08: the value at the forward's call and the one that the backward finds
// may be one storage. A value that only the backward finds is overwritten.
// CHECK-LABEL: module @passes
// CHECK: #tandem.role<update of "x" {pass = "backward"}>
// CHECK-SAME: #tandem.role<update of "s" {in_place, pass = "backward"}>
// CHECK: tandem.kernel "mul"
// CHECK: buffers = [#tandem.buffer<result 0>]
// CHECK: tandem.kernel "exp"
// CHECK: buffers = [#tandem.buffer<argument 2>]
module @passes attributes {tandem.phase = "partition"} {
  func.func @backward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %y: tensor<8xf32> {tandem.role = #tandem.role<input "x" {pass = "backward"}>}, %s: tensor<8xf32> {tandem.role = #tandem.role<state "s" {pass = "backward"}>}, %c: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "o">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "x" {pass = "backward"}>}, tensor<8xf32> {tandem.role = #tandem.role<update of "s" {pass = "backward"}>}, tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %0 = tandem.mul %y, %y : tensor<8xf32>
    %1 = tandem.exp %s : tensor<8xf32>
    %3 = tandem.sin %x : tensor<8xf32>
    return %0, %1, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// B10: the data of a cotangent is overwritten in its own storage.
// CHECK-LABEL: module @cotangent
// CHECK: #tandem.role<update of "cotangent of o" {in_place, pass = "backward"}>
// CHECK: buffers = [#tandem.buffer<argument 0>{{.*}}in_place
module @cotangent attributes {tandem.phase = "partition"} {
  func.func @backward(%c: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "o">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "cotangent of o" {pass = "backward"}>}) {
    %0 = tandem.exp %c : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// B05: of two updates of one value, one is in its storage: the last must win.
// CHECK-LABEL: module @both
// CHECK: #tandem.role<update of "x" {in_place}>
// CHECK-SAME: #tandem.role<update of "x" {pass = "backward"}>
// CHECK: buffers = [#tandem.buffer<argument 0>]
// CHECK: buffers = [#tandem.buffer<result 1>]
module @both attributes {tandem.phase = "partition"} {
  func.func @step(%x: tensor<8x8xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<8x8xf32> {tandem.role = #tandem.role<update of "x">}, tensor<8x8xf32> {tandem.role = #tandem.role<update of "x" {pass = "backward"}>}) {
    %0 = tandem.exp %x : tensor<8x8xf32>
    %1 = tandem.matmul %0, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
