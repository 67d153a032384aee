// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-plan-programs

// What an edit of the printed programs breaks.
module @names attributes {tandem.phase = "partition"} {
  // expected-error@+1 {{phase 'partition' left 2 prepared values in 'prepare' of which 1 are taken}}
  func.func @prepare(%w: tensor<8xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<prepared "w.exp">},
          tensor<8xf32> {tandem.role = #tandem.role<prepared "w.cos">}) {
    %0 = tandem.exp %w : tensor<8xf32>
    %1 = tandem.cos %w : tensor<8xf32>
    return %0, %1 : tensor<8xf32>, tensor<8xf32>
  }
  // expected-error@+1 {{phase 'partition' left 'prepared "w.sin"' in 'evaluate' that 'prepare' does not prepare}}
  func.func @evaluate(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<8xf32> {tandem.role = #tandem.role<prepared "w.sin">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.mul %x, %p : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module @types attributes {tandem.phase = "partition"} {
  func.func @prepare(%w: tensor<8xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<prepared "w.exp">}) {
    %0 = tandem.exp %w : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  // expected-error@+1 {{'prepared "w.exp"' of type 'tensor<4xf32>' in 'evaluate', but of type 'tensor<8xf32>' in 'prepare'}}
  func.func @evaluate(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4xf32> {tandem.role = #tandem.role<prepared "w.exp">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.mul %x, %p : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Who has what is prepared without a program that prepares it.
module @nobody attributes {tandem.phase = "partition"} {
  // expected-error@+1 {{'prepared "w.exp"' as an argument of 'evaluate'}}
  func.func @evaluate(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4xf32> {tandem.role = #tandem.role<prepared "w.exp">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.mul %x, %p : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// It takes params and states, and gives nothing else.
module @roles attributes {tandem.phase = "partition"} {
  // expected-error@+2 {{argument #0 of 'prepare' that is no param or state}}
  // expected-error@+1 {{result #1 of 'prepare' that is not prepared}}
  func.func @prepare(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<prepared "exp">},
          tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.exp %x : tensor<4xf32>
    %1 = tandem.sin %x : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4xf32> {tandem.role = #tandem.role<prepared "exp">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.mul %x, %p : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// The runtime takes all copies for those of the new params.
module @stale attributes {tandem.phase = "partition"} {
  func.func @prepare(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<8xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<8xbf16> {tandem.role = #tandem.role<prepared "w.bf16">},
          tensor<8xbf16> {tandem.role = #tandem.role<prepared "v.bf16">}) {
    %0 = tandem.cast %w : tensor<8xf32> to tensor<8xbf16>
    %1 = tandem.cast %v : tensor<8xf32> to tensor<8xbf16>
    return %0, %1 : tensor<8xbf16>, tensor<8xbf16>
  }
  // expected-error@+1 {{phase 'partition' left no 'update of w.bf16' in 'step', although it updates 'w', of which 'prepare' makes that}}
  func.func @step(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w">},
      %v: tensor<8xf32> {tandem.role = #tandem.role<param "v">},
      %p: tensor<8xbf16> {tandem.role = #tandem.role<prepared "w.bf16">},
      %q: tensor<8xbf16> {tandem.role = #tandem.role<prepared "v.bf16">})
      -> (tensor<8xf32> {tandem.role = #tandem.role<update of "w">},
          tensor<8xf32> {tandem.role = #tandem.role<update of "v">},
          tensor<8xbf16> {tandem.role = #tandem.role<update of "v.bf16">}) {
    %0 = tandem.cast %p : tensor<8xbf16> to tensor<8xf32>
    %1 = tandem.exp %v : tensor<8xf32>
    %2 = tandem.cast %1 : tensor<8xf32> to tensor<8xbf16>
    return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>
  }
}
