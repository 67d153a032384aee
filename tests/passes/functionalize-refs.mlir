// RUN: tandem-opt %s -split-input-file -tandem-functionalize-refs | FileCheck %s

// Reads become values, a write becomes an update; an argument that is only read
// has none.
// CHECK-LABEL: module @reads
module @reads attributes {tandem.phase = "capture"} {
  // CHECK: func.func @graph(%[[X:.*]]: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
  // CHECK-SAME: %[[S:.*]]: tensor<4xf32> {tandem.role = #tandem.role<state "s">})
  // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
  // CHECK-SAME:     tensor<4xf32> {tandem.role = #tandem.role<update of "s" {{.*}}>})
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
      %s: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // CHECK-NEXT: %[[A:.*]] = tandem.add %[[X]], %[[S]]
    // CHECK-NEXT: %[[B:.*]] = tandem.mul %[[A]], %[[X]]
    // CHECK-NEXT: return %[[B]], %[[A]]
    %0 = tandem.read %x : !tandem.ref<4xf32>
    %1 = tandem.read %s : !tandem.ref<4xf32>
    %2 = tandem.add %0, %1 : tensor<4xf32>
    tandem.write %2 into %s : tensor<4xf32>, !tandem.ref<4xf32>
    %3 = tandem.read %s : !tandem.ref<4xf32>
    %4 = tandem.mul %3, %0 : tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}

// -----

// A write through a view of a view is scattered into the base; the view that
// was written shows what was written, other views are made again.
// CHECK-LABEL: module @views
module @views attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<state "s">},
      %v: tensor<1x2xf32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<1x2xf32> {tandem.role = #tandem.role<output "row">},
          tensor<6xf32> {tandem.role = #tandem.role<output "flat">}) {
    // CHECK: func.func @graph(%[[S:.*]]: tensor<2x3xf32> {{.*}}, %[[V:.*]]: tensor<1x2xf32>
    // CHECK-NEXT: %[[T:.*]] = tandem.permute %[[S]] by [1, 0]
    // CHECK-NEXT: %[[ONES:.*]] = tandem.constant dense<true> : tensor<1x2xi1>
    // CHECK-NEXT: %[[IN:.*]] = tandem.pad %[[ONES]] low [1, 0] high [1, 0]
    // CHECK-NEXT: %[[NEW:.*]] = tandem.pad %[[V]] low [1, 0] high [1, 0]
    // CHECK-NEXT: %[[T2:.*]] = tandem.select %[[IN]], %[[NEW]], %[[T]]
    // CHECK-NEXT: %[[S2:.*]] = tandem.permute %[[T2]] by [1, 0]
    // CHECK-NEXT: %[[FLAT:.*]] = tandem.reshape %[[S2]] to [6]
    // CHECK-NEXT: return %[[V]], %[[FLAT]], %[[S2]]
    %t = tandem.permute %s by [1, 0] : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    %row = tandem.slice %t from [1, 0] to [2, 2] step [1, 1] : !tandem.ref<3x2xf32> -> !tandem.ref<1x2xf32>
    %flat = tandem.reshape %s to [6] : !tandem.ref<2x3xf32> -> !tandem.ref<6xf32>
    tandem.write %v into %row : tensor<1x2xf32>, !tandem.ref<1x2xf32>
    %0 = tandem.read %row : !tandem.ref<1x2xf32>
    %1 = tandem.read %flat : !tandem.ref<6xf32>
    return %0, %1 : tensor<1x2xf32>, tensor<6xf32>
  }
}

// -----

