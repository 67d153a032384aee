// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-choose-methods

module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{method 'tiles' does not compute this kernel: expected factors of bf16 but got f32}}
    %y = tandem.kernel "y" (%x) {
    ^bb0(%a: tensor<64x64xf32>):
      %0 = tandem.matmul %a, %a : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<method = tiles>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

func.func @evaluate(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected 'tandem.scratch_bytes' to be an i64 of at least 0, but got -1}}
  %y = tandem.kernel "y" (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = tandem.exp %a : tensor<4xf32>
    tandem.yield %0 : tensor<4xf32>
  } {tandem.scratch_bytes = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @evaluate(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'tandem.scratch_bytes' belongs on a kernel}}
  %y = tandem.exp %x {tandem.scratch_bytes = 64 : i64} : tensor<4xf32>
  return %y : tensor<4xf32>
}
