// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-functionalize

// M07
module @overlap attributes {tandem.phase = "capture"} {
  func.func @graph(
      %v: tensor<3x4xf32> {tandem.role = #tandem.role<input "v">},
      %x: !tandem.ref<1x4xf32> {tandem.role = #tandem.role<input "x">}) {
    // expected-note@+1 {{the view is made here}}
    %e = tandem.broadcast %x to [3, 4] along [0, 1] : !tandem.ref<1x4xf32> -> !tandem.ref<3x4xf32>
    // expected-error@+1 {{writes 'input "x"' (argument #1) through 'tandem.broadcast', whose elements overlap in storage}}
    tandem.write %v into %e : tensor<3x4xf32>, !tandem.ref<3x4xf32>
    return
  }
}

// -----

// M13: both ops are named.
module @m13 attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    // expected-error@+1 {{'tandem.set_' op changes the storage of 'input "x"' (argument #0), which requires grad and is written by 'tandem.write' at functionalize-mutation-errors.mlir:27:5}}
    %x2 = tandem.set_ %x to %y : !tandem.ref<4xf32>, !tandem.ref<4xf32>
    // expected-note@+1 {{it is written here}}
    tandem.write %v into %x2 : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M14: every problem is reported.
module @m14 attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {freed}>},
      %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
      %z: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "z">}) {
    // expected-error@+1 {{expected the storage of 'input "y"' (argument #1) to have 0 or 4 elements, but got 2}}
    tandem.resize_ %y to 2 : !tandem.ref<4xf32>
    // expected-error@+1 {{reads 'input "x"' (argument #0), which is freed}}
    %0 = tandem.read %x : !tandem.ref<4xf32>
    // expected-note@+1 {{it is freed here}}
    tandem.resize_ %z to 0 : !tandem.ref<4xf32>
    // expected-error@+1 {{writes 'input "z"' (argument #2), which is freed}}
    tandem.write %0 into %z : tensor<4xf32>, !tandem.ref<4xf32>
    return
  }
}

// -----

// M14: the size of storage that no argument shows whole is nobody's.
module @m14_part attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "s", type = tensor<3xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "s", type = tensor<3xf32>, views = [{op = "slice", starts = array<i64: 1>, limits = array<i64: 3>, strides = array<i64: 1>}]}}>}) {
    // expected-error@+2 {{changes the size of storage that 'input "x"' (argument #0) shows a part of, and no argument the whole}}
    // expected-error@+1 {{changes the size of storage that 'input "y"' (argument #1) shows a part of, and no argument the whole}}
    tandem.resize_ %x to 0 : !tandem.ref<2xf32>
    return
  }
}

// -----

// A02: overlapping outputs of storage that nobody has whole.
module @a02 attributes {tandem.phase = "capture"} {
  // expected-error@+1 {{'output "a"' (result #0) and 'output "b"' (result #1) overlap in storage that no output and no argument shows whole; return the tensor that they are views of as well}}
  func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
      -> (!tandem.ref<3xf32> {tandem.role = #tandem.role<output "a">},
          !tandem.ref<3xf32> {tandem.role = #tandem.role<output "b">}) {
    %n = tandem.exp %v : tensor<4xf32>
    %x = tandem.make_ref %n : tensor<4xf32>
    %a = tandem.slice %x from [0] to [3] step [1] : !tandem.ref<4xf32> -> !tandem.ref<3xf32>
    // expected-note@+1 {{'output "b"' is made here}}
    %b = tandem.slice %x from [1] to [4] step [1] : !tandem.ref<4xf32> -> !tandem.ref<3xf32>
    return %a, %b : !tandem.ref<3xf32>, !tandem.ref<3xf32>
  }
}

// -----

// A08: what a declaration must say.
module @a08 attributes {tandem.phase = "capture"} {
  func.func @graph(
      // expected-error@+1 {{'input "a"' (argument #0) is declared to share storage that is no argument, so expected 'of' and the 'type' of that storage}}
      %a: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "a" {alias = {of = "s", views = []}}>},
      // expected-error@+1 {{'input "b"' (argument #1) is declared to share the storage of 'v', so expected that to be a ref of its own}}
      %b: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "b" {alias = {of = "v", views = []}}>},
      // expected-error@+1 {{'input "c"' (argument #2) is declared to show 'tensor<4xf32>' of 'd', but is of type 'tensor<2xf32>'}}
      %c: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "c" {alias = {of = "d", views = []}}>},
      %d: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "d">},
      %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
    return
  }
}

// -----

