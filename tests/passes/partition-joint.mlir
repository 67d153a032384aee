// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=default | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=min-cut | FileCheck %s --check-prefixes=CHECK,MINCUT

// cos(a + b + c + d): the one sum is saved, not the four arguments.
// CHECK-LABEL: module @sum
// CHECK-SAME: tandem.phase = "partition"
module @sum attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: tensor<8xf32> {tandem.role = #tandem.role<output "y">}
  // CHECK-SAME: tensor<8xf32> {tandem.role = #tandem.role<saved "add.2" {reason = "{{.*}}"}>})
  // CHECK-NOT: tandem.pass
  // CHECK: %[[C:.*]] = tandem.cos %[[S:.*]] :
  // CHECK-NEXT: return %[[C]], %[[S]]
  // CHECK: func.func @backward(%[[S:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<saved "add.2"
  // CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
  // CHECK-NEXT: %[[N:.*]] = tandem.neg %[[DY]]
  // CHECK-NEXT: %[[I:.*]] = tandem.sin %[[S]]
  // CHECK-NEXT: %[[G:.*]] = tandem.mul %[[N]], %[[I]]
  // CHECK-NEXT: return %[[G]]
  func.func @joint(
      %a: tensor<8xf32> {tandem.role = #tandem.role<input "a" {requires_grad}>},
      %b: tensor<8xf32> {tandem.role = #tandem.role<input "b">},
      %c: tensor<8xf32> {tandem.role = #tandem.role<input "c">},
      %d: tensor<8xf32> {tandem.role = #tandem.role<input "d">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "a">}) {
    %0 = tandem.add %a, %b {tandem.pass = "forward"} : tensor<8xf32>
    %1 = tandem.add %0, %c {tandem.pass = "forward"} : tensor<8xf32>
    %2 = tandem.add %1, %d {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.cos %2 {tandem.pass = "forward"} : tensor<8xf32>
    %n = tandem.neg %dy {tandem.pass = "backward"} : tensor<8xf32>
    %s = tandem.sin %2 {tandem.pass = "backward"} : tensor<8xf32>
    %g = tandem.mul %n, %s {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %g : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// sin(sin(x)): by default the inner sine is saved; the smallest cut saves
// nothing but takes x, which the backward needs in any case.
// CHECK-LABEL: module @sines
module @sines attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // DEFAULT-SAME: saved "sin.0"
  // MINCUT-NOT: saved
  // CHECK: func.func @backward(%[[X:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad, where = "'tandem.{{sin|cos}}' at partition-joint.mlir:{{.*}}"}>}
  // MINCUT-NEXT: %[[S:.*]] = tandem.sin %[[X]]
  // MINCUT-NEXT: tandem.cos %[[S]]
  // DEFAULT-NOT: tandem.sin
  // CHECK: return
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %s = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    %y = tandem.sin %s {tandem.pass = "forward"} : tensor<8xf32>
    %0 = tandem.cos %s {tandem.pass = "backward"} : tensor<8xf32>
    %1 = tandem.mul %dy, %0 {tandem.pass = "backward"} : tensor<8xf32>
    %2 = tandem.cos %x {tandem.pass = "backward"} : tensor<8xf32>
    %3 = tandem.mul %1, %2 {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %3 : tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// A contraction is saved, never computed again; views of it are made again, and
// so are constants; what the backward reads from memory is kept in memory.
// CHECK-LABEL: module @contraction
module @contraction attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "matmul.0"
  // CHECK-NOT: saved "permute
  // CHECK: func.func @backward(
  // CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4x4xf32> {tandem.role = #tandem.role<saved "matmul.0"
  // CHECK-NOT: tandem.matmul %{{.*}}, %{{.*}} : {{.*}}4x8
  // CHECK: tandem.constant dense<2.000000e+00>
  // CHECK: tandem.permute %[[M]]
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<input "w">},
      %v: tensor<4x4xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4x4xf32> {tandem.role = #tandem.role<grad of "v">}) {
    %c = tandem.constant {tandem.pass = "forward"} dense<2.0> : tensor<4x4xf32>
    %m = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %t = tandem.permute %m by [1, 0] {tandem.pass = "forward"} : tensor<4x4xf32> -> tensor<4x4xf32>
    %y0 = tandem.mul %t, %v {tandem.pass = "forward"} : tensor<4x4xf32>
    %y = tandem.mul %y0, %c {tandem.pass = "forward"} : tensor<4x4xf32>
    %d = tandem.mul %dy, %c {tandem.pass = "backward"} : tensor<4x4xf32>
    %g = tandem.mul %d, %t {tandem.pass = "backward"} : tensor<4x4xf32>
    return %y, %g : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// An argument that the forward overwrites is saved under its name: the backward
// would find the new value.
// CHECK-LABEL: module @overwritten
module @overwritten attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(%[[X:[a-z0-9]+]]: {{.*}}, %[[S:[a-z0-9]+]]:
  // CHECK-SAME: saved "s"
  // CHECK: return %{{.*}}, %{{.*}}, %[[S]]
  // CHECK: func.func @backward(%[[S:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<saved "s"
  // CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
  // CHECK-NEXT: tandem.mul %[[DY]], %[[S]]
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %s: tensor<8xf32> {tandem.role = #tandem.role<state "s">},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<update of "s">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %y = tandem.mul %x, %s {tandem.pass = "forward"} : tensor<8xf32>
    %n = tandem.add %y, %s {tandem.pass = "forward"} : tensor<8xf32>
    %g = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<8xf32>
    return %y, %n, %g : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// A mask that the backward makes from a forward value alone may be made in the
// forward, where it is the smaller thing to keep; it is saved as booleans.
// CHECK-LABEL: module @mask
module @mask attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // DEFAULT-SAME: tensor<4x4xf32> {tandem.role = #tandem.role<saved "matmul.0"
  // MINCUT-SAME: tensor<4x4xi1> {tandem.role = #tandem.role<saved "compare.0"
  // CHECK: func.func @backward(
  // DEFAULT: tandem.compare
  // MINCUT-NOT: tandem.compare
  // CHECK: return
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %m = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %y = tandem.relu %m {tandem.pass = "forward"} : tensor<4x4xf32>
    %z = tandem.constant {tandem.pass = "backward"} dense<0.0> : tensor<4x4xf32>
    %p = tandem.compare gt %m, %z {tandem.pass = "backward"} : tensor<4x4xf32>
    %d = tandem.select %p, %dy, %z {tandem.pass = "backward"} : tensor<4x4xi1>, tensor<4x4xf32>
    %g = tandem.matmul %x, %d {transpose_lhs, tandem.pass = "backward"} : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    return %y, %g : tensor<4x4xf32>, tensor<8x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// Nothing has a gradient: no backward, nothing saved.
// CHECK-LABEL: module @nothing
module @nothing attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward
  // CHECK-NOT: saved
  // CHECK-NOT: @backward
  func.func @joint(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.sin %x {tandem.pass = "forward"} : tensor<8xf32>
    return %y : tensor<8xf32>
  }
  func.func @evaluate() { return }
}

// -----

// For inference there is nothing to divide.
// CHECK-LABEL: module @inference
module @inference attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @evaluate
  // CHECK-NOT: func.func
  func.func @evaluate(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<8xf32>
  }
}

// -----

// The backward is one kernel, and takes in what is made again from x. A sum of
// floating-point numbers is not: another kernel adds in another order.
// CHECK-LABEL: module @fuses
module @fuses attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // DEFAULT-SAME: saved "add.0"
  // DEFAULT-SAME: saved "tanh.1"
  // MINCUT-NOT: saved "add.0"
  // MINCUT-SAME: saved "reduce_sum.0"
  // MINCUT-NOT: saved
  // MINCUT: func.func @backward(
  // MINCUT: = tandem.tanh
  // MINCUT-NOT: = tandem.reduce_sum
  // CHECK: return
  func.func @joint(
      %x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<64x64xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">},
          tensor<64x64xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %t0 = tandem.tanh %x {tandem.pass = "forward"} : tensor<64x64xf32>
    %a = tandem.add %x, %t0 {tandem.pass = "forward"} : tensor<64x64xf32>
    %r = tandem.reduce_sum %a over [1] {tandem.pass = "forward"} : tensor<64x64xf32> -> tensor<64xf32>
    %b = tandem.broadcast %r to [64, 64] along [0] {tandem.pass = "forward"} : tensor<64xf32> -> tensor<64x64xf32>
    %t1 = tandem.tanh %b {tandem.pass = "forward"} : tensor<64x64xf32>
    %y = tandem.add %a, %t1 {tandem.pass = "forward"} : tensor<64x64xf32>
    %c = tandem.mul %dy, %y {tandem.pass = "backward"} : tensor<64x64xf32>
    %d = tandem.mul %c, %t1 {tandem.pass = "backward"} : tensor<64x64xf32>
    %e = tandem.mul %d, %a {tandem.pass = "backward"} : tensor<64x64xf32>
    return %y, %e : tensor<64x64xf32>, tensor<64x64xf32>
  }
  func.func @evaluate() { return }
}
