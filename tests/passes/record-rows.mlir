// RUN: tandem-opt %s -split-input-file -tandem-build-joint=inference=true -tandem-record-rows | FileCheck %s

// Nobody knew which inputs an output follows from, and whether its rows are
// those of the inputs: labels were wanted for scores, and a mean over a part of
// a batch could not be had.
// CHECK-LABEL: module @classifier
module @classifier attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "loss" {inputs = ["x", "labels"], rows = "mean"}>
  // CHECK-SAME: output "some" {counted = "ids", inputs = ["x", "ids"], rows = "mean"}>
  // CHECK-SAME: output "logits" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "penalty" {inputs = [], rows = "mean"}>
  // CHECK-SAME: output "both" {inputs = ["x", "labels"], rows = "mean"}>
  // CHECK-SAME: output "best" {inputs = ["x"], rows = "each"}>
  func.func @graph(
      %x: tensor<8x6xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<8xi64> {tandem.role = #tandem.role<input "labels">},
      %ids: tensor<8xi64> {tandem.role = #tandem.role<input "ids">},
      %w: tensor<5x6xf32> {tandem.role = #tandem.role<param "w">},
      %b: tensor<5xf32> {tandem.role = #tandem.role<param "b">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<f32> {tandem.role = #tandem.role<output "some">},
          tensor<8x5xf32> {tandem.role = #tandem.role<output "logits">},
          tensor<f32> {tandem.role = #tandem.role<output "penalty">},
          tensor<f32> {tandem.role = #tandem.role<output "both">},
          tensor<8xi64> {tandem.role = #tandem.role<output "best">}) {
    %h = tandem.gelu %x : tensor<8x6xf32>
    %logits = tandem.linear %h, %w, %b : (tensor<8x6xf32>, tensor<5x6xf32>, tensor<5xf32>) -> tensor<8x5xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<8x5xf32>, tensor<8xi64> -> tensor<f32>
    %some = tandem.cross_entropy %logits, %ids {ignore_index = -100 : i64} : tensor<8x5xf32>, tensor<8xi64> -> tensor<f32>
    %square = tandem.mul %w, %w : tensor<5x6xf32>
    %penalty = tandem.reduce_sum %square over [0, 1] : tensor<5x6xf32> -> tensor<f32>
    %both = tandem.add %loss, %penalty : tensor<f32>
    %best = tandem.argmax %logits dim 1 : tensor<8x5xf32> -> tensor<8xi64>
    return %loss, %some, %logits, %penalty, %both, %best : tensor<f32>, tensor<f32>, tensor<8x5xf32>, tensor<f32>, tensor<f32>, tensor<8xi64>
  }
}

// -----

// Images, and tokens that are folded into the rows and out of them.
// CHECK-LABEL: module @networks
module @networks attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "scores" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "words" {inputs = ["ids"], rows = "each"}>
  // CHECK-SAME: output "next" {inputs = ["ids"], rows = "mean"}>
  func.func @graph(
      %x: tensor<4x3x8x8xf32> {tandem.role = #tandem.role<input "x">},
      %ids: tensor<4x6xi64> {tandem.role = #tandem.role<input "ids">},
      %k: tensor<2x3x3x3xf32> {tandem.role = #tandem.role<param "k">},
      %s: tensor<2xf32> {tandem.role = #tandem.role<param "s">},
      %t: tensor<9x16xf32> {tandem.role = #tandem.role<param "t">},
      %w: tensor<16x16xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x72xf32> {tandem.role = #tandem.role<output "scores">},
          tensor<4x6x16xf32> {tandem.role = #tandem.role<output "words">},
          tensor<f32> {tandem.role = #tandem.role<output "next">}) {
    %0 = tandem.conv2d %x, %k : tensor<4x3x8x8xf32>, tensor<2x3x3x3xf32> -> tensor<4x2x6x6xf32>
    %1, %m, %v = tandem.batch_norm %0, %s, %s, %s, %s {training} : (tensor<4x2x6x6xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x6x6xf32>, tensor<2xf32>, tensor<2xf32>)
    %scores = tandem.reshape %1 to [4, 72] : tensor<4x2x6x6xf32> -> tensor<4x72xf32>
    %e = tandem.take %t, %ids : tensor<9x16xf32>, tensor<4x6xi64> -> tensor<4x6x16xf32>
    %flat = tandem.reshape %e to [24, 16] : tensor<4x6x16xf32> -> tensor<24x16xf32>
    %q = tandem.matmul %flat, %w : tensor<24x16xf32>, tensor<16x16xf32> -> tensor<24x16xf32>
    %heads = tandem.reshape %q to [4, 6, 2, 8] : tensor<24x16xf32> -> tensor<4x6x2x8xf32>
    %h = tandem.permute %heads by [0, 2, 1, 3] : tensor<4x6x2x8xf32> -> tensor<4x2x6x8xf32>
    %a = tandem.attention %h, %h, %h {causal} : tensor<4x2x6x8xf32>, tensor<4x2x6x8xf32>, tensor<4x2x6x8xf32> -> tensor<4x2x6x8xf32>
    %back = tandem.permute %a by [0, 2, 1, 3] : tensor<4x2x6x8xf32> -> tensor<4x6x2x8xf32>
    %words = tandem.reshape %back to [4, 6, 16] : tensor<4x6x2x8xf32> -> tensor<4x6x16xf32>
    %all = tandem.reduce_mean %words over [0, 1, 2] : tensor<4x6x16xf32> -> tensor<f32>
    return %scores, %words, %all : tensor<4x72xf32>, tensor<4x6x16xf32>, tensor<f32>
  }
}

// -----

// What mixes rows, or goes by their place in the batch, is not said to be rows:
// a mean of rows' products, scores against each other, a position, the largest.
// CHECK-LABEL: module @mixed
module @mixed attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "pairs" {inputs = ["x"]}>
  // CHECK-SAME: output "loss" {inputs = ["x"]}>
  // CHECK-SAME: output "placed" {inputs = ["x"]}>
  // CHECK-SAME: output "largest" {inputs = ["x"]}>
  // CHECK-SAME: output "root" {inputs = ["x"]}>
  // CHECK-SAME: output "centred" {inputs = ["x"]}>
  // CHECK-SAME: output "turned" {inputs = ["x"]}>
  func.func @graph(
      %x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4x6xf32> {tandem.role = #tandem.role<param "p">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "pairs">},
          tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "placed">},
          tensor<f32> {tandem.role = #tandem.role<output "largest">},
          tensor<f32> {tandem.role = #tandem.role<output "root">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "centred">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "turned">}) {
    %pairs = tandem.matmul %x, %x {transpose_rhs} : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x4xf32>
    %own = tandem.iota dim 0 : tensor<4xi64>
    %loss = tandem.cross_entropy %pairs, %own : tensor<4x4xf32>, tensor<4xi64> -> tensor<f32>
    %placed = tandem.add %x, %p : tensor<4x6xf32>
    %largest = tandem.reduce_max %x over [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %sum = tandem.reduce_sum %x over [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %root = tandem.sqrt %sum : tensor<f32>
    %mean = tandem.reduce_mean %x over [0] : tensor<4x6xf32> -> tensor<6xf32>
    %wide = tandem.broadcast %mean to [4, 6] along [1] : tensor<6xf32> -> tensor<4x6xf32>
    %centred = tandem.sub %x, %wide : tensor<4x6xf32>
    %turned = tandem.reverse %x along [0] : tensor<4x6xf32> -> tensor<4x6xf32>
    return %pairs, %loss, %placed, %largest, %root, %centred, %turned : tensor<4x4xf32>, tensor<f32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>
  }
}

// -----

// The batch as the second dimension, as attention and loops of PyTorch have it
// without batch_first: rows are interleaved, [time, row] as one dimension; and a
// loop over time that begins with zeros.
// CHECK-LABEL: module @second
module @second attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "tokens" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "heads" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "last" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "all" {inputs = ["x"], rows = "each"}>
  func.func @graph(
      %x: tensor<4x7x6xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<6x6xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x7x6xf32> {tandem.role = #tandem.role<output "tokens">},
          tensor<4x2x7x3xf32> {tandem.role = #tandem.role<output "heads">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "last">},
          tensor<4x7x6xf32> {tandem.role = #tandem.role<output "all">}) {
    %t = tandem.permute %x by [1, 0, 2] : tensor<4x7x6xf32> -> tensor<7x4x6xf32>
    %flat = tandem.reshape %t to [28, 6] : tensor<7x4x6xf32> -> tensor<28x6xf32>
    %p = tandem.matmul %flat, %w : tensor<28x6xf32>, tensor<6x6xf32> -> tensor<28x6xf32>
    %apart = tandem.reshape %p to [7, 4, 6] : tensor<28x6xf32> -> tensor<7x4x6xf32>
    %tokens = tandem.permute %apart by [1, 0, 2] : tensor<7x4x6xf32> -> tensor<4x7x6xf32>
    %h = tandem.reshape %p to [7, 8, 3] : tensor<28x6xf32> -> tensor<7x8x3xf32>
    %q = tandem.permute %h by [1, 0, 2] : tensor<7x8x3xf32> -> tensor<8x7x3xf32>
    %heads = tandem.reshape %q to [4, 2, 7, 3] : tensor<8x7x3xf32> -> tensor<4x2x7x3xf32>
    %zero = tandem.constant dense<0.0> : tensor<1x4x6xf32>
    %begin = tandem.reshape %zero to [4, 6] : tensor<1x4x6xf32> -> tensor<4x6xf32>
    %last, %stack = tandem.scan 7 carries(%begin) inputs(%apart) constants(%w) {
      ^bb0(%s: tensor<4x6xf32>, %i: tensor<4x6xf32>, %m: tensor<6x6xf32>):
        %n = tandem.matmul %s, %m : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
        %a = tandem.add %n, %i : tensor<4x6xf32>
        tandem.yield %a, %a : tensor<4x6xf32>, tensor<4x6xf32>
    } : (tensor<4x6xf32>, tensor<7x4x6xf32>, tensor<6x6xf32>) -> (tensor<4x6xf32>, tensor<7x4x6xf32>)
    %all = tandem.permute %stack by [1, 0, 2] : tensor<7x4x6xf32> -> tensor<4x7x6xf32>
    return %tokens, %heads, %last, %all : tensor<4x7x6xf32>, tensor<4x2x7x3xf32>, tensor<4x6xf32>, tensor<4x7x6xf32>
  }
}

// -----

// What is no row of the batch, though its size would fit: another way to cut
// interleaved rows, a loop over the rows, a carry that adds them up or turns
// them round, and one that begins with another number for each row.
// CHECK-LABEL: module @crossing
module @crossing attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "cut" {inputs = ["x"]}>
  // CHECK-SAME: output "along" {inputs = ["x"]}>
  // CHECK-SAME: output "turned" {inputs = ["x"]}>
  // CHECK-SAME: output "placed" {inputs = ["x"]}>
  // CHECK-SAME: output "interleaved" {inputs = ["x"]}>
  func.func @graph(
      %x: tensor<4x4x6xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4x6xf32> {tandem.role = #tandem.role<param "p">})
      -> (tensor<4x4x6xf32> {tandem.role = #tandem.role<output "cut">},
          tensor<4x4x6xf32> {tandem.role = #tandem.role<output "along">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "turned">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "placed">},
          tensor<16x6xf32> {tandem.role = #tandem.role<output "interleaved">}) {
    %t = tandem.permute %x by [1, 0, 2] : tensor<4x4x6xf32> -> tensor<4x4x6xf32>
    %interleaved = tandem.reshape %t to [16, 6] : tensor<4x4x6xf32> -> tensor<16x6xf32>
    %cut = tandem.reshape %interleaved to [4, 4, 6] : tensor<16x6xf32> -> tensor<4x4x6xf32>
    %zero = tandem.constant dense<0.0> : tensor<4x6xf32>
    %l, %along = tandem.scan 4 carries(%zero) inputs(%x) constants() {
      ^bb0(%s: tensor<4x6xf32>, %i: tensor<4x6xf32>):
        %a = tandem.add %s, %i : tensor<4x6xf32>
        tandem.yield %a, %a : tensor<4x6xf32>, tensor<4x6xf32>
    } : (tensor<4x6xf32>, tensor<4x4x6xf32>) -> (tensor<4x6xf32>, tensor<4x4x6xf32>)
    %turned = tandem.scan 4 carries(%zero) inputs(%t) constants() {
      ^bb0(%s: tensor<4x6xf32>, %i: tensor<4x6xf32>):
        %r = tandem.reverse %s along [0] : tensor<4x6xf32> -> tensor<4x6xf32>
        %a = tandem.add %r, %i : tensor<4x6xf32>
        tandem.yield %a : tensor<4x6xf32>
    } : (tensor<4x6xf32>, tensor<4x4x6xf32>) -> tensor<4x6xf32>
    %placed = tandem.scan 4 carries(%p) inputs(%t) constants() {
      ^bb0(%s: tensor<4x6xf32>, %i: tensor<4x6xf32>):
        %a = tandem.add %s, %i : tensor<4x6xf32>
        tandem.yield %a : tensor<4x6xf32>
    } : (tensor<4x6xf32>, tensor<4x4x6xf32>) -> tensor<4x6xf32>
    return %cut, %along, %turned, %placed, %interleaved : tensor<4x4x6xf32>, tensor<4x4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<16x6xf32>
  }
}

// -----

// A choice that a program makes in training alone hid the rows of what it gives
// otherwise.
// CHECK-LABEL: module @chosen
module @chosen attributes {tandem.phase = "functionalize", tandem.loss = "no"} {
  // CHECK: output "y" {inputs = ["x"], rows = "each"}>
  // CHECK-SAME: output "loss" {inputs = ["x"], rows = "mean"}>
  // CHECK-SAME: output "other" {inputs = ["x"]}>
  func.func @graph(
      %x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4x6xf32> {tandem.role = #tandem.role<output "y">},
          tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<4x6xf32> {tandem.role = #tandem.role<output "other">}) {
    %one = tandem.constant dense<1.0> : tensor<f32>
    %zero = tandem.constant dense<0.0> : tensor<f32>
    %trains = tandem.compare eq %one, %zero : tensor<f32>
    %all = tandem.broadcast %trains to [4, 6] along [] : tensor<i1> -> tensor<4x6xi1>
    %mixed = tandem.reverse %x along [0] : tensor<4x6xf32> -> tensor<4x6xf32>
    %y = tandem.select %all, %mixed, %x : tensor<4x6xi1>, tensor<4x6xf32>
    %loss = tandem.mse_loss %y, %x : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<f32>
    %other = tandem.select %all, %x, %mixed : tensor<4x6xi1>, tensor<4x6xf32>
    return %y, %loss, %other : tensor<4x6xf32>, tensor<f32>, tensor<4x6xf32>
  }
}
