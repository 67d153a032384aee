// RUN: tandem-opt %s -split-input-file -tandem-functionalize | FileCheck %s

// M06: the visible write is differentiated, the others pass the gradient on.
// CHECK-LABEL: module @m06
module @m06 attributes {tandem.phase = "capture"} {
  // CHECK: %[[X:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "x"
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">}
  // CHECK-SAME: -> (tensor<4xf32> {tandem.role = #tandem.role<update of "x" {visible, where = "'tandem.write' at {{.*}}"}>})
  // CHECK-NEXT: %[[A:[^ ]*]] = tandem.mul %[[X]], %[[V]]
  // CHECK-NEXT: %[[B:[^ ]*]] = tandem.pass_grad %[[A]], %[[V]]
  // CHECK-NEXT: %[[D:[^ ]*]] = tandem.detach %[[B]]
  // CHECK-NEXT: %[[C:[^ ]*]] = tandem.add %[[D]], %[[D]]
  // CHECK-NEXT: %[[E:[^ ]*]] = tandem.pass_grad %[[B]], %[[C]]
  // CHECK-NEXT: return %[[E]]
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    %0 = tandem.read %x : !tandem.ref<4xf32>
    %1 = tandem.mul %0, %v : tensor<4xf32>
    tandem.write %1 into %x : tensor<4xf32>, !tandem.ref<4xf32>
    tandem.write %v into %x {tandem.no_grad} : tensor<4xf32>, !tandem.ref<4xf32>
    %d = tandem.detach %x : !tandem.ref<4xf32>
    %2 = tandem.read %d : !tandem.ref<4xf32>
    %3 = tandem.add %2, %2 : tensor<4xf32>
    tandem.write %3 into %d : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M08: metadata alone is a role; nothing is computed.
// CHECK-LABEL: module @m08
module @m08 attributes {tandem.phase = "capture"} {
  // CHECK: func.func @graph(%{{.*}}: tensor<2x3xf32> {tandem.role = #tandem.role<input "x" {metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}}>}) {
  // CHECK-NEXT: return{{$}}
  func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">}) {
    %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    return
  }
}

// -----

// M09: the metadata changes of the one handle; the data is seen by both.
// CHECK-LABEL: module @m09
module @m09 attributes {tandem.phase = "capture"} {
  // CHECK: input "x" {metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}}
  // CHECK-SAME: input "y" {alias = {of = "x", views = [{op = "reshape", shape = array<i64: 6>}]}}
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<3x2xf32> {tandem.role = #tandem.role<input "v">}) ->
  // CHECK-SAME: tensor<2x3xf32> {tandem.role = #tandem.role<update of "x"
  // CHECK-NOT: update of "y"
  // CHECK-NEXT: %[[NEW:[^ ]*]] = tandem.permute %[[V]] by [1, 0]
  // CHECK-NEXT: %[[FLAT:[^ ]*]] = tandem.reshape %[[NEW]] to [6]
  // CHECK-NEXT: return %[[FLAT]], %[[NEW]]
  func.func @graph(
      %x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<6xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = [{op = "reshape", shape = array<i64: 6>}]}}>},
      %v: tensor<3x2xf32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<6xf32> {tandem.role = #tandem.role<output "o">}) {
    %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    tandem.write %v into %0 : tensor<3x2xf32>, !tandem.ref<3x2xf32>
    %1 = tandem.read %y : !tandem.ref<6xf32>
    return %1 : tensor<6xf32>
  }
}

// -----

// M10: what cancels, or writes back what is there, leaves nothing.
// CHECK-LABEL: module @m10
module @m10 attributes {tandem.phase = "capture"} {
  // CHECK: func.func @graph(%{{.*}}: tensor<2x3xf32> {tandem.role = #tandem.role<input "x">}, %{{.*}}: tensor<3xf32> {tandem.role = #tandem.role<input "y">}) {
  // CHECK-NEXT: return{{$}}
  func.func @graph(
      %x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y">}) {
    %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    %1 = tandem.transpose_ %0 dims 0, 1 : !tandem.ref<3x2xf32> -> !tandem.ref<2x3xf32>
    %old = tandem.reshape %1 to [2, 3] : !tandem.ref<2x3xf32> -> !tandem.ref<2x3xf32>
    %2 = tandem.set_ %1 to %y : !tandem.ref<2x3xf32>, !tandem.ref<3xf32>
    %3 = tandem.set_ %2 to %old : !tandem.ref<3xf32>, !tandem.ref<2x3xf32>
    %v = tandem.read %3 : !tandem.ref<2x3xf32>
    tandem.write %v into %3 : tensor<2x3xf32>, !tandem.ref<2x3xf32>
    return
  }
}

// -----

