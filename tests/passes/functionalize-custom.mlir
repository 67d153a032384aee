// RUN: tandem-opt %s -split-input-file -tandem-functionalize | FileCheck %s

// B05, B10, B13: both regions write through a view; the storage comes in once,
// and goes out of the forward as a result, of the backward as a state. The
// cotangent that the backward overwrites is yielded last.
// CHECK-LABEL: module @views
// CHECK: update of "s" {where = "'tandem.custom_vjp' 'f' at {{.*}}"}
// CHECK: %[[Y:.*]]:3 = tandem.custom_vjp "f"(%[[X:.*]], %[[S:.*]]) forward {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2xf32>, %[[OLD:.*]]: tensor<4xf32>):
// CHECK: %[[HALF:.*]] = tandem.slice %[[OLD]] from [0] to [2]
// CHECK: %[[B:.*]] = tandem.add %[[A]], %[[HALF]]
// CHECK: %[[NEW:.*]] = tandem.select {{.*}}, %[[OLD]]
// CHECK: tandem.yield %[[B]], %[[NEW]], %[[A]]
// CHECK: } backward {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2xf32>, %[[DY:.*]]: tensor<2xf32>, %[[OLD:.*]]: tensor<4xf32>):
// CHECK: %[[MID:.*]] = tandem.select {{.*}}, %[[OLD]]
// CHECK: %[[TWICE:.*]] = tandem.add %[[MID]], %[[MID]]
// CHECK: %[[DX:.*]] = tandem.mul %[[DY]], %[[A]]
// CHECK: tandem.yield %[[DX]], %[[TWICE]], %[[A]]
// CHECK: cotangent_writes = array<i64: 0>, differentiable = 1 : i64, outputs = 1 : i64, saved = 1 : i64, states = [{name = "s", written}]
// CHECK: return %[[Y]]#0
module @views attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %s: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "s">}) -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
    %half = tandem.slice %s from [0] to [2] step [1] : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    %y = tandem.custom_vjp "f" (%x) refs(%half, %s) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<4xf32>):
        %v = tandem.read %r : !tandem.ref<2xf32>
        %b = tandem.add %a, %v : tensor<2xf32>
        tandem.write %b into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %b, %a : tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%a: tensor<2xf32>, %dy: !tandem.ref<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<4xf32>):
        %d = tandem.read %dy : !tandem.ref<2xf32>
        tandem.write %a into %dy : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.write %d into %r : tensor<2xf32>, !tandem.ref<2xf32>
        %t = tandem.read %q : !tandem.ref<4xf32>
        %t2 = tandem.add %t, %t : tensor<4xf32>
        tandem.write %t2 into %q : tensor<4xf32>, !tandem.ref<4xf32>
        %dx = tandem.mul %d, %a : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>
    } {writes = array<i64: 0>, backward_writes = array<i64: 0, 1>} : (tensor<2xf32>), (!tandem.ref<2xf32>, !tandem.ref<4xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

// B09, B11, B12: a ref to an intermediate is private to the backward. What it
// may not do is noted for the joint.
// CHECK-LABEL: module @private
// CHECK: %[[E:.*]] = tandem.exp %[[X:.*]] :
// CHECK: tandem.custom_vjp "f"(%[[X]], %[[E]]) forward {
// CHECK: ^bb0(%[[DY:.*]]: tensor<2xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2x2xf32>):
// CHECK: tandem.yield %{{.*}}, %[[DY]]
// CHECK: rejected = [{loc = {{.*}}, message = "'tandem.transpose_' changes the metadata of 'state \22s\22' (argument #1) in a backward"}, {loc = {{.*}}, message = "'tandem.write' writes in a backward storage that 'output \22p\22' (result #1) shows"}]
// CHECK-SAME: states = [{input = 1 : i64, written}, {name = "s"}]
module @private attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>}, %s: !tandem.ref<2x2xf32> {tandem.role = #tandem.role<state "s">}) -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}, !tandem.ref<2xf32> {tandem.role = #tandem.role<output "p">}) {
    %e = tandem.exp %x : tensor<2xf32>
    %i = tandem.make_ref %e : tensor<2xf32>
    %y = tandem.custom_vjp "f" (%x) refs(%i, %s) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<2x2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<2x2xf32>):
        tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
        %q2 = tandem.transpose_ %q dims 0, 1 : !tandem.ref<2x2xf32> -> !tandem.ref<2x2xf32>
        %n = tandem.undefined : tensor<2xf32>
        tandem.yield %n : tensor<2xf32>
    } {backward_writes = array<i64: 0, 1>} : (tensor<2xf32>), (!tandem.ref<2xf32>, !tandem.ref<2x2xf32>) -> tensor<2xf32>
    return %y, %i : tensor<2xf32>, !tandem.ref<2xf32>
  }
}
