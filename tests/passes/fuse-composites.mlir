// RUN: tandem-opt %s -split-input-file -tandem-fuse-composites | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: tandem-opt %s -split-input-file -tandem-fuse-composites=order=2 | FileCheck %s --check-prefixes=CHECK,TWICE

// For a target that has kernels for it, where it is differentiated once; a
// program that nobody compiled for a target keeps its composites.
// CHECK-LABEL: module @target
// ONCE-NOT: tandem.attention %
// ONCE: tandem.attention_forward
// TWICE: tandem.attention %
module @target attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x2x16x16xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x2x16x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.attention %q, %q, %q : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    return %y : tensor<2x2x16x16xf32>
  }
}

// -----

// CHECK-LABEL: module @none
// CHECK: tandem.attention %
module @none {
  func.func @graph(%q: tensor<2x2x16x16xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x2x16x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.attention %q, %q, %q : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
    return %y : tensor<2x2x16x16xf32>
  }
}

// -----

// CHECK-LABEL: module @positions
// A mask that is a program of positions, as exporters write it.
// ONCE: tandem.attention_forward {{.*}} {causal, scale
// TWICE: tandem.attention %
module @positions attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %mask = tandem.compare le %c, %r : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @hides_nothing
// ONCE: tandem.attention_forward {{.*}} {scale
module @hides_nothing attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %least = tandem.constant dense<0> : tensor<2x3x4x4xi64>
    %mask = tandem.compare ge %r, %least : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @added
// By numbers that are added, the other way round, and with an all-true mask of a
// batch of positions.
// ONCE: tandem.attention_forward {{.*}} {causal, scale
module @added attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %batch = tandem.iota dim 0 : tensor<2x3x4x4xi64>
    %none = tandem.constant dense<-1> : tensor<2x3x4x4xi64>
    %some = tandem.compare gt %batch, %none : tensor<2x3x4x4xi64>
    %future = tandem.compare gt %c, %r : tensor<2x3x4x4xi64>
    %past = tandem.logical_not %future : tensor<2x3x4x4xi1>
    %seen = tandem.logical_and %past, %some : tensor<2x3x4x4xi1>
    %zero = tandem.constant dense<0.0> : tensor<2x3x4x4xf32>
    %least = tandem.constant dense<-3.40282347E+38> : tensor<2x3x4x4xf32>
    %mask = tandem.select %seen, %zero, %least : tensor<2x3x4x4xi1>, tensor<2x3x4x4xf32>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xf32> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @window
// Of these each hides something else: by a window, by little, by an input, by
// numbers that were rounded, of one batch.
// CHECK-NOT: tandem.attention_forward
module @window attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %one = tandem.constant dense<1> : tensor<2x3x4x4xi64>
    %end = tandem.add %r, %one : tensor<2x3x4x4xi64>
    %mask = tandem.compare le %c, %end : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @little
// CHECK-NOT: tandem.attention_forward
module @little attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %seen = tandem.compare le %c, %r : tensor<2x3x4x4xi64>
    %zero = tandem.constant dense<0.0> : tensor<2x3x4x4xf32>
    %least = tandem.constant dense<-1.0e+4> : tensor<2x3x4x4xf32>
    %mask = tandem.select %seen, %zero, %least : tensor<2x3x4x4xi1>, tensor<2x3x4x4xf32>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xf32> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @input
// CHECK-NOT: tandem.attention_forward
module @input attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}, %given: tensor<2x3x4x4xi1> {tandem.role = #tandem.role<input "mask">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.attention %q, %q, %q, %given : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @rounded
// CHECK-NOT: tandem.attention_forward
module @rounded attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %rf = tandem.cast %r : tensor<2x3x4x4xi64> to tensor<2x3x4x4xf32>
    %cf = tandem.cast %c : tensor<2x3x4x4xi64> to tensor<2x3x4x4xf32>
    %tenth = tandem.constant dense<0.1> : tensor<2x3x4x4xf32>
    %rt = tandem.mul %rf, %tenth : tensor<2x3x4x4xf32>
    %ct = tandem.mul %cf, %tenth : tensor<2x3x4x4xf32>
    %mask = tandem.compare le %ct, %rt : tensor<2x3x4x4xf32>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// CHECK-LABEL: module @batch
// CHECK-NOT: tandem.attention_forward
module @batch attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %rows = tandem.iota dim 0 : tensor<4xi64>
    %row = tandem.reshape %rows to [1, 1, 4, 1] : tensor<4xi64> -> tensor<1x1x4x1xi64>
    %column = tandem.reshape %rows to [1, 1, 1, 4] : tensor<4xi64> -> tensor<1x1x1x4xi64>
    %r = tandem.broadcast %row to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x4x1xi64> -> tensor<2x3x4x4xi64>
    %c = tandem.broadcast %column to [2, 3, 4, 4] along [0, 1, 2, 3] : tensor<1x1x1x4xi64> -> tensor<2x3x4x4xi64>
    %batch = tandem.iota dim 0 : tensor<2x3x4x4xi64>
    %end = tandem.add %r, %batch : tensor<2x3x4x4xi64>
    %mask = tandem.compare le %c, %end : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// Bytes without sign: 200 is not -56, and positions below it are all.
// CHECK-LABEL: module @bytes
// ONCE: tandem.attention_forward {{.*}} {scale
module @bytes attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %c = tandem.iota dim 3 : tensor<2x3x4x4xui8>
    %end = tandem.constant dense<200> : tensor<2x3x4x4xui8>
    %mask = tandem.compare lt %c, %end : tensor<2x3x4x4xui8>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// What f64 does not have is not guessed.
// CHECK-LABEL: module @large
// CHECK-NOT: tandem.attention_forward
module @large attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %most = tandem.constant dense<9223372036854775807> : tensor<2x3x4x4xi64>
    %less = tandem.constant dense<9223372036854775806> : tensor<2x3x4x4xi64>
    %mask = tandem.compare eq %less, %most : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}

// -----

// A sum of more elements than anybody has memory for is not computed.
// CHECK-LABEL: module @sum
// CHECK-NOT: tandem.attention_forward
module @sum attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x3x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x3x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %ones = tandem.constant dense<1> : tensor<524288x524288xi64>
    %sum = tandem.reduce_sum %ones over [0, 1] : tensor<524288x524288xi64> -> tensor<i64>
    %all = tandem.broadcast %sum to [2, 3, 4, 4] along [] : tensor<i64> -> tensor<2x3x4x4xi64>
    %zero = tandem.constant dense<0> : tensor<2x3x4x4xi64>
    %mask = tandem.compare gt %all, %zero : tensor<2x3x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x4xi1> -> tensor<2x3x4x8xf32>
    return %y : tensor<2x3x4x8xf32>
  }
}
