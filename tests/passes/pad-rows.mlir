// RUN: tandem-opt %s -split-input-file -tandem-pad-rows | FileCheck %s

// A product's factor of 257 columns of bf16 is stored in rows of 264; the kernel
// that makes it would write it over %k0, which gets the same rows. All that read
// them take a slice; a reshape between keeps them.
// CHECK-LABEL: func.func @padded
// CHECK: %[[K0:.*]] = tandem.kernel "k0"
// CHECK: %[[P0:.*]] = tandem.pad %{{.*}} low [0, 0] high [0, 7] interior [0, 0] with 0.000000e+00 : bf16 {tandem.row_padding}
// CHECK: tandem.yield %[[P0]] : tensor<64x264xbf16>
// CHECK: %[[K1:.*]] = tandem.kernel "k1"(%[[K0]]) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<64x264xbf16>):
// CHECK-NEXT: tandem.slice %[[A]] from [0, 0] to [64, 257] step [1, 1]
// CHECK: tandem.pad {{.*}} {tandem.row_padding}
// CHECK: %[[R:.*]] = tandem.reshape %[[K1]] to [64, 264]
// CHECK: tandem.kernel "k2"(%[[R]], %arg1) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: tensor<64x264xbf16>,
// CHECK-NEXT: %[[S:.*]] = tandem.slice %[[B]]
// CHECK: tandem.matmul %[[S]]
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>, tandem.phase = "plan"} {
  func.func @padded(%x: tensor<64x257xbf16>, %w: tensor<257x128xbf16>) -> tensor<64x128xbf16> {
    %k0 = tandem.kernel "k0"(%x) {
    ^bb0(%a: tensor<64x257xbf16>):
      %0 = tandem.exp %a : tensor<64x257xbf16>
      tandem.yield %0 : tensor<64x257xbf16>
    } : (tensor<64x257xbf16>) -> tensor<64x257xbf16>
    %k1 = tandem.kernel "k1"(%k0) {
    ^bb0(%a: tensor<64x257xbf16>):
      %0 = tandem.tanh %a : tensor<64x257xbf16>
      %1 = tandem.reshape %0 to [4, 16, 257] : tensor<64x257xbf16> -> tensor<4x16x257xbf16>
      tandem.yield %1 : tensor<4x16x257xbf16>
    } : (tensor<64x257xbf16>) -> tensor<4x16x257xbf16>
    %r = tandem.reshape %k1 to [64, 257] : tensor<4x16x257xbf16> -> tensor<64x257xbf16>
    %k2 = tandem.kernel "k2"(%r, %w) {
    ^bb0(%a: tensor<64x257xbf16>, %b: tensor<257x128xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x257xbf16>, tensor<257x128xbf16> -> tensor<64x128xbf16>
      tandem.yield %0 : tensor<64x128xbf16>
    } : (tensor<64x257xbf16>, tensor<257x128xbf16>) -> tensor<64x128xbf16>
    return %k2 : tensor<64x128xbf16>
  }
}

// -----

// What is returned keeps its shape, and so does a factor of f32 that is not
// rounded, or short rows.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: row_padding
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>, tandem.phase = "plan"} {
  func.func @kept(%x: tensor<64x257xbf16>, %w: tensor<257x128xbf16>, %y: tensor<64x257xf32>, %v: tensor<257x128xf32>, %z: tensor<64x49xbf16>, %u: tensor<49x128xbf16>) -> (tensor<64x257xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>, tensor<64x128xbf16>) {
    %k0 = tandem.kernel "k0"(%x) {
    ^bb0(%a: tensor<64x257xbf16>):
      %0 = tandem.exp %a : tensor<64x257xbf16>
      tandem.yield %0 : tensor<64x257xbf16>
    } : (tensor<64x257xbf16>) -> tensor<64x257xbf16>
    %k1 = tandem.kernel "k1"(%k0, %w) {
    ^bb0(%a: tensor<64x257xbf16>, %b: tensor<257x128xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x257xbf16>, tensor<257x128xbf16> -> tensor<64x128xbf16>
      tandem.yield %0 : tensor<64x128xbf16>
    } : (tensor<64x257xbf16>, tensor<257x128xbf16>) -> tensor<64x128xbf16>
    %k2 = tandem.kernel "k2"(%y) {
    ^bb0(%a: tensor<64x257xf32>):
      %0 = tandem.exp %a : tensor<64x257xf32>
      tandem.yield %0 : tensor<64x257xf32>
    } : (tensor<64x257xf32>) -> tensor<64x257xf32>
    %k3 = tandem.kernel "k3"(%k2, %v) {
    ^bb0(%a: tensor<64x257xf32>, %b: tensor<257x128xf32>):
      %0 = tandem.matmul %a, %b : tensor<64x257xf32>, tensor<257x128xf32> -> tensor<64x128xf32>
      tandem.yield %0 : tensor<64x128xf32>
    } : (tensor<64x257xf32>, tensor<257x128xf32>) -> tensor<64x128xf32>
    %k4 = tandem.kernel "k4"(%z) {
    ^bb0(%a: tensor<64x49xbf16>):
      %0 = tandem.exp %a : tensor<64x49xbf16>
      tandem.yield %0 : tensor<64x49xbf16>
    } : (tensor<64x49xbf16>) -> tensor<64x49xbf16>
    %k5 = tandem.kernel "k5"(%k4, %u) {
    ^bb0(%a: tensor<64x49xbf16>, %b: tensor<49x128xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x49xbf16>, tensor<49x128xbf16> -> tensor<64x128xbf16>
      tandem.yield %0 : tensor<64x128xbf16>
    } : (tensor<64x49xbf16>, tensor<49x128xbf16>) -> tensor<64x128xbf16>
    return %k0, %k1, %k3, %k5 : tensor<64x257xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>, tensor<64x128xbf16>
  }
}

// -----

// On a processor rows may begin anywhere.
// CHECK-LABEL: func.func @processor
// CHECK-NOT: row_padding
// CHECK: return
module attributes {tandem.target = #tandem.target<cpu {arch = "x86-64-v3"}>, tandem.phase = "plan"} {
  func.func @processor(%x: tensor<64x257xbf16>, %w: tensor<257x128xbf16>) -> tensor<64x128xbf16> {
    %k0 = tandem.kernel "k0"(%x) {
    ^bb0(%a: tensor<64x257xbf16>):
      %0 = tandem.exp %a : tensor<64x257xbf16>
      tandem.yield %0 : tensor<64x257xbf16>
    } : (tensor<64x257xbf16>) -> tensor<64x257xbf16>
    %k1 = tandem.kernel "k1"(%k0, %w) {
    ^bb0(%a: tensor<64x257xbf16>, %b: tensor<257x128xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x257xbf16>, tensor<257x128xbf16> -> tensor<64x128xbf16>
      tandem.yield %0 : tensor<64x128xbf16>
    } : (tensor<64x257xbf16>, tensor<257x128xbf16>) -> tensor<64x128xbf16>
    return %k1 : tensor<64x128xbf16>
  }
}
