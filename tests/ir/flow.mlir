// RUN: tandem-opt %s | FileCheck %s
// RUN: tandem-opt %s | tandem-opt | FileCheck %s

// CHECK-LABEL: func.func @flow
func.func @flow(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<4xf32>, %xs: tensor<3x4xf32>) {
  // CHECK: tandem.if %{{.*}}(%{{.*}}) then {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<4xf32>):
  // CHECK-NEXT: tandem.sqrt
  // CHECK-NEXT: tandem.yield %{{.*}} : tensor<4xf32>
  // CHECK-NEXT: } else {
  // CHECK: } : (tensor<4xf32>) -> tensor<4xf32>
  %y = tandem.if %c (%x) then {
    ^bb0(%a: tensor<4xf32>):
      %s = tandem.sqrt %a : tensor<4xf32>
      tandem.yield %s : tensor<4xf32>
  } else {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tandem.scan 3 reverse trips %{{.*}} carries(%{{.*}}) inputs(%{{.*}}) constants(%{{.*}}) {
  // CHECK: } {tandem.save} : (tensor<i64>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>)
  %h, %hs = tandem.scan 3 reverse trips %n carries(%y) inputs(%xs) constants(%x) {
    ^bb0(%a: tensor<4xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>):
      %m = tandem.mul %a, %b : tensor<4xf32>
      %t = tandem.add %m, %s : tensor<4xf32>
      tandem.yield %t, %m : tensor<4xf32>, tensor<4xf32>
  } {tandem.save} : (tensor<i64>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>)
  // CHECK: tandem.scan 0 carries() inputs() constants() {
  // CHECK-NEXT: tandem.yield
  // CHECK-NEXT: } : () -> ()
  tandem.scan 0 carries() inputs() constants() {
    tandem.yield
  } : () -> ()
  // CHECK: tandem.while carries(%{{.*}}) constants(%{{.*}}) condition {
  // CHECK: tandem.yield %{{.*}} : tensor<i1>
  // CHECK-NEXT: } body {
  // CHECK: } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w = tandem.while carries(%h) constants(%x) condition {
    ^bb0(%a: tensor<4xf32>, %l: tensor<4xf32>):
      %d = tandem.sub %a, %l : tensor<4xf32>
      %m = tandem.reduce_max %d over [0] : tensor<4xf32> -> tensor<f32>
      %zero = tandem.constant dense<0.0> : tensor<f32>
      %g = tandem.compare lt %m, %zero : tensor<f32>
      tandem.yield %g : tensor<i1>
  } body {
    ^bb0(%a: tensor<4xf32>, %l: tensor<4xf32>):
      %b = tandem.add %a, %a : tensor<4xf32>
      tandem.yield %b : tensor<4xf32>
  } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
