// RUN: tandem-opt %s -split-input-file -tandem-optimize-joint | FileCheck %s

// Both branches, and a choice; what is equal in both needs none.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[C:[a-z0-9]+]]:
// CHECK-NEXT: %[[R:.*]] = tandem.sqrt %[[X]]
// CHECK-NEXT: %[[E:.*]] = tandem.exp %[[X]]
// CHECK-NEXT: %[[B:.*]] = tandem.broadcast %[[C]]
// CHECK-NEXT: %[[Y:.*]] = tandem.select %[[B]], %[[R]], %[[E]]
// CHECK-NEXT: return %[[Y]], %[[X]]
module attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
                      %c: tensor<i1> {tandem.role = #tandem.role<input "c">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4xf32> {tandem.role = #tandem.role<output "z">}) {
    %y, %z = tandem.if %c (%x) then {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.sqrt %a : tensor<4xf32>
        tandem.yield %s, %a : tensor<4xf32>, tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.exp %a : tensor<4xf32>
        tandem.yield %s, %a : tensor<4xf32>, tensor<4xf32>
    } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// What one scan stacks another one with the same trips slices: it goes from
// iteration to iteration, and the stack is never made. What the second one
// makes again is merged with the first.
// CHECK-LABEL: func.func @evaluate(
// CHECK-NOT: tandem.pad
// CHECK-COUNT-2: tandem.tanh
// CHECK-NOT: tandem.tanh
// CHECK: return
module attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
                      %n: tensor<i64> {tandem.role = #tandem.role<input "n">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %h, %hs = tandem.scan 2 trips %n carries(%x) inputs() constants() {
      ^bb0(%a: tensor<4xf32>):
        %t = tandem.tanh %a : tensor<4xf32>
        tandem.yield %t, %a : tensor<4xf32>, tensor<4xf32>
    } : (tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>)
    %y = tandem.scan 2 reverse trips %n carries(%h) inputs(%hs) constants() {
      ^bb0(%d: tensor<4xf32>, %a: tensor<4xf32>):
        %t = tandem.tanh %a : tensor<4xf32>
        %m = tandem.mul %t, %d : tensor<4xf32>
        tandem.yield %m : tensor<4xf32>
    } : (tensor<i64>, tensor<4xf32>, tensor<2x4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A long loop stays. In it, short ones are expanded, and what is kept in memory
// comes from outside.
// CHECK-LABEL: func.func @evaluate(
// CHECK: %[[K:.*]] = tandem.constant dense<[1.{{.*}}, 2.{{.*}}]> : tensor<2xf32>
// CHECK-NEXT: tandem.scan 4000 carries(%{{.*}}) inputs() constants(%[[K]]) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2xf32>, %[[V:.*]]: tensor<2xf32>):
// CHECK-NEXT: %[[P:.*]] = tandem.mul %[[A]], %[[V]]
// CHECK-NEXT: %[[Q:.*]] = tandem.mul %[[P]], %[[V]]
// CHECK-NEXT: tandem.yield %[[Q]]
module attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.scan 4000 carries(%x) inputs() constants() {
      ^bb0(%a: tensor<2xf32>):
        %k = tandem.constant dense<[1.0, 2.0]> : tensor<2xf32>
        %b = tandem.scan 2 carries(%a) inputs() constants(%k) {
          ^bb0(%c: tensor<2xf32>, %v: tensor<2xf32>):
            %m = tandem.mul %c, %v : tensor<2xf32>
            tandem.yield %m : tensor<2xf32>
        } : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        tandem.yield %b : tensor<2xf32>
    } : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

// A loop of no iterations.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK-NEXT: return %[[X]]
module attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.scan 0 carries(%x) inputs() constants() {
      ^bb0(%a: tensor<2xf32>):
        %m = tandem.mul %a, %a : tensor<2xf32>
        tandem.yield %m : tensor<2xf32>
    } : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
