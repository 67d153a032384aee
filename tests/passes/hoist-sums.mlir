// RUN: tandem-opt %s -split-input-file -tandem-hoist-sums | FileCheck %s

// The gradients of a loop's weights and bias: one product of all rows, one sum.
// The factors are an input and what the loop yields anyway.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[D:[a-z0-9]+]]: {{[^,]*}}, %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[B:[a-z0-9]+]]:
// CHECK: %[[R:.*]]:2 = tandem.scan 6 reverse carries(%[[D]]) inputs(%[[X]]) constants() {
// CHECK-NOT: tandem.matmul
// CHECK-NOT: tandem.reduce_sum
// CHECK: tandem.yield %[[N:.*]], %[[N]]
// CHECK-DAG: %[[DS:.*]] = tandem.reshape %[[R]]#1 to [12, 3] {tandem.pass = "backward"}
// CHECK-DAG: %[[XS:.*]] = tandem.reshape %[[X]] to [12, 4] {tandem.pass = "backward"}
// CHECK: %[[W:.*]] = tandem.matmul %[[DS]], %[[XS]] {tandem.pass = "backward", transpose_lhs}
// CHECK: %[[S:.*]] = tandem.reduce_sum %[[R]]#1 over [0, 1]
// CHECK: %[[E:.*]] = tandem.add %[[B]], %[[S]]
// CHECK: return %[[R]]#0, %[[W]], %[[E]], %[[R]]#1
module {
  func.func @evaluate(%d: tensor<2x3xf32> {tandem.role = #tandem.role<input "d">},
                      %x: tensor<6x2x4xf32> {tandem.role = #tandem.role<input "x">},
                      %b: tensor<3xf32> {tandem.role = #tandem.role<input "b">})
      -> (tensor<2x3xf32> {tandem.role = #tandem.role<output "e">}, tensor<3x4xf32> {tandem.role = #tandem.role<output "w">},
          tensor<3xf32> {tandem.role = #tandem.role<output "s">}, tensor<6x2x3xf32> {tandem.role = #tandem.role<output "ds">}) {
    %zero = tandem.constant dense<0.0> : tensor<3x4xf32>
    %e, %w, %s, %ds = tandem.scan 6 reverse carries(%d, %zero, %b) inputs(%x) constants() {
      ^bb0(%a: tensor<2x3xf32>, %g: tensor<3x4xf32>, %h: tensor<3xf32>, %y: tensor<2x4xf32>):
        %n = tandem.tanh %a : tensor<2x3xf32>
        %p = tandem.matmul %n, %y {transpose_lhs} : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
        %q = tandem.reduce_sum %n over [0] : tensor<2x3xf32> -> tensor<3xf32>
        %g2 = tandem.add %g, %p : tensor<3x4xf32>
        %h2 = tandem.add %q, %h : tensor<3xf32>
        tandem.yield %n, %g2, %h2, %n : tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<2x3xf32>
    } {tandem.pass = "backward"} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<6x2x4xf32>) -> (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<6x2x3xf32>)
    return %e, %w, %s, %ds : tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<6x2x3xf32>
  }
}

// -----

// Of rows of the weights: the padded parts are added once. With a number of
// iterations that is data, inputs have numbers behind the last one, and stacks
// zeros.
// CHECK-LABEL: func.func @evaluate(
// CHECK: %[[R:.*]]:2 = tandem.scan 6 trips
// CHECK: ^bb0(%[[Y:[a-z0-9]+]]: tensor<2x4xf32>
// CHECK: tandem.yield %{{.*}}, %[[Y]] : tensor<2x3xf32>, tensor<2x4xf32>
// CHECK-COUNT-1: tandem.matmul
// CHECK: tandem.pad {{.*}} low [3, 0] high [1, 0]
// CHECK-NOT: tandem.matmul
// CHECK: return
module {
  func.func @evaluate(%n: tensor<i64> {tandem.role = #tandem.role<input "n">},
                      %x: tensor<6x2x4xf32> {tandem.role = #tandem.role<input "x">},
                      %c: tensor<4x3xf32> {tandem.role = #tandem.role<input "c">})
      -> (tensor<7x4xf32> {tandem.role = #tandem.role<output "w">}, tensor<6x2x3xf32> {tandem.role = #tandem.role<output "ds">}) {
    %zero = tandem.constant dense<0.0> : tensor<7x4xf32>
    %w, %ds = tandem.scan 6 trips %n carries(%zero) inputs(%x) constants(%c) {
      ^bb0(%g: tensor<7x4xf32>, %y: tensor<2x4xf32>, %m: tensor<4x3xf32>):
        %z = tandem.matmul %y, %m : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
        %t = tandem.tanh %z : tensor<2x3xf32>
        %p = tandem.matmul %t, %y {transpose_lhs} : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
        %q = tandem.pad %p low [3, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<3x4xf32> -> tensor<7x4xf32>
        %g2 = tandem.add %g, %q : tensor<7x4xf32>
        tandem.yield %g2, %t : tensor<7x4xf32>, tensor<2x3xf32>
    } : (tensor<i64>, tensor<7x4xf32>, tensor<6x2x4xf32>, tensor<4x3xf32>) -> (tensor<7x4xf32>, tensor<6x2x3xf32>)
    return %w, %ds : tensor<7x4xf32>, tensor<6x2x3xf32>
  }
}

// -----

// What an iteration reads stays (linear attention's state), and so does a sum
// whose stacks would be larger than what is added.
// CHECK-LABEL: func.func @evaluate(
// CHECK: tandem.scan 6 carries(%{{.*}}, %{{.*}}) inputs
// CHECK: tandem.matmul
// CHECK: tandem.reduce_sum
// CHECK: tandem.yield
// CHECK-NOT: tandem.reduce_sum
// CHECK: return
module {
  func.func @evaluate(%x: tensor<6x2x4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "w">}, tensor<4xf32> {tandem.role = #tandem.role<output "s">},
          tensor<6x2x4xf32> {tandem.role = #tandem.role<output "ys">}) {
    %zero = tandem.constant dense<0.0> : tensor<4x4xf32>
    %none = tandem.constant dense<0.0> : tensor<4xf32>
    %w, %s, %ys = tandem.scan 6 carries(%zero, %none) inputs(%x) constants() {
      ^bb0(%g: tensor<4x4xf32>, %h: tensor<4xf32>, %y: tensor<2x4xf32>):
        %o = tandem.matmul %y, %g : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
        %p = tandem.matmul %y, %y {transpose_lhs} : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
        %g2 = tandem.add %g, %p : tensor<4x4xf32>
        %t = tandem.tanh %y : tensor<2x4xf32>
        %q = tandem.reduce_sum %t over [0] : tensor<2x4xf32> -> tensor<4xf32>
        %h2 = tandem.add %h, %q : tensor<4xf32>
        tandem.yield %g2, %h2, %o : tensor<4x4xf32>, tensor<4xf32>, tensor<2x4xf32>
    } : (tensor<4x4xf32>, tensor<4xf32>, tensor<6x2x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<6x2x4xf32>)
    return %w, %s, %ys : tensor<4x4xf32>, tensor<4xf32>, tensor<6x2x4xf32>
  }
}