// M11: the storage is a role; the write is the other argument's update.
// CHECK-LABEL: module @m11
module @m11 attributes {tandem.phase = "capture"} {
  // CHECK: input "x" {storage = {of = "y", views = [{op = "reshape", shape = array<i64: 4>}]}}
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) -> (tensor<2x2xf32> {tandem.role = #tandem.role<update of "y"
  // CHECK-NEXT: %[[NEW:[^ ]*]] = tandem.reshape %[[V]] to [2, 2]
  // CHECK-NEXT: return %[[NEW]] : tensor<2x2xf32>
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<2x2xf32> {tandem.role = #tandem.role<input "y">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    %r = tandem.reshape %y to [4] : !tandem.ref<2x2xf32> -> !tandem.ref<4xf32>
    %x2 = tandem.set_ %x to %r {tandem.no_grad} : !tandem.ref<4xf32>, !tandem.ref<4xf32>
    tandem.write %v into %x2 : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M12: a view taken before set_ keeps the old storage.
// CHECK-LABEL: module @m12
module @m12 attributes {tandem.phase = "capture"} {
  // CHECK: input "x" {storage = {of = "y", views = []}}
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) -> (tensor<4xf32> {tandem.role = #tandem.role<update of "x"
  // CHECK-NEXT: return %[[V]] : tensor<4xf32>
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    %old = tandem.reshape %x to [4] : !tandem.ref<4xf32> -> !tandem.ref<4xf32>
    %x2 = tandem.set_ %x to %y : !tandem.ref<4xf32>, !tandem.ref<4xf32>
    tandem.write %v into %old : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M14: from nothing and filled; to nothing after its last use.
// CHECK-LABEL: module @m14{{ }}
module @m14 attributes {tandem.phase = "capture"} {
  // CHECK: input "x" {freed, resize = 4 : i64}
  // CHECK-SAME: %[[Y:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "y" {resize = 0 : i64}>}
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
  // CHECK-SAME: update of "x"
  // CHECK-NOT: update of "y"
  // CHECK: return %[[Y]], %[[V]] : tensor<4xf32>, tensor<4xf32>
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {freed}>},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">}) {
    tandem.resize_ %x to 4 : !tandem.ref<4xf32>
    tandem.write %v into %x : tensor<4xf32>, !tandem.ref<4xf32>
    %0 = tandem.read %y : !tandem.ref<4xf32>
    tandem.resize_ %y to 0 : !tandem.ref<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// M14: behind set_ it is the new storage that is freed, before it the old one.
// CHECK-LABEL: module @m14_set
module @m14_set attributes {tandem.phase = "capture"} {
  // CHECK: input "x" {storage = {of = "y", views = []}}
  // CHECK-SAME: input "y" {resize = 0 : i64}
  // CHECK-SAME: input "z" {resize = 0 : i64, storage = {of = "y", views = []}}
  // CHECK-NEXT: return{{$}}
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
      %z: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "z">}) {
    %x2 = tandem.set_ %x to %y : !tandem.ref<4xf32>, !tandem.ref<4xf32>
    tandem.resize_ %x2 to 0 : !tandem.ref<4xf32>
    tandem.resize_ %z to 0 : !tandem.ref<4xf32>
    %z2 = tandem.set_ %z to %x2 : !tandem.ref<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M15, A05, A13: outputs that are an argument, or a piece of one, after its
// update.
// CHECK-LABEL: module @m15
module @m15 attributes {tandem.phase = "capture"} {
  // CHECK: %[[V:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "v">}
  // CHECK-SAME: output "a" {alias = {of = "x", views = []}}
  // CHECK-SAME: output "b" {alias = {of = "x", views = []}}
  // CHECK-SAME: output "c" {alias = {of = "x", views = [{limits = array<i64: 2>, op = "slice", starts = array<i64: 0>, strides = array<i64: 1>}]}, part_of = "split"}
  // CHECK-SAME: update of "x"
  // CHECK-NEXT: %[[C:[^ ]*]] = tandem.slice %[[V]] from [0] to [2] step [1] :
  // CHECK-NEXT: return %[[V]], %[[V]], %[[C]], %[[V]]
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
      -> (!tandem.ref<4xf32> {tandem.role = #tandem.role<output "a">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "b">},
          !tandem.ref<2xf32> {tandem.role = #tandem.role<output "c">}) {
    tandem.write %v into %x : tensor<4xf32>, !tandem.ref<4xf32>
    %c = tandem.slice %x from [0] to [2] step [1] {tandem.part_of = "split"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
    return %x, %x, %c : !tandem.ref<4xf32>, !tandem.ref<4xf32>, !tandem.ref<2xf32>
  }
}

// -----

// A02: one storage, however often it is returned and wherever the whole stands.
// CHECK-LABEL: module @a02
module @a02 attributes {tandem.phase = "capture"} {
  // CHECK: output "a" {alias = {output = "b", views = [{op = "reshape", shape = array<i64: 2, 2>}]}}
  // CHECK-SAME: output "b">
  // CHECK-SAME: output "c" {alias = {output = "b", views = []}}
  // CHECK-NEXT: %[[B:[^ ]*]] = tandem.exp
  // CHECK-NEXT: %[[A:[^ ]*]] = tandem.reshape %[[B]] to [2, 2]
  // CHECK-NEXT: return %[[A]], %[[B]], %[[B]]
  func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
      -> (!tandem.ref<2x2xf32> {tandem.role = #tandem.role<output "a">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "b">},
          !tandem.ref<4xf32> {tandem.role = #tandem.role<output "c">}) {
    %n = tandem.exp %v : tensor<4xf32>
    %x = tandem.make_ref %n : tensor<4xf32>
    %b = tandem.reshape %x to [2, 2] : !tandem.ref<4xf32> -> !tandem.ref<2x2xf32>
    return %b, %x, %x : !tandem.ref<2x2xf32>, !tandem.ref<4xf32>, !tandem.ref<4xf32>
  }
}

// -----

// A03, A04: a transposed intermediate, and views of it that no gradient passes.
// CHECK-LABEL: module @a03
module @a03 attributes {tandem.phase = "capture"} {
  // CHECK: output "y">
  // CHECK-SAME: output "d" {alias = {output = "y", views = [{op = "detach"}]}}
  // CHECK-SAME: output "n" {alias = {output = "y", views = [{limits = array<i64: 2, 2>, op = "slice", starts = array<i64: 1, 0>, strides = array<i64: 1, 1>}, {op = "reshape", shape = array<i64: 2>}]}}
  // CHECK-NEXT: %[[R:[^ ]*]] = tandem.exp
  // CHECK-NEXT: %[[Y:[^ ]*]] = tandem.permute %[[R]] by [1, 0]
  // CHECK-NEXT: %[[D:[^ ]*]] = tandem.detach %[[Y]]
  // CHECK-NEXT: %[[S:[^ ]*]] = tandem.slice %[[Y]] {{.*}} {tandem.no_grad}
  // CHECK-NEXT: %[[N:[^ ]*]] = tandem.reshape %[[S]] to [2] {tandem.no_grad}
  // CHECK-NEXT: return %[[Y]], %[[D]], %[[N]]
  func.func @graph(%v: tensor<2x3xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
      -> (!tandem.ref<3x2xf32> {tandem.role = #tandem.role<output "y">},
          !tandem.ref<3x2xf32> {tandem.role = #tandem.role<output "d">},
          !tandem.ref<2xf32> {tandem.role = #tandem.role<output "n">}) {
    %0 = tandem.exp %v : tensor<2x3xf32>
    %r = tandem.make_ref %0 : tensor<2x3xf32>
    %y = tandem.transpose_ %r dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    %d = tandem.detach %y : !tandem.ref<3x2xf32>
    %s = tandem.slice %y from [1, 0] to [2, 2] step [1, 1] {tandem.no_grad} : !tandem.ref<3x2xf32> -> !tandem.ref<1x2xf32>
    %n = tandem.reshape %s to [2] {tandem.no_grad} : !tandem.ref<1x2xf32> -> !tandem.ref<2xf32>
    return %y, %d, %n : !tandem.ref<3x2xf32>, !tandem.ref<3x2xf32>, !tandem.ref<2xf32>
  }
}

// -----

// A08, A11: shared elements are put together, and all see the write.
// CHECK-LABEL: module @a08{{ }}
module @a08 attributes {tandem.phase = "capture"} {
  // CHECK: %[[X:[^ ]*]]: tensor<3xf32> {tandem.role = #tandem.role<input "x"
  // CHECK-SAME: %[[Y:[^ ]*]]: tensor<3xf32> {tandem.role = #tandem.role<input "y"
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<3xf32> {tandem.role = #tandem.role<input "v">}
  // CHECK-SAME: update of "x"
  // CHECK-SAME: update of "y"
  // CHECK: tandem.pad %[[X]] low [0] high [2]
  // CHECK: tandem.pad %[[Y]] low [2] high [0]
  // CHECK: %[[BOTH:[^ ]*]] = tandem.select
  // CHECK: %[[NEW:[^ ]*]] = tandem.pad %[[V]] low [2] high [0]
  // CHECK-NEXT: %[[S:[^ ]*]] = tandem.select %{{.*}}, %[[NEW]], %[[BOTH]]
  // CHECK-NEXT: %[[X2:[^ ]*]] = tandem.slice %[[S]] from [0] to [3] step [1]
  // CHECK-NEXT: return %[[X2]], %[[X2]], %[[V]]
  func.func @graph(
      %x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "s", type = tensor<5xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 1>}]}}>},
      %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "s", type = tensor<5xf32>, views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 5>, strides = array<i64: 1>}]}}>},
      %v: tensor<3xf32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
    tandem.write %v into %y : tensor<3xf32>, !tandem.ref<3xf32>
    %0 = tandem.read %x : !tandem.ref<3xf32>
    return %0 : tensor<3xf32>
  }
}

// -----

// A08: the base is an argument, and its value is all there is.
// CHECK-LABEL: module @a08_base
module @a08_base attributes {tandem.phase = "capture"} {
  // CHECK: %[[B:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "b">}
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<2xf32> {tandem.role = #tandem.role<input "v">}) -> (tensor<4xf32> {tandem.role = #tandem.role<update of "b"
  // CHECK: %[[NEW:[^ ]*]] = tandem.pad %[[V]] low [0] high [2]
  // CHECK-NEXT: %[[B2:[^ ]*]] = tandem.select %{{.*}}, %[[NEW]], %[[B]]
  // CHECK-NEXT: return %[[B2]] : tensor<4xf32>
  func.func @graph(
      %x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "b", views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %b: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "b">},
      %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">}) {
    tandem.write %v into %x : tensor<2xf32>, !tandem.ref<2xf32>
    return
  }
}

// -----

// A09: those who share no element have nothing to do with each other.
// CHECK-LABEL: module @a09
module @a09 attributes {tandem.phase = "capture"} {
  // CHECK: %[[B:[^ ]*]]: tensor<2xf32> {tandem.role = #tandem.role<input "b"
  // CHECK-SAME: %[[V:[^ ]*]]: tensor<2xf32> {tandem.role = #tandem.role<input "v">}
  // CHECK-SAME: update of "a"
  // CHECK-NOT: update of "b"
  // CHECK-NEXT: return %[[B]], %[[V]] : tensor<2xf32>, tensor<2xf32>
  func.func @graph(
      %a: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "a" {alias = {of = "s", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 2>}]}}>},
      %b: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "b" {alias = {of = "s", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 2>}]}}>},
      %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
    tandem.write %v into %a : tensor<2xf32>, !tandem.ref<2xf32>
    %0 = tandem.read %b : !tandem.ref<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// A12: the same bytes.
// CHECK-LABEL: module @a12
module @a12 attributes {tandem.phase = "capture"} {
  // CHECK: %[[V:[^ ]*]]: tensor<3xi32> {tandem.role = #tandem.role<input "v">}
  // CHECK-SAME: update of "x"
  // CHECK-NOT: update of "y"
  // CHECK-NEXT: %[[X:[^ ]*]] = tandem.bitcast %[[V]] : tensor<3xi32> -> tensor<3xf32>
  // CHECK-NEXT: return %[[X]], %[[X]]
  func.func @graph(
      %x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<3xi32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = [{op = "bitcast", type = i32}]}}>},
      %v: tensor<3xi32> {tandem.role = #tandem.role<input "v">})
      -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
    tandem.write %v into %y : tensor<3xi32>, !tandem.ref<3xi32>
    %0 = tandem.read %x : !tandem.ref<3xf32>
    return %0 : tensor<3xf32>
  }
}

