// RUN: tandem-opt %s -split-input-file -tandem-build-joint | FileCheck %s

// B01, J10: the backward of the op is used, not that of its forward; what it
// writes of a state is an update of the pass backward, made from the state as
// the backward finds it. Nothing is written in @evaluate. No custom_vjp is left.
// CHECK-LABEL: module @state
// CHECK-NOT: mutated_in_backward
module @state attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[S0:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<state "s">},
  // CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">},
  // CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<state "s" {pass = "backward"}>})
  // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
  // CHECK-SAME:     tensor<4xf32> {tandem.role = #tandem.role<grad of "x">},
  // CHECK-SAME:     tensor<4xf32> {tandem.role = #tandem.role<update of "s" {pass = "backward", where = "'tandem.custom_vjp' 'amax' at build-joint-custom.mlir:{{[0-9]+}}:18"}>})
  // CHECK-NEXT: %[[Y:.*]] = tandem.sin %[[X]] {tandem.pass = "forward"}
  // CHECK-NEXT: %[[NEW:.*]] = tandem.maximum %[[S]], %[[DY]] {tandem.pass = "backward"}
  // CHECK-NEXT: %[[G:.*]] = tandem.mul %[[DY]], %[[X]] {tandem.pass = "backward"}
  // CHECK-NEXT: return %[[Y]], %[[G]], %[[NEW]]
  // CHECK: func.func @evaluate(
  // CHECK-NOT: update
  // CHECK-NEXT: tandem.sin
  // CHECK-NEXT: return
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y, %saved = tandem.custom_vjp "amax" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.sin %a : tensor<4xf32>
      tandem.yield %b, %a : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%a: tensor<4xf32>, %dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.maximum %old, %dy : tensor<4xf32>
      %dx = tandem.mul %dy, %a : tensor<4xf32>
      tandem.yield %dx, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 1, differentiable = 1, states = [{name = "s", written}]} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// B02, B05, B06, B14: x requires grad and is written in both passes: two
// updates, and the list has its index. Of two custom_vjps that write it the
// later runs first; the other reads what it wrote.
// CHECK-LABEL: module @both
// CHECK-SAME: tandem.mutated_in_backward = array<i64: 1>
module @both attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[S:[a-z0-9]+]]: {{[^,]*}}, %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DO:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "o">},
  // CHECK-SAME: %[[DX:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "update of x">},
  // CHECK-SAME: %[[FOUND:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<input "x" {pass = "backward", requires_grad}>})
  // CHECK-SAME: update of "x" {visible
  // CHECK-SAME: grad of "x"
  // CHECK-SAME: update of "x" {pass = "backward"
  // CHECK: %[[FIRST:.*]] = tandem.add %[[FOUND]], %[[DO]] {tandem.pass = "backward"}
  // CHECK: %[[IF:.*]] = tandem.if_defined %[[FIRST]] else %[[FOUND]] when {{\[}}["o"]] {tandem.pass = "backward"}
  // CHECK: %[[SECOND:.*]] = tandem.add %[[IF]], %{{.*}} {tandem.pass = "backward"}
  // CHECK-NOT: if_defined
  // CHECK: return {{.*}}, %[[SECOND]]
  func.func @graph(
      %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "x" {visible}>}) {
    %y = tandem.custom_vjp "one" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.add %old, %dy : tensor<4xf32>
      tandem.yield %dy, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    %o = tandem.custom_vjp "two" (%y) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.add %old, %dy : tensor<4xf32>
      tandem.yield %dy, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    %n = tandem.exp %y : tensor<4xf32>
    return %o, %n : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// B10: the caller's cotangent is overwritten; where it was summed it is nobody's.
// CHECK-LABEL: module @cotangent
module @cotangent attributes {tandem.phase = "functionalize", tandem.loss = "o"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DO:[a-z0-9]+]]:
  // CHECK-SAME: update of "cotangent of o" {pass = "backward"
  // CHECK: %[[N:.*]] = tandem.neg %[[DO]]
  // CHECK: %[[SUM:.*]] = tandem.add
  // CHECK: return {{.*}}, %[[SUM]], %[[N]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">}) {
    %y = tandem.custom_vjp "inner" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      %z = tandem.exp %dy : tensor<4xf32>
      tandem.yield %dy, %z : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, cotangent_writes = array<i64: 0>} : (tensor<4xf32>), () -> tensor<4xf32>
    %z = tandem.add %y, %y : tensor<4xf32>
    %o = tandem.custom_vjp "outer" (%z) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>):
      %n = tandem.neg %dy : tensor<4xf32>
      tandem.yield %dy, %n : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, cotangent_writes = array<i64: 0>} : (tensor<4xf32>), () -> tensor<4xf32>
    return %o : tensor<4xf32>
  }
}

// -----