// A08: elements of one input that are one element of its storage.
module @a08_itself attributes {tandem.phase = "capture"} {
  func.func @graph(
      // expected-error@+1 {{'input "a"' (argument #0) is declared to show elements that overlap each other}}
      %a: !tandem.ref<2x4xf32> {tandem.role = #tandem.role<input "a" {alias = {of = "s", type = tensor<4xf32>, views = [{op = "broadcast", shape = array<i64: 2, 4>, dims = array<i64: 1>}]}}>}) {
    return
  }
}

// -----

// A12: both types are named.
module @a12 attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      // expected-note@+1 {{it is declared here}}
      %y: !tandem.ref<3xi32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = [{op = "bitcast", type = i32}]}}>},
      %v: tensor<3xi32> {tandem.role = #tandem.role<input "v">}) {
    // expected-error@+1 {{'tandem.write' op writes storage that 'input "y"' (argument #1) shows as 'i32' and 'input "x"' (argument #0), which requires grad, as 'f32'}}
    tandem.write %v into %y : tensor<3xi32>, !tandem.ref<3xi32>
    return
  }
}

// -----

// A01: what is handed back has strides.
module @a01_no_strides attributes {tandem.phase = "capture"} {
  // expected-error@+1 {{'output "o"' (result #0) is a view of 'input "x"' (argument #0) whose elements are not at equal distances in storage; return a copy}}
  func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">})
      -> (!tandem.ref<4xf32> {tandem.role = #tandem.role<output "o">}) {
    %both = tandem.broadcast %x to [2, 2] along [1] : !tandem.ref<2xf32> -> !tandem.ref<2x2xf32>
    // expected-note@+1 {{the view is made here}}
    %flat = tandem.reshape %both to [4] : !tandem.ref<2x2xf32> -> !tandem.ref<4xf32>
    return %flat : !tandem.ref<4xf32>
  }
}

// -----

// M11: so does what a handle shows.
module @m11_no_strides attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: !tandem.ref<6xf32> {tandem.role = #tandem.role<input "x">},
      %y: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "y">}) {
    %t = tandem.permute %y by [1, 0] : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    %flat = tandem.reshape %t to [6] : !tandem.ref<3x2xf32> -> !tandem.ref<6xf32>
    // expected-error@+1 {{'tandem.set_' op gives 'input "x"' (argument #0) a view of 'input "y"' (argument #1) whose elements are not at equal distances in storage}}
    %z = tandem.set_ %x to %flat {tandem.no_grad} : !tandem.ref<6xf32>, !tandem.ref<6xf32>
    return
  }
}

// -----

// M08, M14: the handles of params and states are the model's.
module @handles_of_the_model attributes {tandem.phase = "capture"} {
  func.func @graph(
      %w: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<param "w">},
      %s: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "s">}) {
    // expected-error@+1 {{'tandem.transpose_' op changes the handle of 'param "w"' (argument #0), which is the model's; expected an input}}
    %t = tandem.transpose_ %w dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
    // expected-error@+1 {{'tandem.resize_' op changes the size of the storage of 'state "s"' (argument #1), which is the model's; expected that of an input}}
    tandem.resize_ %s to 0 : !tandem.ref<2xf32>
    return
  }
}

// -----

// B13: a backward cannot use storage that no argument shows whole.
module @b13_shared attributes {tandem.phase = "capture"} {
  func.func @graph(
      %v: tensor<2xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>},
      %x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "s", type = tensor<3xf32>, views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
      %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "s", type = tensor<3xf32>, views = [{op = "slice", starts = array<i64: 1>, limits = array<i64: 3>, strides = array<i64: 1>}]}}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
    // expected-error@+1 {{has a backward that uses storage which inputs share and of which no argument is the whole}}
    %o = tandem.custom_vjp "f" (%v) refs(%x) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dy : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>
  }
}

// -----

// M09: a handle has a shape and strides; what has none cannot be handed back.
module @m09_no_strides attributes {tandem.phase = "capture"} {
  func.func @graph(%x: !tandem.ref<3x4xf64> {tandem.role = #tandem.role<input "x">}) {
    %t = tandem.transpose_ %x dims 0, 1 : !tandem.ref<3x4xf64> -> !tandem.ref<4x3xf64>
    %r = tandem.reshape %t to [12] : !tandem.ref<4x3xf64> -> !tandem.ref<12xf64>
    // expected-error@+1 {{gives 'input "x"' (argument #0) a view of itself whose elements are not at equal distances in storage}}
    %s = tandem.set_ %t to %r : !tandem.ref<4x3xf64>, !tandem.ref<12xf64>
    return
  }
}
