// RUN: tandem-opt %s -split-input-file -tandem-build-joint | FileCheck %s

// The forward stacks the carry that the backward reads, and no other: the
// counter is no number to differentiate, and nothing reads what %k was. The
// backward makes the body again from it.
// CHECK-LABEL: func.func @joint(
// CHECK: %[[F:.*]]:4 = tandem.scan 5 carries(%{{.*}}) inputs(%[[XS:.*]]) constants(%[[W:.*]]) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<i64>,
// CHECK: tandem.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[A]] :
// CHECK: } {tandem.pass = "forward"}
// CHECK: %[[ZERO:.*]] = tandem.constant {tandem.pass = "backward"} dense<0.0
// CHECK: %[[B:.*]]:3 = tandem.scan 5 reverse carries(%{{.*}}, %[[ZERO]]) inputs(%[[F]]#3) constants(%[[W]]) {
// CHECK-NEXT: ^bb0(%[[DH:.*]]: tensor<4xf32>, %[[SUM:.*]]: tensor<4xf32>, %[[H:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[DX:.*]] = tandem.mul %[[DH]], %[[V]]
// CHECK-NEXT: %[[DW:.*]] = tandem.mul %[[DH]], %[[H]]
// CHECK-NEXT: %[[NEXT:.*]] = tandem.add %[[SUM]], %[[DW]]
// CHECK-NEXT: tandem.yield %[[DX]], %[[NEXT]], %[[DH]]
// CHECK: } {tandem.pass = "backward"}
// CHECK: return %[[F]]#0, %{{.*}}, %{{.*}}#0, %{{.*}}#2, %{{.*}}#1
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                   %k: tensor<4xf32> {tandem.role = #tandem.role<input "k">},
                   %n: tensor<i64> {tandem.role = #tandem.role<input "n">},
                   %xs: tensor<5x4xf32> {tandem.role = #tandem.role<input "xs" {requires_grad}>},
                   %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "h">}, tensor<i64> {tandem.role = #tandem.role<output "i">}) {
    %h, %l, %i = tandem.scan 5 carries(%x, %k, %n) inputs(%xs) constants(%w) {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<i64>, %s: tensor<4xf32>, %v: tensor<4xf32>):
        %p = tandem.mul %a, %v : tensor<4xf32>
        %q = tandem.add %p, %s : tensor<4xf32>
        %e = tandem.add %b, %b : tensor<4xf32>
        %o = tandem.add %c, %c : tensor<i64>
        tandem.yield %q, %e, %o : tensor<4xf32>, tensor<4xf32>, tensor<i64>
    } : (tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<5x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i64>)
    return %h, %i : tensor<4xf32>, tensor<i64>
  }
}

// -----

// The gradient of a branch is the branch again and its backward; of a branch
// that does not use an input, zeros. What neither uses is no operand.
// CHECK-LABEL: func.func @joint(
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[W:[a-z0-9]+]]: {{[^,]*}}, %[[C:[a-z0-9]+]]: {{[^,]*}}, %[[DY:[a-z0-9]+]]:
// CHECK: tandem.if %[[C]](%[[X]], %[[W]])
// CHECK: %{{.*}}:2 = tandem.if %[[C]](%[[X]], %[[W]], %[[DY]]) then {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[D:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[P:.*]] = tandem.mul %[[D]], %[[B]]
// CHECK-NEXT: %[[Q:.*]] = tandem.mul %[[D]], %[[A]]
// CHECK-NEXT: tandem.yield %[[P]], %[[Q]]
// CHECK: } else {
// CHECK: %[[Z:.*]] = tandem.constant dense<0.0
// CHECK: tandem.yield %{{.*}}, %[[Z]]
// CHECK: } {tandem.pass = "backward"}
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                   %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.if %c (%x, %w) then {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %p = tandem.mul %a, %b : tensor<4xf32>
        tandem.yield %p : tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %e = tandem.silu %a : tensor<4xf32>
        tandem.yield %e : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A gradient in a region, and a custom_vjp: each is replaced where it stands,
// and what comes of it is differentiated with the rest.
// CHECK-LABEL: func.func @joint(
// CHECK-NOT: custom_vjp
// CHECK-NOT: tandem.grad
// CHECK: tandem.if
// CHECK: tandem.cos
// CHECK: tandem.if
// CHECK: } {tandem.pass = "backward"}
// CHECK: func.func @evaluate(
// CHECK-NOT: custom_vjp
// CHECK: return
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                   %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.if %c (%x) then {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.sin %a : tensor<4xf32>
        %g = tandem.grad %s wrt (%a) : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
        tandem.yield %g : tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>):
        %v = tandem.custom_vjp "double" (%a) forward {
          ^bb0(%i: tensor<4xf32>):
            %e = tandem.exp %i : tensor<4xf32>
            tandem.yield %e : tensor<4xf32>
        } backward {
          ^bb0(%d: tensor<4xf32>):
            %e = tandem.add %d, %d : tensor<4xf32>
            tandem.yield %e : tensor<4xf32>
        } {outputs = 1, saved = 0, differentiable = 1} : (tensor<4xf32>), () -> tensor<4xf32>
        tandem.yield %v : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
