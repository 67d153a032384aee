// RUN: tandem-opt %s -split-input-file -tandem-build-joint -tandem-optimize-joint -tandem-partition-joint=kind=default | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-build-joint -tandem-optimize-joint -tandem-partition-joint=kind=min-cut | FileCheck %s

// B07: what the backward writes stays in the backward though it depends on no
// cotangent, and what the forward writes in the forward. B06: the list goes
// with the module.
// CHECK-LABEL: module @no_cotangent
// CHECK-SAME: tandem.mutated_in_backward = array<i64: 0>
module @no_cotangent attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<update of "t">}
  // CHECK-NOT: tandem.sqrt
  // CHECK: tandem.log
  // CHECK-NOT: tandem.sqrt
  // CHECK: func.func @backward(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<input "x" {pass = "backward", requires_grad}>})
  // CHECK-SAME: update of "x" {pass = "backward"
  // CHECK-NOT: tandem.log
  // CHECK: tandem.sqrt %[[X]]
  // CHECK-NOT: tandem.log
  // CHECK: func.func @evaluate(
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %t: tensor<4xf32> {tandem.role = #tandem.role<state "t">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "t">}) {
    %y = tandem.custom_vjp "f" (%x) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %s: tensor<4xf32>):
      %r = tandem.sqrt %s : tensor<4xf32>
      tandem.yield %dy, %r : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    %z = tandem.sin %y : tensor<4xf32>
    %l = tandem.log %t : tensor<4xf32>
    return %z, %l : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// B08: the primal that the backward overwrites is kept by copy; what is
// computed from it is not computed again from what was written. B15: the
// gradient is computed from the old value.
// CHECK-LABEL: module @primal
module @primal attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "{{x|cos.0|sin.0}}"
  // CHECK: func.func @backward(
  // CHECK-NOT: input "x" {requires_grad
  // CHECK-SAME: saved "{{x|cos.0|sin.0}}"
  // CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {tandem.role = #tandem.role<input "x" {pass = "backward", requires_grad}>})
  // CHECK-NOT: tandem.cos %[[X]]
  // CHECK-NOT: tandem.sin %[[X]]
  // CHECK: func.func @evaluate(
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %s = tandem.sin %x : tensor<4xf32>
    %y = tandem.custom_vjp "f" (%s) forward {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } backward {
    ^bb0(%dy: tensor<4xf32>, %old: tensor<4xf32>):
      %new = tandem.add %old, %dy : tensor<4xf32>
      tandem.yield %dy, %new : tensor<4xf32>, tensor<4xf32>
    } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "x", written}]} : (tensor<4xf32>), () -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A02, A03: outputs that are views are no results; the function lists them. The
