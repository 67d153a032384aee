// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-choose-regions | FileCheck %s
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-choose-regions=kind=default | FileCheck %s

// What enters these regions is larger than all that they need not save. Nothing
// else is left of having tried.
// CHECK-LABEL: module @costs
// CHECK-NOT: tandem.checkpoint
// CHECK-NOT: tandem.saved
// CHECK: func.func @joint(
module @costs {
  func.func @joint(
      %x: tensor<64x4xf32> {tandem.role = #tandem.role<input "x">},
      %z: tensor<64x4xf32> {tandem.role = #tandem.role<input "z">},
      %v: tensor<4x64xf32> {tandem.role = #tandem.role<input "v">},
      %k: tensor<64xf32> {tandem.role = #tandem.role<param "k" {requires_grad}>},
      %dy: tensor<64xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<64xf32> {tandem.role = #tandem.role<output "y">},
          tensor<64xf32> {tandem.role = #tandem.role<grad of "k">}) {
    %m = tandem.matmul %x, %v {tandem.pass = "forward"} : tensor<64x4xf32>, tensor<4x64xf32> -> tensor<64x64xf32>
    // expected-remark-re@+1 {{region 'first' is not computed again: the peak of a step would be {{[0-9]+}} bytes, and is {{[0-9]+}} bytes without it}}
    %r = tandem.reduce_max %m over [0] {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<64x64xf32> -> tensor<64xf32>
    %p = tandem.mul %r, %k {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<64xf32>
    %f = tandem.sin %p {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<64xf32>
    %fb = tandem.broadcast %f to [64, 4] along [0] {tandem.pass = "forward"} : tensor<64xf32> -> tensor<64x4xf32>
    %zf = tandem.mul %z, %fb {tandem.pass = "forward"} : tensor<64x4xf32>
    %n = tandem.matmul %zf, %v {tandem.pass = "forward"} : tensor<64x4xf32>, tensor<4x64xf32> -> tensor<64x64xf32>
    // expected-remark-re@+1 {{region 'second' is not computed again: the peak of a step would be {{[0-9]+}} bytes, and is {{[0-9]+}} bytes without it}}
    %s = tandem.reduce_max %n over [0] {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<64x64xf32> -> tensor<64xf32>
    %q = tandem.mul %s, %k {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<64xf32>
    %y = tandem.sin %q {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<64xf32>
    %a = tandem.cos %p {tandem.pass = "backward"} : tensor<64xf32>
    %b = tandem.mul %a, %r {tandem.pass = "backward"} : tensor<64xf32>
    %c = tandem.cos %q {tandem.pass = "backward"} : tensor<64xf32>
    %d = tandem.mul %c, %s {tandem.pass = "backward"} : tensor<64xf32>
    %e = tandem.mul %b, %d {tandem.pass = "backward"} : tensor<64xf32>
    %g = tandem.mul %e, %dy {tandem.pass = "backward"} : tensor<64xf32>
    return %y, %g : tensor<64xf32>, tensor<64xf32>
  }
}

// -----

// Where what is saved has been chosen, with the regions as they are, they stay.
// CHECK-LABEL: module @chosen
// CHECK: tandem.checkpoint = "r"
module @chosen {
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">})
      attributes {tandem.saved_by = "min-cut"} {
    %y = tandem.sin %x {tandem.pass = "forward", tandem.checkpoint = "r"} : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
