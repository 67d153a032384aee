// RUN: tandem-opt %s -split-input-file -tandem-record-ranges | FileCheck %s

// Labels and indices that an op cannot take went unnoticed where the model did
// not declare their range, and beyond it where that was too large.
// CHECK-LABEL: module @labels
module @labels attributes {tandem.phase = "functionalize"} {
  // CHECK: input "plain" {high = 10 : i64}>
  // CHECK-SAME: input "some" {high = 10 : i64, ignored = -100 : i64}>
  // CHECK-SAME: input "less" {high = 3 : i64}>
  // CHECK-SAME: input "more" {high = 10 : i64}>
  func.func @graph(
      %x: tensor<4x10xf32> {tandem.role = #tandem.role<input "x">},
      %plain: tensor<4xi64> {tandem.role = #tandem.role<input "plain">},
      %some: tensor<4x1xi32> {tandem.role = #tandem.role<input "some">},
      %less: tensor<4xi64> {tandem.role = #tandem.role<input "less" {high = 3 : i64}>},
      %more: tensor<4xi64> {tandem.role = #tandem.role<input "more" {high = 50 : i64}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "a">},
          tensor<f32> {tandem.role = #tandem.role<output "b">},
          tensor<f32> {tandem.role = #tandem.role<output "c">},
          tensor<f32> {tandem.role = #tandem.role<output "d">}) {
    %a = tandem.cross_entropy %x, %plain : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    %0 = tandem.reshape %some to [4] : tensor<4x1xi32> -> tensor<4xi32>
    %1 = tandem.cast %0 : tensor<4xi32> to tensor<4xi64>
    %b = tandem.cross_entropy %x, %1 {ignore_index = -100 : i64} : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    %c = tandem.cross_entropy %x, %less : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    %d = tandem.cross_entropy %x, %more : tensor<4x10xf32>, tensor<4xi64> -> tensor<f32>
    return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Indices; of two tables the smaller one. What one op ignores, another takes as
// an index.
// CHECK-LABEL: module @indices
module @indices attributes {tandem.phase = "functionalize"} {
  // CHECK: input "i" {high = 7 : i64}>
  // CHECK-SAME: input "j" {high = 7 : i64}>
  // CHECK-SAME: input "shifted">
  func.func @graph(
      %i: tensor<4xi64> {tandem.role = #tandem.role<input "i">},
      %j: tensor<4xi64> {tandem.role = #tandem.role<input "j">},
      %k: tensor<4xi64> {tandem.role = #tandem.role<input "shifted">},
      %t: tensor<7x2xf32> {tandem.role = #tandem.role<param "t">},
      %u: tensor<9x2xf32> {tandem.role = #tandem.role<param "u">})
      -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "c">},
          tensor<4xi1> {tandem.role = #tandem.role<output "d">}) {
    %0 = tandem.take %u, %i : tensor<9x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %1 = tandem.take %t, %i : tensor<7x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %a = tandem.add %0, %1 : tensor<4x2xf32>
    %b = tandem.take %t, %j : tensor<7x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %none = tandem.constant dense<-1> : tensor<4xi64>
    %d = tandem.compare eq %j, %none : tensor<4xi64>
    %2 = tandem.sub %k, %none : tensor<4xi64>
    %c = tandem.take %t, %2 : tensor<7x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    return %a, %b, %c, %d : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4xi1>
  }
}

// -----

// Negative indices count from the end (ONNX's Gather): of 5 rows -5 is the first.
// One that another op takes as a label is not negative.
// CHECK-LABEL: module @wrapped
module @wrapped attributes {tandem.phase = "functionalize"} {
  // CHECK: input "i" {high = 5 : i64, low = -5 : i64}>
  // CHECK-SAME: input "j" {high = 4 : i64}>
  func.func @graph(
      %x: tensor<5x2xf32> {tandem.role = #tandem.role<input "x">},
      %l: tensor<4x4xf32> {tandem.role = #tandem.role<input "l">},
      %i: tensor<4xi32> {tandem.role = #tandem.role<input "i">},
      %j: tensor<4xi64> {tandem.role = #tandem.role<input "j">})
      -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<f32> {tandem.role = #tandem.role<output "c">}) {
    %zero = tandem.constant dense<0> : tensor<4xi64>
    %five = tandem.constant dense<5> : tensor<4xi64>
    %0 = tandem.cast %i : tensor<4xi32> to tensor<4xi64>
    %1 = tandem.compare lt %0, %zero : tensor<4xi64>
    %2 = tandem.add %0, %five : tensor<4xi64>
    %3 = tandem.select %1, %2, %0 : tensor<4xi1>, tensor<4xi64>
    %a = tandem.take %x, %3 : tensor<5x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %4 = tandem.compare lt %j, %zero : tensor<4xi64>
    %5 = tandem.add %j, %five : tensor<4xi64>
    %6 = tandem.select %4, %5, %j : tensor<4xi1>, tensor<4xi64>
    %b = tandem.take %x, %6 : tensor<5x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %c = tandem.cross_entropy %l, %j : tensor<4x4xf32>, tensor<4xi64> -> tensor<f32>
    return %a, %b, %c : tensor<4x2xf32>, tensor<4x2xf32>, tensor<f32>
  }
}

// -----

// An index of a tensor's elements is made of one that counts from the end
// (gather); what is no index is left alone.
// CHECK-LABEL: module @elements
module @elements attributes {tandem.phase = "functionalize"} {
  // CHECK: input "i" {high = 5 : i64, low = -5 : i64}>
  // CHECK-SAME: input "n">
  func.func @graph(
      %x: tensor<20xf32> {tandem.role = #tandem.role<input "x">},
      %i: tensor<4xi64> {tandem.role = #tandem.role<input "i">},
      %n: tensor<4xi64> {tandem.role = #tandem.role<input "n">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4xi64> {tandem.role = #tandem.role<output "b">}) {
    %zero = tandem.constant dense<0> : tensor<4xi64>
    %four = tandem.constant dense<4> : tensor<4xi64>
    %five = tandem.constant dense<5> : tensor<4xi64>
    %0 = tandem.compare lt %i, %zero : tensor<4xi64>
    %1 = tandem.add %i, %five : tensor<4xi64>
    %2 = tandem.select %0, %1, %i : tensor<4xi1>, tensor<4xi64>
    %3 = tandem.mul %2, %four : tensor<4xi64>
    %a = tandem.take %x, %3 : tensor<20xf32>, tensor<4xi64> -> tensor<4xf32>
    %4 = tandem.compare lt %n, %zero : tensor<4xi64>
    %5 = tandem.add %n, %five : tensor<4xi64>
    %b = tandem.select %4, %5, %n : tensor<4xi1>, tensor<4xi64>
    return %a, %b : tensor<4xf32>, tensor<4xi64>
  }
}

// -----

// A loss that is made of simpler ops, as nll_loss is.
// CHECK-LABEL: module @composed
module @composed attributes {tandem.phase = "functionalize"} {
  // CHECK: input "labels" {high = 5 : i64, ignored = -100 : i64}>
  // CHECK-SAME: input "mask">
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<4xi64> {tandem.role = #tandem.role<input "labels">},
      %mask: tensor<4xi64> {tandem.role = #tandem.role<input "mask">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<output "z">}) {
    %zero = tandem.constant dense<0> : tensor<4xi64>
    %five = tandem.constant dense<5> : tensor<4xi64>
    %none = tandem.constant dense<-100> : tensor<4xi64>
    %nan = tandem.constant dense<0x7FC00000> : tensor<4xf32>
    %nothing = tandem.constant dense<0.0> : tensor<4xf32>
    %a = tandem.compare ge %labels, %zero : tensor<4xi64>
    %b = tandem.compare lt %labels, %five : tensor<4xi64>
    %inside = tandem.logical_and %a, %b : tensor<4xi1>
    %0 = tandem.select %inside, %x, %nan : tensor<4xi1>, tensor<4xf32>
    %counted = tandem.compare ne %labels, %none : tensor<4xi64>
    %y = tandem.select %counted, %0, %nothing : tensor<4xi1>, tensor<4xf32>
    %c = tandem.compare ge %mask, %zero : tensor<4xi64>
    %d = tandem.compare lt %mask, %five : tensor<4xi64>
    %known = tandem.logical_and %c, %d : tensor<4xi1>
    %z = tandem.select %known, %x, %nothing : tensor<4xi1>, tensor<4xf32>
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// What an importer says of an index holds beside what the ops take; in a branch
// an op may not run at all.
// CHECK-LABEL: module @said
module @said attributes {tandem.phase = "functionalize"} {
  // CHECK: input "i" {high = 7 : i64}>
  // CHECK-SAME: input "j" {high = 7 : i64, low = -7 : i64}>
  // CHECK-SAME: input "branch">
  // CHECK-NOT: tandem.index_range
  func.func @graph(
      %i: tensor<4xi64> {tandem.role = #tandem.role<input "i">},
      %j: tensor<4xi32> {tandem.role = #tandem.role<input "j">},
      %k: tensor<4xi64> {tandem.role = #tandem.role<input "branch">},
      %p: tensor<i1> {tandem.role = #tandem.role<input "p">})
      -> (tensor<4xi64> {tandem.role = #tandem.role<output "a">},
          tensor<4xi64> {tandem.role = #tandem.role<output "b">},
          tensor<4xi64> {tandem.role = #tandem.role<output "c">}) {
    %a = tandem.cast %i {tandem.index_range = array<i64: 0, 7>} : tensor<4xi64> to tensor<4xi64>
    %0 = tandem.cast %i {tandem.index_range = array<i64: -9, 9>} : tensor<4xi64> to tensor<4xi64>
    %b = tandem.cast %j {tandem.index_range = array<i64: -7, 7>} : tensor<4xi32> to tensor<4xi64>
    %c = tandem.if %p (%k) then {
      ^bb0(%x: tensor<4xi64>):
        %1 = tandem.cast %x {tandem.index_range = array<i64: 0, 7>} : tensor<4xi64> to tensor<4xi64>
        tandem.yield %1 : tensor<4xi64>
    } else {
      ^bb0(%x: tensor<4xi64>):
        tandem.yield %x : tensor<4xi64>
    } : (tensor<4xi64>) -> tensor<4xi64>
    return %a, %b, %c : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>
  }
}

// -----

// Columns that are indices of tables of different sizes: of all the larger one
// holds, of each its own. A column that is no index may be anything.
// CHECK-LABEL: module @columns
module @columns attributes {tandem.phase = "functionalize"} {
  // CHECK: input "all" {high = 9 : i64, ranges = [
  // CHECK-SAME: {begins = array<i64: 0, 0>, ends = array<i64: 4, 1>, high = 7 : i64, low = 0 : i64, steps = array<i64: 1, 1>}]}>
  // CHECK-SAME: input "one" {ranges = [
  // CHECK-SAME: {begins = array<i64: 0, 1>, ends = array<i64: 4, 2>, high = 9 : i64, low = 0 : i64, steps = array<i64: 1, 1>}]}>
  func.func @graph(
      %i: tensor<4x2xi64> {tandem.role = #tandem.role<input "all">},
      %j: tensor<4x2xi64> {tandem.role = #tandem.role<input "one">},
      %t: tensor<7x2xf32> {tandem.role = #tandem.role<param "t">},
      %u: tensor<9x2xf32> {tandem.role = #tandem.role<param "u">})
      -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "c">}) {
    %0 = tandem.slice %i from [0, 0] to [4, 1] step [1, 1] : tensor<4x2xi64> -> tensor<4x1xi64>
    %1 = tandem.reshape %0 to [4] : tensor<4x1xi64> -> tensor<4xi64>
    %a = tandem.take %t, %1 : tensor<7x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %2 = tandem.slice %i from [0, 1] to [4, 2] step [1, 1] : tensor<4x2xi64> -> tensor<4x1xi64>
    %3 = tandem.reshape %2 to [4] : tensor<4x1xi64> -> tensor<4xi64>
    %b = tandem.take %u, %3 : tensor<9x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    %4 = tandem.slice %j from [0, 1] to [4, 2] step [1, 1] : tensor<4x2xi64> -> tensor<4x1xi64>
    %5 = tandem.reshape %4 to [4] : tensor<4x1xi64> -> tensor<4xi64>
    %c = tandem.take %u, %5 : tensor<9x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
    return %a, %b, %c : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
  }
}

// -----

// Tokens of a language model: their last column is a label, and may be ignored;
// nobody reads it as an index. Then one of which a column is read by nobody: no
// index of it was checked.
// CHECK-LABEL: module @tokens
module @tokens attributes {tandem.phase = "functionalize"} {
  // CHECK: input "read" {high = 5 : i64, ignored = -100 : i64, ranges = [
  // CHECK-SAME: {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, high = 5 : i64, low = 0 : i64, steps = array<i64: 1, 1>}]}>
  // CHECK-SAME: input "less" {ranges = [
  // CHECK-SAME: {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, high = 5 : i64, low = 0 : i64, steps = array<i64: 1, 1>}]}>
  func.func @graph(
      %t: tensor<5x5xf32> {tandem.role = #tandem.role<param "t">},
      %i: tensor<2x4xi64> {tandem.role = #tandem.role<input "read">},
      %j: tensor<2x4xi32> {tandem.role = #tandem.role<input "less">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "a">},
          tensor<2x3x5xf32> {tandem.role = #tandem.role<output "b">}) {
    %0 = tandem.slice %i from [0, 0] to [2, 3] step [1, 1] : tensor<2x4xi64> -> tensor<2x3xi64>
    %1 = tandem.reshape %0 to [6] : tensor<2x3xi64> -> tensor<6xi64>
    %2 = tandem.take %t, %1 : tensor<5x5xf32>, tensor<6xi64> -> tensor<6x5xf32>
    %3 = tandem.slice %i from [0, 1] to [2, 4] step [1, 1] : tensor<2x4xi64> -> tensor<2x3xi64>
    %4 = tandem.reshape %3 to [6] : tensor<2x3xi64> -> tensor<6xi64>
    %a = tandem.cross_entropy %2, %4 {ignore_index = -100 : i64} : tensor<6x5xf32>, tensor<6xi64> -> tensor<f32>
    %5 = tandem.slice %j from [0, 0] to [2, 3] step [1, 1] : tensor<2x4xi32> -> tensor<2x3xi32>
    %6 = tandem.cast %5 : tensor<2x3xi32> to tensor<2x3xi64>
    %b = tandem.take %t, %6 : tensor<5x5xf32>, tensor<2x3xi64> -> tensor<2x3x5xf32>
    return %a, %b : tensor<f32>, tensor<2x3x5xf32>
  }
}

// -----

// Slices through other views: of what is transposed, reversed or cut into
// pieces. A diagonal is none, nor is a part of what is flat.
// CHECK-LABEL: module @views
module @views attributes {tandem.phase = "functionalize"} {
  // CHECK: input "i" {ranges = [
  // CHECK-SAME: {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, high = 7 : i64, low = 0 : i64, steps = array<i64: 1, 2>},
  // CHECK-SAME: {begins = array<i64: 0, 5>, ends = array<i64: 2, 6>, high = 9 : i64, low = 0 : i64, steps = array<i64: 1, 1>}]}>
  // CHECK-SAME: input "flat">
  func.func @graph(
      %t: tensor<7x2xf32> {tandem.role = #tandem.role<param "t">},
      %u: tensor<9x2xf32> {tandem.role = #tandem.role<param "u">},
      %i: tensor<2x6xi64> {tandem.role = #tandem.role<input "i">},
      %j: tensor<2x6xi64> {tandem.role = #tandem.role<input "flat">})
      -> (tensor<2x3x2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<2x2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<5x2xf32> {tandem.role = #tandem.role<output "c">}) {
    %0 = tandem.reshape %i to [2, 3, 2] : tensor<2x6xi64> -> tensor<2x3x2xi64>
    %1 = tandem.slice %0 from [0, 0, 0] to [2, 3, 1] step [1, 1, 1] : tensor<2x3x2xi64> -> tensor<2x3x1xi64>
    %2 = tandem.reshape %1 to [2, 3] : tensor<2x3x1xi64> -> tensor<2x3xi64>
    %a = tandem.take %t, %2 : tensor<7x2xf32>, tensor<2x3xi64> -> tensor<2x3x2xf32>
    %3 = tandem.reverse %i along [1] : tensor<2x6xi64> -> tensor<2x6xi64>
    %4 = tandem.slice %3 from [0, 0] to [2, 1] step [1, 1] : tensor<2x6xi64> -> tensor<2x1xi64>
    %5 = tandem.reshape %4 to [2] : tensor<2x1xi64> -> tensor<2xi64>
    %b = tandem.take %u, %5 : tensor<9x2xf32>, tensor<2xi64> -> tensor<2x2xf32>
    %6 = tandem.reshape %j to [12] : tensor<2x6xi64> -> tensor<12xi64>
    %7 = tandem.slice %6 from [0] to [5] step [1] : tensor<12xi64> -> tensor<5xi64>
    %c = tandem.take %t, %7 : tensor<7x2xf32>, tensor<5xi64> -> tensor<5x2xf32>
    return %a, %b, %c : tensor<2x3x2xf32>, tensor<2x2xf32>, tensor<5x2xf32>
  }
}
