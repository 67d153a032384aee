// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=default | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-partition-joint=kind=min-cut | FileCheck %s

// P06: without a tag, x is taken by reference and both sines are made again;
// what is tagged is saved, and no program says the tag.
// CHECK-LABEL: module @save
module @save attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "sin.0" {reason = "'tandem.save' on 'tandem.sin' at partition-tags.mlir:[[#]]:[[#]]"
  // CHECK-NOT: tandem.save
  // CHECK: func.func @backward({{.*}}saved "sin.0"
  // CHECK-NOT: = tandem.sin
  // CHECK: return
  func.func @joint(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %s = tandem.sin %x {tandem.pass = "forward", tandem.save} : tensor<8xf32>
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

// P06: a contraction that is never saved, of which the sources are: the argument
// that is overwritten, by its name. P17: it is computed again in the backward
// just before its first use. P15: the write of the state happens once, in the
// forward, and the backward sees what was there before.
// CHECK-LABEL: module @recompute
module @recompute attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(%[[X:[a-z0-9]+]]: {{.*}}, %[[S:[a-z0-9]+]]: {{.*}}, %{{.*}}: {{.*}}) -> (
  // CHECK-SAME: update of "s"
  // CHECK-SAME: saved "s" {{.*}}})
  // CHECK: tandem.matmul
  // CHECK: return %{{.*}}, %{{.*}}, %[[S]]
  // CHECK: func.func @backward(
  // CHECK-NOT: matmul.0
  // CHECK: %[[FIRST:.*]] = tandem.neg
  // CHECK-NEXT: %[[M:.*]] = tandem.matmul
  // CHECK-NEXT: tandem.mul %[[FIRST]], %[[M]]
  // CHECK-NOT: update of
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %s: tensor<8x4xf32> {tandem.role = #tandem.role<state "s">},
      %v: tensor<4x4xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<8x4xf32> {tandem.role = #tandem.role<update of "s">},
          tensor<4x4xf32> {tandem.role = #tandem.role<grad of "v">}) {
    %m = tandem.matmul %x, %s {tandem.pass = "forward", tandem.recompute} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %y = tandem.mul %m, %v {tandem.pass = "forward"} : tensor<4x4xf32>
    %t = tandem.neg %s {tandem.pass = "forward"} : tensor<8x4xf32>
    %d = tandem.neg %dy {tandem.pass = "backward"} : tensor<4x4xf32>
    %g = tandem.mul %d, %m {tandem.pass = "backward"} : tensor<4x4xf32>
    return %y, %t, %g : tensor<4x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// P06: a tagged view saves what it shows.
// CHECK-LABEL: module @view
module @view attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "exp.0"
  // CHECK-NOT: saved "permute
  // CHECK: func.func @backward(
  // CHECK-NOT: = tandem.exp
  // CHECK: return
  func.func @joint(
      %x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %dy: tensor<2x2xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x2xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %e = tandem.exp %x {tandem.pass = "forward"} : tensor<2x2xf32>
    %p = tandem.permute %e by [1, 0] {tandem.pass = "forward", tandem.save} : tensor<2x2xf32> -> tensor<2x2xf32>
    %y = tandem.sin %p {tandem.pass = "forward"} : tensor<2x2xf32>
    %c = tandem.cos %p {tandem.pass = "backward"} : tensor<2x2xf32>
    %0 = tandem.mul %dy, %c {tandem.pass = "backward"} : tensor<2x2xf32>
    return %y, %0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
  func.func @evaluate() { return }
}

// -----

// P08: of a region, what enters it is kept (h), what crosses into another region
// (b) is saved, what the program gives as an output (c) too, and the rest is
// computed again, the mask that the gradient makes of it as well. A value that
// is tagged in the region is saved all the same.
// CHECK-LABEL: module @regions
module @regions attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "matmul.0"
  // CHECK-SAME: saved "exp.0" {reason = "'tandem.save' on
  // CHECK-SAME: saved "sin.1" {{.*}}region 'first' gives it to region 'second'
  // CHECK-SAME: saved "tanh.0" {alias = {output = "c"
  // CHECK-SAME: region 'second' gives it as output 'c'
  // CHECK-NOT: saved
  // CHECK: return
  // CHECK: func.func @backward(
  // CHECK: = tandem.matmul
  // CHECK: = tandem.matmul
  // CHECK-NOT: = tandem.matmul
  // CHECK: return
  func.func @joint(
      %x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "c">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "c">},
          tensor<4x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %h = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %r = tandem.relu %h {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>
    %a = tandem.sin %r {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>
    %e = tandem.exp %a {tandem.pass = "forward", tandem.checkpoint = "first", tandem.save} : tensor<4x4xf32>
    %b = tandem.sin %e {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>
    %q = tandem.matmul %b, %x {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %u = tandem.matmul %q, %x {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %c = tandem.tanh %u {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<4x4xf32>
    %z = tandem.sign %r {tandem.pass = "backward"} : tensor<4x4xf32>
    %0 = tandem.mul %dy, %c {tandem.pass = "backward"} : tensor<4x4xf32>
    %1 = tandem.mul %0, %u {tandem.pass = "backward"} : tensor<4x4xf32>
    %k = tandem.mul %1, %q {tandem.pass = "backward"} : tensor<4x4xf32>
    %2 = tandem.mul %k, %b {tandem.pass = "backward"} : tensor<4x4xf32>
    %3 = tandem.mul %2, %e {tandem.pass = "backward"} : tensor<4x4xf32>
    %4 = tandem.mul %3, %a {tandem.pass = "backward"} : tensor<4x4xf32>
    %5 = tandem.mul %4, %z {tandem.pass = "backward"} : tensor<4x4xf32>
    return %c, %5 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// P08: contractions of a region too; of a value that leaves the region through
// views, what is saved is the smallest of them.
// CHECK-LABEL: module @contraction
module @contraction attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "slice.0"
  // CHECK-NOT: saved
  // CHECK: return
  // CHECK: func.func @backward(
  // CHECK: tandem.matmul
  // CHECK: return
  func.func @joint(
      %x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<1x4xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %dy: tensor<1x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<1x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<1x4xf32> {tandem.role = #tandem.role<grad of "v">}) {
    %m = tandem.matmul %x, %w {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %e = tandem.sin %m {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>
    %f = tandem.matmul %e, %w {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %s = tandem.slice %f from [0, 0] to [1, 4] step [1, 1] {tandem.pass = "forward", tandem.checkpoint = "first"} : tensor<4x4xf32> -> tensor<1x4xf32>
    %u = tandem.sin %s {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<1x4xf32>
    %y = tandem.cos %u {tandem.pass = "forward", tandem.checkpoint = "second"} : tensor<1x4xf32>
    %0 = tandem.mul %dy, %u {tandem.pass = "backward"} : tensor<1x4xf32>
    %1 = tandem.mul %0, %s {tandem.pass = "backward"} : tensor<1x4xf32>
    %c = tandem.slice %e from [0, 0] to [1, 4] step [1, 1] {tandem.pass = "backward"} : tensor<4x4xf32> -> tensor<1x4xf32>
    %2 = tandem.mul %1, %c {tandem.pass = "backward"} : tensor<1x4xf32>
    return %y, %2 : tensor<1x4xf32>, tensor<1x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// P06: what the gradient makes of a value that is never saved is not saved in
// its place, though it is smaller than what is: its source.
// CHECK-LABEL: module @derived
module @derived attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "matmul.0"
  // CHECK-NOT: saved
  // CHECK: func.func @backward(
  // CHECK: = tandem.exp
  // CHECK: = tandem.compare
  func.func @joint(
      %x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4x4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %m = tandem.matmul %x, %w {tandem.pass = "forward"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %e = tandem.exp %m {tandem.pass = "forward", tandem.recompute} : tensor<4x4xf32>
    %y = tandem.sin %e {tandem.pass = "forward"} : tensor<4x4xf32>
    %k = tandem.compare lt %e, %x {tandem.pass = "backward"} : tensor<4x4xf32>
    %g = tandem.select %k, %dy, %x {tandem.pass = "backward"} : tensor<4x4xi1>, tensor<4x4xf32>
    return %y, %g : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func @evaluate() { return }
}

// -----

// P06: a floating-point sum that is computed again could have other bits than
// the forward's, and a mask of it would be wrong, so it is saved all the same;
// a largest element and a sum of integers are computed again.
// CHECK-LABEL: module @sums
module @sums attributes {tandem.phase = "optimize"} {
  // CHECK: func.func @forward(
  // CHECK-SAME: saved "reduce_sum.0" {reason = "a floating-point sum that is computed again could have other bits"
  // CHECK-SAME: saved "reduce_sum.1" {reason = "a floating-point sum that is computed again could have other bits"
  // CHECK-NOT: saved
  // CHECK: func.func @backward(
  // CHECK-NOT: = tandem.reduce_sum
  // CHECK: = tandem.reduce_max
  // CHECK: return
  func.func @joint(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %s = tandem.reduce_sum %x over [1] {tandem.pass = "forward", tandem.recompute} : tensor<4x8xf32> -> tensor<4xf32>
    %e = tandem.exp %x {tandem.pass = "forward", tandem.checkpoint = "region"} : tensor<4x8xf32>
    %r = tandem.reduce_sum %e over [1] {tandem.pass = "forward", tandem.checkpoint = "region"} : tensor<4x8xf32> -> tensor<4xf32>
    %m = tandem.reduce_max %x over [1] {tandem.pass = "forward", tandem.recompute} : tensor<4x8xf32> -> tensor<4xf32>
    %0 = tandem.mul %s, %r {tandem.pass = "forward", tandem.checkpoint = "region"} : tensor<4xf32>
    %t = tandem.mul %0, %m {tandem.pass = "forward"} : tensor<4xf32>
    %y = tandem.mul %t, %w {tandem.pass = "forward"} : tensor<4xf32>
    %1 = tandem.mul %dy, %s {tandem.pass = "backward"} : tensor<4xf32>
    %2 = tandem.mul %1, %r {tandem.pass = "backward"} : tensor<4xf32>
    %3 = tandem.mul %2, %m {tandem.pass = "backward"} : tensor<4xf32>
    return %y, %3 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate() { return }
}
