// RUN: tandem-opt %s -split-input-file -tandem-build-joint | FileCheck %s

// M02, J17: the new value of a written input has a cotangent of its own beside
// that of the loss, which is found by name among outputs and updates.
// CHECK-LABEL: module @visible
// CHECK-SAME: tandem.loss = "loss"
module @visible attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DL:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "loss">},
  // CHECK-SAME: %[[DN:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "update of x">})
  // CHECK-SAME: update of "x" {visible, where = "'tandem.write' at m.mlir:3:5"}
  // CHECK: tandem.accumulate %[[DN]], %[[DL]] {tandem.pass = "backward"}
  func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "other">},
          tensor<2xf32> {tandem.role = #tandem.role<update of "x" {visible, where = "'tandem.write' at m.mlir:3:5"}>},
          tensor<2xf32> {tandem.role = #tandem.role<output "loss">}) {
    %y = tandem.mul %x, %x : tensor<2xf32>
    %two = tandem.constant dense<2.0> : tensor<2xf32>
    %n = tandem.mul %x, %two : tensor<2xf32>
    %o = tandem.add %y, %n : tensor<2xf32>
    return %y, %n, %o : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// M04, M06: a hidden write may write a param; the gradient passes to the old
// value, and is not computed through the new one.
// CHECK-LABEL: module @hidden
module @hidden attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{[^,]*}}, %[[DO:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "o">})
  // CHECK: %[[N:.*]] = tandem.pass_grad %[[X]], %[[Y:.*]] {tandem.pass = "forward"}
  // CHECK: %[[C:.*]] = tandem.cos %[[N]] {tandem.pass = "backward"}
  // CHECK-NEXT: %[[G:.*]] = tandem.mul %[[DO]], %[[C]] {tandem.pass = "backward"}
  // CHECK-NEXT: return %{{.*}}, %[[N]], %[[G]]
  func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">},
          tensor<2xf32> {tandem.role = #tandem.role<update of "x" {where = "'tandem.write' at m.mlir:3:5"}>}) {
    %y = tandem.mul %x, %x : tensor<2xf32>
    %n = tandem.pass_grad %x, %y : tensor<2xf32>
    %o = tandem.sin %n : tensor<2xf32>
    return %o, %n : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// M17: an input that requires no grad gets a value that does: it has a
// cotangent and no gradient. A state has neither, nor an integer (M18), nor a
// value that depends on nothing that requires grad.
// CHECK-LABEL: module @receives
module @receives attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK-NOT: cotangent
  // CHECK-SAME: %[[D:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "update of x">})
  // CHECK-NOT: cotangent
  // CHECK-NOT: grad of "x"
  // CHECK-SAME: grad of "y"
  // CHECK: return {{.*}}, %[[D]]
  func.func @graph(
      %x: tensor<2xf32> {tandem.role = #tandem.role<input "x">},
      %y: tensor<2xf32> {tandem.role = #tandem.role<input "y" {requires_grad}>},
      %z: tensor<2xf32> {tandem.role = #tandem.role<input "z">},
      %n: tensor<2xi32> {tandem.role = #tandem.role<input "n">},
      %s: tensor<2xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<update of "x" {visible}>},
          tensor<2xf32> {tandem.role = #tandem.role<update of "z" {visible}>},
          tensor<2xi32> {tandem.role = #tandem.role<update of "n" {visible}>},
          tensor<2xf32> {tandem.role = #tandem.role<update of "s" {visible}>}) {
    %a = tandem.add %x, %y : tensor<2xf32>
    %b = tandem.add %x, %z : tensor<2xf32>
    %c = tandem.cast %y : tensor<2xf32> to tensor<2xi32>
    %d = tandem.add %y, %s : tensor<2xf32>
    return %a, %b, %c, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>
  }
}

// -----

// What the roles say of storage survives in the joint; inference changes no
// handle and writes nothing, so an output that would show a written argument
// has storage of its own (M08, M13, M14, M15).
// CHECK-LABEL: module @roles
module @roles attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK-SAME: input "x" {metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}
  // CHECK-SAME: input "y" {resize = 0 : i64, storage = {of = "x", views = []}}
  // CHECK-SAME: output "o" {alias = {of = "x", views = []}}
  // CHECK-SAME: output "p" {alias = {of = "z", views = []}}
  // CHECK: func.func @evaluate(
  // CHECK-SAME: input "x">
  // CHECK-SAME: input "y">
  // CHECK-SAME: output "o">
  // CHECK-SAME: output "p" {alias = {of = "z", views = []}}
  func.func @graph(
      %x: tensor<2x3xf32> {tandem.role = #tandem.role<input "x" {metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}}>},
      %y: tensor<2x3xf32> {tandem.role = #tandem.role<input "y" {resize = 0, storage = {of = "x", views = []}}>},
      %z: tensor<2xf32> {tandem.role = #tandem.role<input "z">})
      -> (tensor<2x3xf32> {tandem.role = #tandem.role<output "o" {alias = {of = "x", views = []}}>},
          tensor<2xf32> {tandem.role = #tandem.role<output "p" {alias = {of = "z", views = []}}>},
          tensor<2x3xf32> {tandem.role = #tandem.role<update of "x">}) {
    %n = tandem.exp %x : tensor<2x3xf32>
    return %n, %z, %n : tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>
  }
}

// -----

// J22: a gradient has the type of its argument, or the one that the role names.
// CHECK-LABEL: module @types
module @types attributes {tandem.phase = "functionalize"} {
  // CHECK: func.func @joint(
  // CHECK-SAME: tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}
  // CHECK-SAME: tensor<2xbf16> {tandem.role = #tandem.role<grad of "v">}
  // CHECK: %[[G:.*]] = tandem.cast %{{.*}} {tandem.pass = "backward"} : tensor<2xbf16> to tensor<2xf32>
  func.func @graph(
      %w: tensor<2xbf16> {tandem.role = #tandem.role<param "w" {grad_type = f32, requires_grad}>},
      %v: tensor<2xbf16> {tandem.role = #tandem.role<param "v" {requires_grad}>})
      -> (tensor<2xbf16> {tandem.role = #tandem.role<output "o">}) {
    %o = tandem.mul %w, %v : tensor<2xbf16>
    return %o : tensor<2xbf16>
  }
}