// -----

// A08: a slice of a slice of storage that inputs share shows what they hold.
// CHECK-LABEL: module @a08_slice_of_slice
module @a08_slice_of_slice attributes {tandem.phase = "capture"} {
  // CHECK: %[[X:[^ ]*]]: tensor<1xf32> {tandem.role = #tandem.role<input "x"
  // CHECK-SAME: %[[Y:[^ ]*]]: tensor<4xf32> {tandem.role = #tandem.role<input "y"
  // CHECK: %[[PART:[^ ]*]] = tandem.slice %[[Y]] from [2] to [4] step [1]
  // CHECK-NEXT: %[[ONE:[^ ]*]] = tandem.slice %[[PART]] from [1] to [2] step [1]
  // CHECK-NEXT: return %[[ONE]]
  func.func @graph(
      %x: !tandem.ref<1xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "s", type = tensor<4xf32>, views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>}, {op = "slice", starts = array<i64: 1>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "s", type = tensor<4xf32>, views = []}}>})
      -> (tensor<1xf32> {tandem.role = #tandem.role<output "o">}) {
    %0 = tandem.read %x : !tandem.ref<1xf32>
    return %0 : tensor<1xf32>
  }
}

// -----

// M08: what a permuted alias shows after transpose_ is said by what it showed.
// CHECK-LABEL: module @m08_permuted_alias
// CHECK: metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}
module @m08_permuted_alias attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<3x2xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "b", views = [{op = "permute", permutation = array<i64: 1, 0>}]}}>},
      %b: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "b">}) {
    %t = tandem.transpose_ %x dims 0, 1 : !tandem.ref<3x2xf32> -> !tandem.ref<2x3xf32>
    return
  }
}