// What is written back unchanged is no update, and no op is left of it.
// CHECK-LABEL: module @restored
module @restored attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "s">},
      %t: !tandem.ref<4xf32> {tandem.role = #tandem.role<state "t">},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) {
    // CHECK: func.func @graph
    // CHECK-NOT: update
    // CHECK-NEXT: return{{$}}
    %0 = tandem.read %s : !tandem.ref<4xf32>
    tandem.write %0 into %s : tensor<4xf32>, !tandem.ref<4xf32>
    %1 = tandem.read %t : !tandem.ref<4xf32>
    tandem.write %x into %t : tensor<4xf32>, !tandem.ref<4xf32>
    tandem.write %1 into %t : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// Storage of the program's own, and an output that is a ref.
// CHECK-LABEL: module @own
module @own attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "a">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "b">}) {
    // CHECK: func.func @graph(%[[X:.*]]: tensor<2x2xf32>
    // CHECK-SAME: tensor<4xf32> {tandem.role = #tandem.role<output "b">})
    // CHECK-NEXT: %[[E:.*]] = tandem.exp %[[X]] {tandem.no_grad}
    // CHECK-NEXT: %[[F:.*]] = tandem.reshape %[[E]] to [4]
    // CHECK-NEXT: return %[[X]], %[[F]]
    %r = tandem.make_ref %x : tensor<2x2xf32>
    %f = tandem.reshape %r to [4] : !tandem.ref<2x2xf32> -> !tandem.ref<4xf32>
    %e = tandem.exp %x {tandem.no_grad} : tensor<2x2xf32>
    tandem.write %e into %r {tandem.no_grad} : tensor<2x2xf32>, !tandem.ref<2x2xf32>
    return %x, %f : tensor<2x2xf32>, !tandem.ref<4xf32>
  }
}

// -----

// Ops made by a write in a no-grad region belong to that region.
// CHECK-LABEL: module @no_grad
module @no_grad attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<2x2xf32> {tandem.role = #tandem.role<state "s">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    // CHECK: tandem.reshape %{{.*}} to [2, 2] {tandem.no_grad}
    %f = tandem.reshape %s to [4] : !tandem.ref<2x2xf32> -> !tandem.ref<4xf32>
    tandem.write %v into %f {tandem.no_grad} : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// A hidden write changes the value; the gradient passes as if it had not.
// CHECK-LABEL: module @hidden
module @hidden attributes {tandem.phase = "capture"} {
  func.func @graph(
      %w: !tandem.ref<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    // CHECK: %[[W:.*]]: tensor<4xf32> {tandem.role = #tandem.role<param "w"
    // CHECK-SAME: %[[V:.*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">}
    // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<update of "w" {where = "'tandem.write' at {{.*}}"}>})
    // CHECK-NEXT: %[[NEW:.*]] = tandem.pass_grad %[[W]], %[[V]]
    // CHECK-NEXT: return %[[NEW]]
    tandem.write %v into %w {tandem.no_grad} : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// A view of repeated elements cannot be written, but one that shows each of
// them once can: the elements go to their positions in the storage.
// CHECK-LABEL: module @part_of_overlap
module @part_of_overlap attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<1x2xf32> {tandem.role = #tandem.role<input "v">}) {
    // CHECK: %[[BOTH:.*]] = tandem.concat
    // CHECK: %[[FROM:.*]] = tandem.constant dense<[2, 3]> : tensor<2xi64>
    // CHECK: %[[NEW:.*]] = tandem.take %[[BOTH]], %[[FROM]]
    // CHECK: %[[X:.*]] = tandem.reshape %[[NEW]] to [2]
    // CHECK: return %[[X]]
    %both = tandem.broadcast %x to [2, 2] along [1] : !tandem.ref<2xf32> -> !tandem.ref<2x2xf32>
    %row = tandem.slice %both from [0, 0] to [1, 2] step [1, 1] : !tandem.ref<2x2xf32> -> !tandem.ref<1x2xf32>
    tandem.write %v into %row : tensor<1x2xf32>, !tandem.ref<1x2xf32>
    return
  }
}

// -----

// J02: storage that is made in a no-grad region starts without a gradient.
// CHECK-LABEL: module @made_in_no_grad
module @made_in_no_grad attributes {tandem.phase = "capture"} {
  func.func @graph(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (!tandem.ref<2xf32> {tandem.role = #tandem.role<output "o">}) {
    // CHECK: %[[O:.*]] = tandem.detach
    // CHECK: return %[[O]]
    %r = tandem.make_ref %w {tandem.no_grad} : tensor<2xf32>
    return %r : !tandem.ref<2xf32>
  }
}
