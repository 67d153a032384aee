// What the verifier of capture finds, where the next phase begins.
//
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-functionalize

module @functions attributes {tandem.phase = "capture"} {
  func.func @graph() {
    return
  }
  // expected-error@+1 {{phase 'capture' left an unexpected function 'graf' (did you mean 'graph'?)}}
  func.func @graf() {
    return
  }
}

// -----

module @roles attributes {tandem.phase = "capture"} {
  // expected-error@+2 {{expected argument #1 to have a role}}
  // expected-error@+1 {{expected result #0 to have a role}}
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}, %y: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module @dialects attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{phase 'capture' left 'math.exp', an op of another dialect}}
    %y = math.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module @marks attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{phase 'capture' left 'tandem.saved' on 'tandem.exp', which partition alone chooses}}
    %y = tandem.exp %x {tandem.saved = "me"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
