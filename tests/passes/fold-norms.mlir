// RUN: tandem-opt %s -split-input-file -tandem-fold-norms | FileCheck %s

// What follows a convolution for each plane is one filter and one shift, which
// is added; also twice, and with numbers in front.
// CHECK-LABEL: module @norms
// CHECK: func.func @evaluate
// CHECK: %[[NEG:.*]] = tandem.neg %[[M:[a-z0-9]+]]
// CHECK: %[[T:.*]] = tandem.mul %[[NEG]], %[[K:[a-z0-9]+]]
// CHECK: %[[S:.*]] = tandem.add %[[T]], %[[B:[a-z0-9]+]] {tandem.prepared = "w.shift"}
// CHECK: %[[KW:.*]] = tandem.broadcast %[[K]] to [5, 3, 3, 3] along [0]
// CHECK: %[[F:.*]] = tandem.mul %[[W:[a-z0-9]+]], %[[KW]] {tandem.prepared = "w.folded"}
// CHECK: %[[Y:.*]] = tandem.conv2d %[[X:[a-z0-9]+]], %[[F]] strides [2, 2] padding [1, 1, 1, 1]
// CHECK: %[[SY:.*]] = tandem.broadcast %[[S]] to [2, 5, 4, 4] along [1]
// CHECK: %[[N:.*]] = tandem.add %[[Y]], %[[SY]]
// CHECK: tandem.relu %[[N]]
module @norms attributes {tandem.prepare, tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = ["avx2", "avx512f"]}>} {
  func.func @evaluate(
      %x: tensor<2x3x8x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<5x3x3x3xf32> {tandem.role = #tandem.role<param "w">},
      %m: tensor<5xf32> {tandem.role = #tandem.role<state "m">},
      %k: tensor<5xf32> {tandem.role = #tandem.role<param "k">},
      %b: tensor<5xf32> {tandem.role = #tandem.role<param "b">})
      -> (tensor<2x5x4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.conv2d %x, %w strides [2, 2] padding [1, 1, 1, 1] : tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32> -> tensor<2x5x4x4xf32>
    %mm = tandem.broadcast %m to [2, 5, 4, 4] along [1] : tensor<5xf32> -> tensor<2x5x4x4xf32>
    %kk = tandem.broadcast %k to [2, 5, 4, 4] along [1] : tensor<5xf32> -> tensor<2x5x4x4xf32>
    %bb = tandem.broadcast %b to [2, 5, 4, 4] along [1] : tensor<5xf32> -> tensor<2x5x4x4xf32>
    %0 = tandem.sub %y, %mm : tensor<2x5x4x4xf32>
    %1 = tandem.mul %kk, %0 : tensor<2x5x4x4xf32>
    %2 = tandem.add %1, %bb : tensor<2x5x4x4xf32>
    %3 = tandem.relu %2 : tensor<2x5x4x4xf32>
    return %3 : tensor<2x5x4x4xf32>
  }
}

// -----

// Not where there is no scale, where the sums themselves are read, too, where a
// number is an input, or of another place than a plane.
// CHECK-LABEL: module @kept
// CHECK-NOT: tandem.prepared
module @kept attributes {tandem.prepare, tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = ["avx2", "avx512f"]}>} {
  func.func @evaluate(
      %x: tensor<2x4x4x4xf32> {tandem.role = #tandem.role<input "x">},
      %i: tensor<4xf32> {tandem.role = #tandem.role<input "i">},
      %w: tensor<4x4x1x1xf32> {tandem.role = #tandem.role<param "w">},
      %k: tensor<4xf32> {tandem.role = #tandem.role<param "k">})
      -> (tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "b">},
          tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "c">},
          tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "d">},
          tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "e">}) {
    %kk = tandem.broadcast %k to [2, 4, 4, 4] along [1] : tensor<4xf32> -> tensor<2x4x4x4xf32>
    %lines = tandem.broadcast %k to [2, 4, 4, 4] along [3] : tensor<4xf32> -> tensor<2x4x4x4xf32>
    %ii = tandem.broadcast %i to [2, 4, 4, 4] along [1] : tensor<4xf32> -> tensor<2x4x4x4xf32>
    %y = tandem.conv2d %x, %w : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
    %a = tandem.add %y, %kk : tensor<2x4x4x4xf32>
    %z = tandem.conv2d %a, %w : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
    %b = tandem.mul %z, %kk : tensor<2x4x4x4xf32>
    %u = tandem.conv2d %b, %w : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
    %d = tandem.mul %u, %lines : tensor<2x4x4x4xf32>
    %v = tandem.conv2d %d, %w : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
    %e = tandem.mul %v, %ii : tensor<2x4x4x4xf32>
    return %a, %b, %z, %d, %e : tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>
  }
}

// -----

// Where nobody asks that anything be computed once.
// CHECK-LABEL: module @plain
// CHECK-NOT: tandem.prepared
module @plain attributes {tandem.target = #tandem.target<cpu {arch = "x86-64-v4", features = ["avx2", "avx512f"]}>} {
  func.func @evaluate(
      %x: tensor<2x4x4x4xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x4x1x1xf32> {tandem.role = #tandem.role<param "w">},
      %k: tensor<4xf32> {tandem.role = #tandem.role<param "k">})
      -> (tensor<2x4x4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %kk = tandem.broadcast %k to [2, 4, 4, 4] along [1] : tensor<4xf32> -> tensor<2x4x4x4xf32>
    %y = tandem.conv2d %x, %w : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
    %a = tandem.mul %y, %kk : tensor<2x4x4x4xf32>
    return %a : tensor<2x4x4x4xf32>
  }
}
