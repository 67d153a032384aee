// RUN: tandem-opt %s -verify-diagnostics -tandem-partition-joint | FileCheck %s

// P12: what enters these regions is larger than all that they need not save, so
// they are taken for none, which the compiler says.
module @maxima attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-NOT: saved "matmul
  // CHECK: func.func @backward(
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
  func.func @evaluate() { return }
}
