// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-split-frozen | FileCheck %s

// What follows from params alone and takes longer to compute than to read; what
// is marked in any case, under the name that the mark says. More of it:
// partition-prepare.mlir.
// CHECK-LABEL: module @frozen
// CHECK: func.func @prepare(
// CHECK-SAME: -> (tensor<8xf32> {tandem.role = #tandem.role<prepared "w.exp">},
// CHECK-SAME:     tensor<4x2xf32> {tandem.role = #tandem.role<prepared "v.turned">})
// CHECK-DAG: tandem.exp
// CHECK-DAG: tandem.permute
// CHECK-NOT: tandem.prepared
// CHECK: func.func @evaluate(
// CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<prepared "w.exp">}
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<4x2xf32> {tandem.role = #tandem.role<prepared "v.turned">}
// CHECK-DAG: tandem.add %{{[a-z0-9]+}}, %[[E]]
// CHECK-DAG: tandem.add %{{[a-z0-9]+}}, %[[T]]
module @frozen attributes {tandem.prepare} {
  func.func @evaluate(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %z: tensor<4x2xf32> {tandem.role = #tandem.role<input "z">},
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<2x4xf32> {tandem.role = #tandem.role<state "v">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "b">}) {
    %e = tandem.exp %w : tensor<8xf32>
    %a = tandem.add %x, %e : tensor<8xf32>
    %t = tandem.permute %v by [1, 0] {tandem.prepared = "turned"} : tensor<2x4xf32> -> tensor<4x2xf32>
    %b = tandem.add %z, %t : tensor<4x2xf32>
    return %a, %b : tensor<8xf32>, tensor<4x2xf32>
  }
}

// -----

// A mark where nothing can be computed once.
module @marks attributes {tandem.prepare} {
  func.func @evaluate(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "a">},
          tensor<8xf32> {tandem.role = #tandem.role<output "b">}) {
    // expected-error@+1 {{'tandem.mul' op has 'tandem.prepared', but does not follow from params and states alone}}
    %a = tandem.mul %x, %w {tandem.prepared = "a"} : tensor<8xf32>
    // expected-error@+1 {{'tandem.exp' op has 'tandem.prepared', but is given out by every call}}
    %b = tandem.exp %w {tandem.prepared = "b"} : tensor<8xf32>
    %c = tandem.sin %a : tensor<8xf32>
    return %c, %b : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{'tandem.prepare' is for inference alone, but there is a function 'joint'}}
module @training attributes {tandem.prepare} {
  func.func @joint() { return }
}

// -----

module @twice attributes {tandem.prepare} {
  // expected-error@+1 {{expected no 'prepare' before it is made}}
  func.func @prepare() { return }
  func.func @evaluate() { return }
}

// -----

module @form attributes {tandem.prepare} {
  func.func @evaluate(%w: tensor<8xf32> {tandem.role = #tandem.role<param "w">}) {
    // expected-error@+1 {{'tandem.exp' op expected 'tandem.prepared' to be a string, but got unit}}
    %b = tandem.exp %w {tandem.prepared} : tensor<8xf32>
    return
  }
}

// -----

// A slice of weights that a convolution reads is copied; one that a product reads
// is a view.
// CHECK-LABEL: module @slices
// CHECK: func.func @prepare(
// CHECK-SAME: -> (tensor<2x3x1x1xf32> {tandem.role = #tandem.role<prepared "w.slice">})
// CHECK: func.func @evaluate(
// CHECK: tandem.slice
// CHECK-NEXT: tandem.matmul
module @slices attributes {tandem.prepare} {
  func.func @evaluate(
      %x: tensor<4x3x5x5xf32> {tandem.role = #tandem.role<input "x">},
      %z: tensor<4x3xf32> {tandem.role = #tandem.role<input "z">},
      %w: tensor<2x6x1x1xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<6x2xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<4x2x5x5xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x2xf32> {tandem.role = #tandem.role<output "b">}) {
    %s = tandem.slice %w from [0, 3, 0, 0] to [2, 6, 1, 1] step [1, 1, 1, 1] : tensor<2x6x1x1xf32> -> tensor<2x3x1x1xf32>
    %a = tandem.conv2d %x, %s : tensor<4x3x5x5xf32>, tensor<2x3x1x1xf32> -> tensor<4x2x5x5xf32>
    %r = tandem.slice %v from [3, 0] to [6, 2] step [1, 1] : tensor<6x2xf32> -> tensor<3x2xf32>
    %b = tandem.matmul %z, %r : tensor<4x3xf32>, tensor<3x2xf32> -> tensor<4x2xf32>
    return %a, %b : tensor<4x2x5x5xf32>, tensor<4x2xf32>
  }
}