// cotangents of both add up. The saved value is the output, and says so; whoever
// reads it is named (C05).
// CHECK-LABEL: module @aliases
module @aliases attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "b">}, tensor<2x2xf32> {tandem.role = #tandem.role<saved "exp.0" {alias = {output = "b", views = []}, reason = "{{.*}}", where = "'tandem.exp' at partition-mutations.mlir:{{[0-9]+}}:10"}>})
  // CHECK-SAME: attributes {tandem.aliases = [{name = "r", output = "b", type = tensor<4xf32>, views = [{op = "reshape", shape = array<i64: 4>}]}, {name = "v", of = "x", part_of = "split", type = tensor<2x2xf32>, views = []}]}
  // CHECK: %[[E:.*]] = tandem.exp
  // CHECK-NEXT: return %[[E]], %[[E]]
  // CHECK: func.func @backward(%{{[a-z0-9]+}}: tensor<2x2xf32> {tandem.role = #tandem.role<saved "exp.0" {alias = {output = "b", views = []}, reason = "{{.*}}", where = "'tandem.exp' at
  // CHECK-SAME: cotangent of "b"
  // CHECK-SAME: cotangent of "r"
  // CHECK: tandem.accumulate
  // CHECK: func.func @evaluate(
  // CHECK-SAME: -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "b" {inputs = [], rows = "mean"}>}) attributes {tandem.aliases = [{name = "r", output = "b"
  func.func @graph(
      %x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<2x2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4xf32> {tandem.role = #tandem.role<output "r" {alias = {output = "b", views = [{op = "reshape", shape = array<i64: 4>}]}}>},
          tensor<2x2xf32> {tandem.role = #tandem.role<output "v" {alias = {of = "x", views = []}, part_of = "split"}>}) {
    %b = tandem.exp %w : tensor<2x2xf32>
    %r = tandem.reshape %b to [4] : tensor<2x2xf32> -> tensor<4xf32>
    return %b, %r, %x : tensor<2x2xf32>, tensor<4xf32>, tensor<2x2xf32>
  }
}

// -----

// C09: what a custom_vjp alone saves, as unchecked, is not checked; what
// another op reads as well is.
// CHECK-LABEL: module @unchecked
module @unchecked attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(%{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<input "y">}, %{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<input "z">})
  // CHECK-SAME: tensor<4xf32> {tandem.role = #tandem.role<saved "exp.0" {alias = {output = "o", views = []}, reason = "{{.*}}", unchecked, where = "'tandem.custom_vjp' at
  // CHECK: func.func @backward(
  // CHECK-SAME: input "y" {where =
  // CHECK-SAME: input "z" {unchecked, where = "'tandem.custom_vjp' at
  // CHECK-SAME: saved "exp.0" {alias = {output = "o", views = []}, reason = "{{.*}}", unchecked
  // CHECK: func.func @evaluate
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %y: tensor<4xf32> {tandem.role = #tandem.role<input "y">},
      %z: tensor<4xf32> {tandem.role = #tandem.role<input "z">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">},
          tensor<4xf32> {tandem.role = #tandem.role<output "p">}) {
    %o, %s, %t, %u = tandem.custom_vjp "f" (%x, %y, %z) forward {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
      %e = tandem.exp %a : tensor<4xf32>
      tandem.yield %e, %b, %c, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%b: tensor<4xf32>, %c: tensor<4xf32>, %e: tensor<4xf32>, %dy: tensor<4xf32>):
      %0 = tandem.mul %b, %dy : tensor<4xf32>
      %1 = tandem.mul %c, %0 : tensor<4xf32>
      %2 = tandem.mul %e, %1 : tensor<4xf32>
      tandem.yield %2 : tensor<4xf32>
    } {outputs = 1, saved = 3, differentiable = 1, unchecked = array<i64: 0, 1, 2>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), () -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    %p = tandem.mul %x, %y : tensor<4xf32>
    return %o, %p : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// M14: storage that is freed afterwards does not keep what the backward reads.
// CHECK-LABEL: module @freed
module @freed attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(%{{[a-z0-9]+}}: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad, resize = 0 : i64}>})
  // CHECK-SAME: saved "x"
  // CHECK: func.func @backward(
  // CHECK-NOT: input "x"
  // CHECK: func.func @evaluate
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad, resize = 0}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">}) {
    %o = tandem.mul %x, %x : tensor<4xf32>
    return %o : tensor<4xf32>
  }
}

// -----

// A08, A09: who shows part of a written argument does not keep its value; who
// shows another part of the storage that both are declared to share does.
// CHECK-LABEL: module @parts
module @parts attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "part"
  // CHECK-NOT: saved
  // What the call checks and changes of handles it does in the forward.
  // CHECK: func.func @backward(%{{[a-z0-9]+}}: tensor<2xf32> {tandem.role = #tandem.role<input "other" {where =
  // CHECK: func.func @evaluate
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %part: tensor<2xf32> {tandem.role = #tandem.role<input "part" {alias = {of = "x", views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %other: tensor<2xf32> {tandem.role = #tandem.role<input "other" {metadata = {of = "other", views = []}, alias = {of = "base", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %half: tensor<2xf32> {tandem.role = #tandem.role<input "half" {alias = {of = "base", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>}]}}>},
      %w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "x">},
          tensor<2xf32> {tandem.role = #tandem.role<update of "half">}) {
    %n = tandem.exp %x : tensor<4xf32>
    %m = tandem.exp %half : tensor<2xf32>
    %0 = tandem.mul %w, %part : tensor<2xf32>
    %o = tandem.mul %0, %other : tensor<2xf32>
    return %o, %n, %m : tensor<2xf32>, tensor<4xf32>, tensor<2xf32>
  }
}

// -----

// C08: the update of an input that shows all of a storage is one of every input
// that shares it.
// CHECK-LABEL: module @whole
module @whole attributes {tandem.phase = "functionalize"} {
  // CHECK: saved "part"
  // CHECK: func.func @backward(%{{[a-z0-9]+}}: tensor<2xf32> {tandem.role = #tandem.role<saved "part"
  func.func @graph(
      %all: tensor<4xf32> {tandem.role = #tandem.role<input "all" {alias = {of = "base", type = tensor<4xf32>, views = []}}>},
      %part: tensor<2xf32> {tandem.role = #tandem.role<input "part" {alias = {of = "base", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "all">}) {
    %n = tandem.exp %all : tensor<4xf32>
    %o = tandem.mul %w, %part : tensor<2xf32>
    return %o, %n : tensor<2xf32>, tensor<4xf32>
  }
}
