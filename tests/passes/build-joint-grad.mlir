// RUN: tandem-opt %s -split-input-file -tandem-build-joint | FileCheck %s

// J16: a gradient taken inside of the program is part of the forward, in a
// no-grad region not differentiated further; also in the regions of a
// custom_vjp, whose backward may be written with it.
// CHECK-LABEL: module @inside
module @inside attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK-NOT: tandem.grad
  // CHECK: tandem.cos {{.*}} {tandem.no_grad, tandem.pass = "forward"}
  // CHECK-NOT: tandem.grad
  // CHECK: tandem.sigmoid {{.*}} {tandem.pass = "forward"}
  // CHECK-NOT: tandem.grad
  // CHECK: tandem.tanh {{.*}} {tandem.pass = "backward"}
  // CHECK-NOT: tandem.grad
  // CHECK: func.func @evaluate(
  // CHECK-NOT: tandem.grad
  // CHECK: tandem.cos
  // CHECK-NOT: tandem.grad
  // CHECK: tandem.sigmoid
  // CHECK-NOT: tandem.grad
  // CHECK: return
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %s = tandem.sin %x : tensor<4xf32>
    %f = tandem.grad %s wrt (%x) {tandem.no_grad} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %v = tandem.mul %w, %f : tensor<4xf32>
    %y, %saved = tandem.custom_vjp "g" (%v) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.sigmoid %a : tensor<4xf32>
      %c = tandem.grad %b wrt (%a) : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      tandem.yield %c, %a : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%a: tensor<4xf32>, %dy: tensor<4xf32>):
      %b = tandem.tanh %a : tensor<4xf32>
      %c = tandem.grad %b wrt (%a) : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      %d = tandem.mul %c, %dy : tensor<4xf32>
      tandem.yield %d : tensor<4xf32>
    } {outputs = 1, saved = 1, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A backward op has the stream of its forward op.
// CHECK-LABEL: module @streams
module @streams attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK: tandem.div {{.*}} {tandem.pass = "backward"}
  // CHECK: tandem.cos {{.*}} {tandem.pass = "backward", tandem.stream = 1 : i64}
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %s = tandem.sin %x {tandem.stream = 1 : i64} : tensor<4xf32>
    %t = tandem.log %s : tensor<4xf32>
    %y = tandem.exp %t : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