// B12: what the backward writes of a value made in the forward is its own copy:
// it starts as the value, and nobody sees the end of it.
// CHECK-LABEL: module @private
module @private attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DY:[a-z0-9]+]]:
  // CHECK-NOT: pass = "backward"
  // CHECK: %[[H:.*]] = tandem.exp %[[X]]
  // CHECK: %[[A:.*]] = tandem.add %[[H]], %[[DY]] {tandem.pass = "backward"}
  // CHECK-NEXT: %[[B:.*]] = tandem.mul %[[A]], %[[DY]]
  // CHECK: return %[[H]], %[[B]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %h = tandem.exp %x : tensor<4xf32>
    %y = tandem.custom_vjp "scratch" (%x, %h) forward {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      tandem.yield %b : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.add %old, %dy : tensor<4xf32>
      %dx = tandem.mul %new, %dy : tensor<4xf32>
      tandem.yield %dx, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{input = 1, written}]} : (tensor<4xf32>, tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// B16, J11: the backward adds the gradient to a state and gives none for w: no
// gradient and no warning, and the state is right.
// CHECK-LABEL: module @main_grad
module @main_grad attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK-NOT: grad of
  // CHECK-SAME: update of "main" {pass = "backward"
  // CHECK-NOT: grad of
  func.func @graph(
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %m: tensor<4xf32> {tandem.role = #tandem.role<state "main">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.custom_vjp "f" (%w) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.add %a, %a : tensor<4xf32>
      tandem.yield %b : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.add %old, %dy : tensor<4xf32>
      %none = tandem.undefined : tensor<4xf32>
      tandem.yield %none, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "main", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A14: a result that is the argument itself is differentiated as a result of
// the op. Composites in the regions are decomposed.
// CHECK-LABEL: module @handed_back
module @handed_back attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DY:[a-z0-9]+]]:
  // CHECK-NOT: softmax
  // CHECK: %[[N:.*]] = tandem.neg %[[DY]] {tandem.pass = "backward"}
  // CHECK-NOT: softmax
  // CHECK: return %[[X]], %[[N]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y, %s = tandem.custom_vjp "reverse" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      %m = tandem.softmax %a dim 0 : tensor<4xf32>
      tandem.yield %a, %m : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%m: tensor<4xf32>, %dy: tensor<4xf32>):
      %n = tandem.neg %dy : tensor<4xf32>
      %g = tandem.gelu %m : tensor<4xf32>
      tandem.yield %n : tensor<4xf32>
    } {outputs = 1, saved = 1, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// J12: of two outputs one has no cotangent: the backward gets zeros, or, where
// it asks, nothing, and what depends on that is left out.
// CHECK-LABEL: module @zeros
module @zeros attributes {tandem.phase = "functionalize", tandem.loss = "p"} {
  // CHECK: func.func @joint(%{{.*}}, %[[DP:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "p">})
  // CHECK: %[[Z:.*]] = tandem.constant {tandem.pass = "backward"} dense<0.0
  // CHECK-NEXT: %[[G:.*]] = tandem.add %[[DP]], %[[Z]]
  // CHECK-NEXT: return {{.*}}, %[[G]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "p">},
          tensor<4xf32> {tandem.role = #tandem.role<output "q">}) {
    %p, %q = tandem.custom_vjp "two" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.exp %a : tensor<4xf32>
      tandem.yield %a, %b : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%dp: tensor<4xf32>, %dq: tensor<4xf32>):
      %g = tandem.add %dp, %dq : tensor<4xf32>
      tandem.yield %g : tensor<4xf32>
    } {outputs = 2, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %p, %q : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// CHECK-LABEL: module @undefined
module @undefined attributes {tandem.phase = "functionalize", tandem.loss = "p"} {
  // CHECK: func.func @joint(%{{.*}}, %[[DP:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "p">})
  // CHECK-NOT: dense<0.0
  // CHECK-NOT: "backward"}
  // CHECK: return {{.*}}, %[[DP]]
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "p">},
          tensor<4xf32> {tandem.role = #tandem.role<output "q">}) {
    %p, %q = tandem.custom_vjp "two" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      %b = tandem.exp %a : tensor<4xf32>
      tandem.yield %a, %b : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%dp: tensor<4xf32>, %dq: tensor<4xf32>):
      %e = tandem.exp %dq : tensor<4xf32>
      %g = tandem.accumulate %dp, %e : tensor<4xf32>
      tandem.yield %g : tensor<4xf32>
    } {undefined_cotangents, outputs = 2, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>
    return %p, %q : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// B17: nothing flows into the op: its backward does not run, nor write.
// CHECK-LABEL: module @unreached
module @unreached attributes {tandem.phase = "functionalize", tandem.loss = "p"} {
  // CHECK: func.func @joint(
  // CHECK-NOT: update
  // CHECK: func.func @evaluate
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %s: tensor<4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "p">},
          tensor<4xf32> {tandem.role = #tandem.role<output "q">}) {
    %q = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      tandem.yield %dy, %dy : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "s", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %x, %q : tensor<4xf32>, tensor<4xf32>
  }
}
