// RUN: tandem-opt %s -split-input-file -verify-diagnostics

// P06: tags of ops that cannot obey them, and tags that contradict each other.

func.func @both(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tandem.exp' op expected one of 'tandem.save' and 'tandem.recompute', but got both}}
  %0 = tandem.exp %x {tandem.save, tandem.recompute} : tensor<4xf32>
  return
}

// -----

func.func @away(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tandem.exp' op expected one of 'tandem.offload' and 'tandem.recompute', but got both}}
  %0 = tandem.exp %x {tandem.offload, tandem.recompute} : tensor<4xf32>
  return
}

// -----

func.func @write(%x: tensor<4xf32>, %r: !tandem.ref<4xf32>) {
  // expected-error@+1 {{'tandem.write' op writes memory, and cannot be computed again as 'tandem.recompute' says}}
  tandem.write %x into %r {tandem.recompute} : tensor<4xf32>, !tandem.ref<4xf32>
  return
}

// -----

func.func @resize(%r: !tandem.ref<4xf32>) {
  // expected-error@+1 {{'tandem.resize_' op writes memory, and cannot be computed again as 'tandem.recompute' says}}
  tandem.resize_ %r to 0 {tandem.recompute} : !tandem.ref<4xf32>
  return
}

// -----

// The forward of a custom_vjp that writes.
func.func @custom(%x: tensor<4xf32>, %r: !tandem.ref<4xf32>) {
  // expected-error@+1 {{'tandem.custom_vjp' op writes memory, and cannot be computed again as 'tandem.recompute' says}}
  %y = tandem.custom_vjp "twice" (%x) refs(%r) forward {
  ^bb0(%a: tensor<4xf32>, %s: !tandem.ref<4xf32>):
    tandem.write %a into %s : tensor<4xf32>, !tandem.ref<4xf32>
    tandem.yield %a : tensor<4xf32>
  } backward {
  ^bb0(%dy: tensor<4xf32>, %s: !tandem.ref<4xf32>):
    tandem.yield %dy : tensor<4xf32>
  } {writes = array<i64: 0>, tandem.recompute} : (tensor<4xf32>), (!tandem.ref<4xf32>) -> tensor<4xf32>
  return
}

// -----

// What its backward writes is no matter.
func.func @main_grad(%x: tensor<4xf32>, %r: !tandem.ref<4xf32>) {
  %y = tandem.custom_vjp "twice" (%x) refs(%r) forward {
  ^bb0(%a: tensor<4xf32>, %s: !tandem.ref<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } backward {
  ^bb0(%dy: tensor<4xf32>, %s: !tandem.ref<4xf32>):
    tandem.write %dy into %s : tensor<4xf32>, !tandem.ref<4xf32>
    tandem.yield %dy : tensor<4xf32>
  } {backward_writes = array<i64: 0>, tandem.recompute} : (tensor<4xf32>), (!tandem.ref<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @storage(%r: !tandem.ref<4x2xf32>) {
  // expected-error@+1 {{'tandem.permute' op makes no value from values, so 'tandem.save' says nothing}}
  %0 = tandem.permute %r by [1, 0] {tandem.save} : !tandem.ref<4x2xf32> -> !tandem.ref<2x4xf32>
  return
}

// -----

func.func @number(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tandem.exp' op expected 'tandem.save' to be a unit attribute, but got true}}
  %0 = tandem.exp %x {tandem.save = true} : tensor<4xf32>
  return
}

// -----

func.func @nameless(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tandem.exp' op expected 'tandem.checkpoint' to be the name of a region, but got ""}}
  %0 = tandem.exp %x {tandem.checkpoint = ""} : tensor<4xf32>
  return
}

// -----

func.func @unnamed(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tandem.exp' op expected 'tandem.checkpoint' to be the name of a region, but got unit}}
  %0 = tandem.exp %x {tandem.checkpoint} : tensor<4xf32>
  return
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  func.func @ranks(%x: tensor<4xf32>) {
    // expected-error@+1 {{'tandem.all_reduce' op is of several ranks, and cannot be computed again as 'tandem.recompute' says}}
    %0 = tandem.all_reduce sum %x over ["data"] {tandem.recompute} : tensor<4xf32> -> tensor<4xf32>
    return
  }
}
