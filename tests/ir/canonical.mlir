// Folding and canonicalization: chains of views become one view, and nothing
// changes a bit of any number.
//
// RUN: tandem-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: @broadcast_of_broadcast
// CHECK-NEXT: %[[Y:.*]] = tandem.broadcast %arg0 to [2, 3, 4] along [1] : tensor<3xf32> -> tensor<2x3x4xf32>
// CHECK-NEXT: return %[[Y]]
func.func @broadcast_of_broadcast(%x: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %a = tandem.broadcast %x to [3, 1] along [0] : tensor<3xf32> -> tensor<3x1xf32>
  %b = tandem.broadcast %a to [2, 3, 4] along [1, 2] : tensor<3x1xf32> -> tensor<2x3x4xf32>
  return %b : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @broadcast_that_adds_ones
// CHECK-NEXT: tandem.reshape %arg0 to [1, 3, 1]
func.func @broadcast_that_adds_ones(%x: tensor<3xf32>) -> tensor<1x3x1xf32> {
  %a = tandem.broadcast %x to [1, 3, 1] along [1] : tensor<3xf32> -> tensor<1x3x1xf32>
  return %a : tensor<1x3x1xf32>
}

// -----

// CHECK-LABEL: @views_of_equal_elements
// CHECK-DAG: %[[A:.*]] = tandem.constant dense<2.000000e+00> : tensor<2x3xf32>
// CHECK-DAG: %[[B:.*]] = tandem.constant dense<2.000000e+00> : tensor<6xf32>
// CHECK-DAG: %[[C:.*]] = tandem.constant dense<0.000000e+00> : tensor<5xf32>
// CHECK: %[[D:.*]] = tandem.pad
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @views_of_equal_elements() -> (tensor<2x3xf32>, tensor<6xf32>, tensor<5xf32>, tensor<5xf32>) {
  %c = tandem.constant dense<2.0> : tensor<f32>
  %a = tandem.broadcast %c to [2, 3] along [] : tensor<f32> -> tensor<2x3xf32>
  %b = tandem.reshape %a to [6] : tensor<2x3xf32> -> tensor<6xf32>
  %z = tandem.constant dense<0.0> : tensor<3xf32>
  %p = tandem.pad %z low [1] high [1] interior [0] with 0.0 : f32 : tensor<3xf32> -> tensor<5xf32>
  %q = tandem.pad %z low [1] high [1] interior [0] with -0.0 : f32 : tensor<3xf32> -> tensor<5xf32>
  return %a, %b, %p, %q : tensor<2x3xf32>, tensor<6xf32>, tensor<5xf32>, tensor<5xf32>
}

// -----

// CHECK-LABEL: @reshape_of_reshape
// CHECK-NEXT: tandem.reshape %arg0 to [3, 2]
// CHECK-NEXT: return %{{.*}}, %arg0
func.func @reshape_of_reshape(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2x3xf32>) {
  %a = tandem.reshape %x to [6] : tensor<2x3xf32> -> tensor<6xf32>
  %b = tandem.reshape %a to [3, 2] : tensor<6xf32> -> tensor<3x2xf32>
  %c = tandem.reshape %b to [2, 3] : tensor<3x2xf32> -> tensor<2x3xf32>
  return %b, %c : tensor<3x2xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @permute
// CHECK-NEXT: %[[A:.*]] = tandem.permute %arg0 by [1, 2, 0]
// CHECK-NEXT: %[[B:.*]] = tandem.reshape %arg1 to [4, 1, 5]
// CHECK-NEXT: return %[[A]], %arg0, %[[B]]
func.func @permute(%x: tensor<2x3x4xf32>, %y: tensor<1x4x5xf32>) -> (tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<4x1x5xf32>) {
  %a = tandem.permute %x by [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %b = tandem.permute %a by [2, 0, 1] : tensor<4x2x3xf32> -> tensor<3x4x2xf32>
  %c = tandem.permute %a by [1, 2, 0] : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  %d = tandem.permute %y by [1, 0, 2] : tensor<1x4x5xf32> -> tensor<4x1x5xf32>
  return %b, %c, %d : tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<4x1x5xf32>
}

// -----

// Elements 1, 3, 5, 7 of x, of which 1 and 2, and the last alone.
// CHECK-LABEL: @slice_of_slice
// CHECK-NEXT: %[[A:.*]] = tandem.slice %arg0 from [3] to [6] step [2] : tensor<9xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[B:.*]] = tandem.slice %arg0 from [7] to [8] step [1] : tensor<9xf32> -> tensor<1xf32>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @slice_of_slice(%x: tensor<9xf32>) -> (tensor<2xf32>, tensor<1xf32>) {
  %a = tandem.slice %x from [1] to [9] step [2] : tensor<9xf32> -> tensor<4xf32>
  %b = tandem.slice %a from [1] to [3] step [1] : tensor<4xf32> -> tensor<2xf32>
  %c = tandem.slice %a from [3] to [4] step [9] : tensor<4xf32> -> tensor<1xf32>
  return %b, %c : tensor<2xf32>, tensor<1xf32>
}

// -----

// CHECK-LABEL: @matmul_of_transposes
// CHECK-NEXT: %[[A:.*]] = tandem.matmul %arg0, %arg1 {transpose_lhs, transpose_rhs}
// CHECK-NEXT: %[[B:.*]] = tandem.matmul %arg1, %arg0 :
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @matmul_of_transposes(%x: tensor<7x2x3xf32>, %y: tensor<7x4x2xf32>) -> (tensor<7x3x4xf32>, tensor<7x4x3xf32>) {
  %xt = tandem.permute %x by [0, 2, 1] : tensor<7x2x3xf32> -> tensor<7x3x2xf32>
  %yt = tandem.permute %y by [0, 2, 1] : tensor<7x4x2xf32> -> tensor<7x2x4xf32>
  %a = tandem.matmul %xt, %yt : tensor<7x3x2xf32>, tensor<7x2x4xf32> -> tensor<7x3x4xf32>
  %b = tandem.matmul %yt, %xt {transpose_lhs, transpose_rhs} : tensor<7x2x4xf32>, tensor<7x3x2xf32> -> tensor<7x4x3xf32>
  return %a, %b : tensor<7x3x4xf32>, tensor<7x4x3xf32>
}

// -----

// A permutation that moves leading dimensions stays.
// CHECK-LABEL: @matmul_of_heads
// CHECK-NEXT: tandem.permute
// CHECK-NEXT: tandem.permute
// CHECK-NEXT: tandem.matmul %{{.*}}, %{{.*}} :
func.func @matmul_of_heads(%x: tensor<2x3x3xf32>) -> tensor<3x2x2xf32> {
  %t = tandem.permute %x by [2, 0, 1] : tensor<2x3x3xf32> -> tensor<3x2x3xf32>
  %u = tandem.permute %x by [1, 2, 0] : tensor<2x3x3xf32> -> tensor<3x3x2xf32>
  %a = tandem.matmul %t, %u : tensor<3x2x3xf32>, tensor<3x3x2xf32> -> tensor<3x2x2xf32>
  return %a : tensor<3x2x2xf32>
}

// -----

// CHECK-LABEL: @cast_of_cast
// CHECK-NEXT: %[[N:.*]] = tandem.cast %arg0 : tensor<2xf32> to tensor<2xbf16>
// CHECK-NEXT: %[[W:.*]] = tandem.cast %[[N]] : tensor<2xbf16> to tensor<2xf32>
// CHECK-NEXT: %[[I:.*]] = tandem.cast %arg2 : tensor<2xi8> to tensor<2xf32>
// CHECK-NEXT: return %arg1, %[[W]], %[[I]]
func.func @cast_of_cast(%x: tensor<2xf32>, %h: tensor<2xbf16>, %i: tensor<2xi8>) -> (tensor<2xbf16>, tensor<2xf32>, tensor<2xf32>) {
  %w = tandem.cast %h : tensor<2xbf16> to tensor<2xf32>
  %a = tandem.cast %w : tensor<2xf32> to tensor<2xbf16>
  %n = tandem.cast %x : tensor<2xf32> to tensor<2xbf16>
  %b = tandem.cast %n : tensor<2xbf16> to tensor<2xf32>
  %j = tandem.cast %i : tensor<2xi8> to tensor<2xi32>
  %c = tandem.cast %j : tensor<2xi32> to tensor<2xf32>
  return %a, %b, %c : tensor<2xbf16>, tensor<2xf32>, tensor<2xf32>
}

// -----

// 2^24 + 1 rounds to even in f32.
// CHECK-LABEL: @cast_of_constants
// CHECK-DAG: %[[A:.*]] = tandem.constant dense<0x4B800000> : tensor<2xf32>
// CHECK-DAG: %[[B:.*]] = tandem.constant dense<1.000980e-01> : tensor<2xbf16>
// CHECK: return %[[A]], %[[B]]
func.func @cast_of_constants() -> (tensor<2xf32>, tensor<2xbf16>) {
  %i = tandem.constant dense<16777217> : tensor<2xi32>
  %a = tandem.cast %i : tensor<2xi32> to tensor<2xf32>
  %f = tandem.constant dense<0.1> : tensor<2xf32>
  %b = tandem.cast %f : tensor<2xf32> to tensor<2xbf16>
  return %a, %b : tensor<2xf32>, tensor<2xbf16>
}

// -----

// CHECK-LABEL: @select
// CHECK-NEXT: return %arg0, %arg1, %arg0
func.func @select(%x: tensor<2xf32>, %y: tensor<2xf32>, %c: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %true = tandem.constant dense<true> : tensor<2xi1>
  %false = tandem.constant dense<false> : tensor<2xi1>
  %a = tandem.select %true, %x, %y : tensor<2xi1>, tensor<2xf32>
  %b = tandem.select %false, %x, %y : tensor<2xi1>, tensor<2xf32>
  %d = tandem.select %c, %x, %x : tensor<2xi1>, tensor<2xf32>
  return %a, %b, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg0
func.func @neutral(%x: tensor<2xf32>, %c: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xf32>) {
  %one = tandem.constant dense<1.0> : tensor<2xf32>
  %zero = tandem.constant dense<0.0> : tensor<2xf32>
  %minus = tandem.constant dense<-0.0> : tensor<2xf32>
  %a = tandem.mul %one, %x : tensor<2xf32>
  %b = tandem.div %x, %one : tensor<2xf32>
  %d = tandem.sub %x, %zero : tensor<2xf32>
  %e = tandem.add %minus, %x : tensor<2xf32>
  %n = tandem.neg %x : tensor<2xf32>
  %f = tandem.neg %n : tensor<2xf32>
  %g = tandem.reduce_sum %x over [] : tensor<2xf32> -> tensor<2xf32>
  %m = tandem.logical_not %c : tensor<2xi1>
  %h = tandem.logical_not %m : tensor<2xi1>
  %i = tandem.pad %x low [0] high [0] interior [0] with 0.0 : f32 : tensor<2xf32> -> tensor<2xf32>
  return %a, %b, %d, %e, %f, %g, %h, %i : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xf32>
}

// -----

// -0.0 + 0.0 is 0.0, x * 0 can be NaN, 1/3 * 3 is not 1: none of these folds.
// CHECK-LABEL: @kept
// CHECK: tandem.add
// CHECK: tandem.mul
// CHECK: tandem.mul
func.func @kept(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = tandem.constant dense<0.0> : tensor<2xf32>
  %third = tandem.constant dense<0.3> : tensor<2xf32>
  %a = tandem.add %x, %zero : tensor<2xf32>
  %b = tandem.mul %x, %zero : tensor<2xf32>
  %c = tandem.mul %third, %third : tensor<2xf32>
  return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: @integers
// CHECK-DAG: %[[A:.*]] = tandem.constant dense<[5, 7, 9]> : tensor<3xi32>
// CHECK-DAG: %[[B:.*]] = tandem.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK-DAG: %[[C:.*]] = tandem.constant dense<12> : tensor<1000000xi64>
// CHECK-DAG: %[[D:.*]] = tandem.constant dense<6> : tensor<i32>
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @integers() -> (tensor<3xi32>, tensor<3xi1>, tensor<1000000xi64>, tensor<i32>) {
  %x = tandem.constant dense<[1, 2, 3]> : tensor<3xi32>
  %y = tandem.constant dense<[4, 5, 6]> : tensor<3xi32>
  %two = tandem.constant dense<2> : tensor<3xi32>
  %a = tandem.add %x, %y : tensor<3xi32>
  %b = tandem.compare lt %x, %two : tensor<3xi32>
  %three = tandem.constant dense<3> : tensor<1000000xi64>
  %four = tandem.constant dense<4> : tensor<1000000xi64>
  %c = tandem.mul %three, %four : tensor<1000000xi64>
  %d = tandem.reduce_sum %x over [0] : tensor<3xi32> -> tensor<i32>
  return %a, %b, %c, %d : tensor<3xi32>, tensor<3xi1>, tensor<1000000xi64>, tensor<i32>
}

// -----

// Integers are added modulo 2^bits.
// CHECK-LABEL: @signed_arithmetic
// CHECK-NEXT: %[[Y:.*]] = tandem.constant dense<-56> : tensor<i8>
// CHECK-NEXT: return %[[Y]]
func.func @signed_arithmetic() -> tensor<i8> {
  %a = tandem.constant dense<100> : tensor<i8>
  %y = tandem.add %a, %a : tensor<i8>
  return %y : tensor<i8>
}

// -----

// Also above the largest signed number.
// CHECK-LABEL: @unsigned_arithmetic
// CHECK-DAG: tandem.constant dense<44> : tensor<3xui8>
// CHECK-DAG: tandem.constant dense<[200, 206, 1]> : tensor<3xui8>
// CHECK-NOT: tandem.add
func.func @unsigned_arithmetic() -> (tensor<3xui8>, tensor<3xui8>) {
  %a = tandem.constant dense<200> : tensor<3xui8>
  %b = tandem.constant dense<100> : tensor<3xui8>
  %y = tandem.add %a, %b : tensor<3xui8>
  %c = tandem.constant dense<[0, 6, 57]> : tensor<3xui8>
  %z = tandem.add %a, %c : tensor<3xui8>
  return %y, %z : tensor<3xui8>, tensor<3xui8>
}

// -----

// CHECK-LABEL: @unsigned_comparison
// CHECK-NEXT: %[[Y:.*]] = tandem.constant dense<false> : tensor<3xi1>
// CHECK-NEXT: return %[[Y]]
func.func @unsigned_comparison() -> tensor<3xi1> {
  %a = tandem.constant dense<200> : tensor<3xui8>
  %b = tandem.constant dense<100> : tensor<3xui8>
  %y = tandem.compare lt %a, %b : tensor<3xui8>
  return %y : tensor<3xi1>
}

// -----

// A narrow signed number may be negative: two casts are not one.
// CHECK-LABEL: @unsigned_between
// CHECK: tandem.cast %arg0 : tensor<3xi8> to tensor<3xui16>
// CHECK: tandem.cast %arg1 : tensor<3xui8> to tensor<3xi32>
// CHECK-NOT: tandem.cast %arg0 : tensor<3xi8> to tensor<3xi32>
func.func @unsigned_between(%x: tensor<3xi8>, %y: tensor<3xui8>) -> (tensor<3xi32>, tensor<3xi32>) {
  %a = tandem.cast %x : tensor<3xi8> to tensor<3xui16>
  %b = tandem.cast %a : tensor<3xui16> to tensor<3xi32>
  %c = tandem.cast %y : tensor<3xui8> to tensor<3xi16>
  %d = tandem.cast %c : tensor<3xi16> to tensor<3xi32>
  return %b, %d : tensor<3xi32>, tensor<3xi32>
}

// -----

// Rounded to what the type has; infinity is NaN where there is none.
// CHECK-LABEL: @narrow_constants
// CHECK-DAG: tandem.constant dense<4.480000e+02> : tensor<2xf8E4M3FN>
// CHECK-DAG: tandem.constant dense<0x7F> : tensor<2xf8E4M3FN>
// CHECK-DAG: tandem.constant dense<0x7C> : tensor<2xf8E5M2>
func.func @narrow_constants() -> (tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>, tensor<2xf8E5M2>) {
  %a = tandem.constant dense<464.0> : tensor<2xf32>
  %x = tandem.cast %a : tensor<2xf32> to tensor<2xf8E4M3FN>
  %b = tandem.constant dense<464.1> : tensor<2xf32>
  %y = tandem.cast %b : tensor<2xf32> to tensor<2xf8E4M3FN>
  %c = tandem.constant dense<1.0e6> : tensor<2xf32>
  %z = tandem.cast %c : tensor<2xf32> to tensor<2xf8E5M2>
  return %x, %y, %z : tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>, tensor<2xf8E5M2>
}

// -----

// What is computed of shapes is known.
// CHECK-LABEL: @integers_of_shapes
// CHECK-DAG: %[[A:.*]] = tandem.constant dense<[12, 4]> : tensor<2xi64>
// CHECK-DAG: %[[B:.*]] = tandem.constant dense<[4, 3, 2, 8]> : tensor<4xi64>
// CHECK-DAG: %[[C:.*]] = tandem.constant dense<24> : tensor<i64>
// CHECK-DAG: %[[D:.*]] = tandem.constant dense<[8, 6, 4]> : tensor<3xi64>
// CHECK-DAG: %[[E:.*]] = tandem.constant dense<[1, 0, 0]> : tensor<3xi64>
// CHECK-DAG: %[[F:.*]] = tandem.constant dense<[2, 1, 0]> : tensor<3xi64>
// CHECK-DAG: %[[G:.*]] = tandem.constant dense<[2, 5, 9]> : tensor<3xi64>
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]], %[[G]]
func.func @integers_of_shapes() -> (tensor<2xi64>, tensor<4xi64>, tensor<i64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) {
  %s = tandem.constant dense<[2, 3, 4]> : tensor<3xi64>
  %i = tandem.constant dense<[2, 0]> : tensor<2xi32>
  %t = tandem.take %s, %i : tensor<3xi64>, tensor<2xi32> -> tensor<2xi64>
  %three = tandem.constant dense<[3, 2]> : tensor<2xi64>
  %a = tandem.mul %t, %three : tensor<2xi64>
  %r = tandem.reverse %s along [0] : tensor<3xi64> -> tensor<3xi64>
  %l = tandem.slice %a from [1] to [2] step [1] : tensor<2xi64> -> tensor<1xi64>
  %two = tandem.constant dense<2> : tensor<1xi64>
  %e8 = tandem.mul %l, %two : tensor<1xi64>
  %b = tandem.concat %r, %e8 dim 0 : tensor<3xi64>, tensor<1xi64> -> tensor<4xi64>
  %c = tandem.reduce_prod %s over [0] : tensor<3xi64> -> tensor<i64>
  %many = tandem.constant dense<[17, 18, 19]> : tensor<3xi64>
  %d = tandem.idiv %many, %s : tensor<3xi64>
  %m = tandem.compare lt %s, %r : tensor<3xi64>
  %e = tandem.cast %m : tensor<3xi1> to tensor<3xi64>
  %v, %f = tandem.sort %s dim 0 descending : tensor<3xi64> -> tensor<3xi64>, tensor<3xi64>
  %g = tandem.cumsum %s dim 0 : tensor<3xi64> -> tensor<3xi64>
  return %a, %b, %c, %d, %e, %f, %g : tensor<2xi64>, tensor<4xi64>, tensor<i64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>
}

// -----

// Floats that are moved, compared and rounded are known too; sums are not, and
// neither is what would be much data.
// CHECK-LABEL: @floats_that_move
// CHECK-DAG: %[[A:.*]] = tandem.constant dense<{{\[\[}}1.000000e+00, 3.000000e+00], [-2.500000e+00, -0.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: %[[B:.*]] = tandem.constant dense<{{\[\[}}false, true], [true, true]]> : tensor<2x2xi1>
// CHECK-DAG: %[[C:.*]] = tandem.constant dense<{{\[\[}}1, -2], [3, 0]]> : tensor<2x2xi32>
// CHECK-DAG: %[[X:.*]] = tandem.constant dense<{{\[\[}}1.000000e+00, -2.500000e+00], [3.000000e+00, -0.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: %[[D:.*]] = tandem.add %[[X]], %[[A]]
// CHECK-DAG: %[[L:.*]] = tandem.broadcast
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[L]]
func.func @floats_that_move() -> (tensor<2x2xf32>, tensor<2x2xi1>, tensor<2x2xi32>, tensor<2x2xf32>, tensor<40x2x2xf32>) {
  %x = tandem.constant dense<[[1.0, -2.5], [3.0, -0.0]]> : tensor<2x2xf32>
  %a = tandem.permute %x by [1, 0] : tensor<2x2xf32> -> tensor<2x2xf32>
  %b = tandem.compare ne %x, %a : tensor<2x2xf32>
  %i = tandem.constant dense<[[false, true], [true, true]]> : tensor<2x2xi1>
  %n = tandem.logical_and %b, %i : tensor<2x2xi1>
  %o = tandem.logical_or %n, %i : tensor<2x2xi1>
  %c = tandem.cast %x : tensor<2x2xf32> to tensor<2x2xi32>
  %d = tandem.add %x, %a : tensor<2x2xf32>
  %l = tandem.broadcast %x to [40, 2, 2] along [1, 2] : tensor<2x2xf32> -> tensor<40x2x2xf32>
  return %a, %o, %c, %d, %l : tensor<2x2xf32>, tensor<2x2xi1>, tensor<2x2xi32>, tensor<2x2xf32>, tensor<40x2x2xf32>
}
