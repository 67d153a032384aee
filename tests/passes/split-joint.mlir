// RUN: tandem-opt %s -split-input-file -tandem-split-joint | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-split-joint -mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// What is marked crosses, under the name of its op, with the reason; what is
// not is computed again from it, and its location says so. A hand can mark
// other values than a pass did.
// CHECK-LABEL: module @sines
// CHECK: func.func @forward(
// CHECK-SAME: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {reason = "mine"}>})
// CHECK: func.func @backward(%[[X:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %[[S:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<saved "sin.0" {reason = "mine"}>},
// CHECK-NEXT: %[[E:.*]] = tandem.exp %[[S]]
// CHECK-NEXT: tandem.cos %[[E]]
// CHECK-NOT: tandem.saved
// CHECK-NOT: @joint
// LOC-LABEL: module @sines
// LOC: tandem.exp {{.*}} loc(#[[EXP:.*]])
// LOC: func.func @backward
// LOC: tandem.exp {{.*}} loc(#[[AGAIN:.*]])
// LOC: tandem.cos {{.*}} loc(#[[COS:.*]])
// LOC: #[[COS]] = loc("{{[^"]*}}":
// LOC: #[[AGAIN]] = loc("recompute of exp"(#[[EXP]]))
module @sines {
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">})
      attributes {tandem.saved_by = "me"} {
    %s = tandem.sin %x {tandem.pass = "forward", tandem.saved = "mine"} : tensor<8xf32>
    %e = tandem.exp %s {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.sin %e {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.cos %e {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %0, %x {tandem.pass = "backward"} : tensor<8xf32>
    %3 = tandem.mul %1, %dy {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %3 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// An argument that the forward overwrites is saved under its name, and one of
// two results under the number of the result. An output that is a view is none
// of the forward's results.
// CHECK-LABEL: module @others
// CHECK: func.func @forward(
// CHECK-SAME: saved "s" {reason = "it is overwritten"}
// CHECK-SAME: saved "attention_forward.0.1" {
// CHECK-SAME: tandem.aliases = [{name = "t"
// CHECK: func.func @backward(
// CHECK-SAME: saved "s"
// CHECK-SAME: saved "attention_forward.0.1"
module @others {
  func.func @joint(
      %q: tensor<2x8x4xf32> {tandem.role = #tandem.role<input "q" {requires_grad}>},
      %s: tensor<2x8xf32> {tandem.role = #tandem.role<state "s">, tandem.saved = "it is overwritten"},
      %dy: tensor<2x8x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x8x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<64xf32> {tandem.role = #tandem.role<output "t" {alias = {output = "y", views = [{op = "reshape", shape = array<i64: 64>}]}}>},
          tensor<2x8xf32> {tandem.role = #tandem.role<update of "s">},
          tensor<2x8x4xf32> {tandem.role = #tandem.role<grad of "q">})
      attributes {tandem.saved_by = "me"} {
    %o, %m = tandem.attention_forward %q, %q, %q {scale = 0.5 : f64, tandem.pass = "forward", tandem.saved = [unit, "rows"]} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
    %t = tandem.reshape %o to [64] {tandem.pass = "forward"} : tensor<2x8x4xf32> -> tensor<64xf32>
    %n = tandem.add %s, %m {tandem.pass = "forward"} : tensor<2x8xf32>
    %e = tandem.mul %m, %s {tandem.pass = "backward"} : tensor<2x8xf32>
    %d = tandem.broadcast %e to [2, 8, 4] along [0, 1] {tandem.pass = "backward"} : tensor<2x8xf32> -> tensor<2x8x4xf32>
    %g = tandem.mul %dy, %d {tandem.pass = "backward"} : tensor<2x8x4xf32>
    return %o, %t, %n, %g : tensor<2x8x4xf32>, tensor<64xf32>, tensor<2x8xf32>, tensor<2x8x4xf32>
  }
}

// -----

// For inference there is nothing to divide.
// CHECK-LABEL: module @inference
// CHECK: func.func @evaluate
// CHECK-NOT: func.func
module @inference {
  func.func @evaluate() { return }
}
