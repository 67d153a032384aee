// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-functionalize
// RUN: echo 'module {}' | not tandem-opt -tandem-functionalize-refs 2>&1 | FileCheck %s --check-prefix=NONE

// The pass by itself.
// NONE: expected a function 'graph' with a body of one block

// expected-error@+1 {{expected phase 'capture' but got 'joint'}}
module @phase attributes {tandem.phase = "joint"} {
}

// -----

// expected-error@+1 {{expected phase 'capture' but got none}}
module @unstamped {
}

// -----

// expected-error@+1 {{phase 'capture' left no function 'graph'}}
module @empty attributes {tandem.phase = "capture"} {
}

// -----

// Both writes are reported.
module @overlap attributes {tandem.phase = "capture"} {
  func.func @graph(
      %s: !tandem.ref<1x4xf32> {tandem.role = #tandem.role<state "s">},
      %v: tensor<4x4xf32> {tandem.role = #tandem.role<input "v">}) {
    // expected-note@+1 {{the view is made here}}
    %b = tandem.broadcast %s to [4, 4] along [0, 1] : !tandem.ref<1x4xf32> -> !tandem.ref<4x4xf32>
    // expected-error@+1 {{writes 'state "s"' (argument #0) through 'tandem.broadcast', whose elements overlap in storage}}
    tandem.write %v into %b : tensor<4x4xf32>, !tandem.ref<4x4xf32>
    // expected-error@+1 {{writes 'state "s"' (argument #0) through 'tandem.broadcast', whose elements overlap in storage}}
    tandem.write %v into %b : tensor<4x4xf32>, !tandem.ref<4x4xf32>
    return
  }
}
