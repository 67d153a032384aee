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
  %y = tandem.kernel "y" (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = tandem.exp %a : tensor<4xf32>
    tandem.yield %0 : tensor<4xf32>
  // expected-error@+1 {{attribute 'scratch_bytes' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  } {scratch_bytes = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A number that the method does not have.
module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{expected the schedule of method 'gemm' to have, for this kernel, 'rows', 'vectors', 'block', 'columns', 'packs', but got 'ahead'}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<method = gemm, ahead = true>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// One of another target.
module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{'splits' of a schedule is of CUDA, but the kernel is for a CPU}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<splits = 2>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

module attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{'packs' of a schedule is of a CPU, but the kernel is for CUDA}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<packs = true>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// A whole schedule is made as it stands, or not at all.
module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{method 'gemm' cannot cut this kernel with 'block' = 50 and what else its schedule says; it would take 54}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<method = gemm, rows = 6, vectors = 4, block = 50, columns = 64, packs = true>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{method 'gemm' cannot cut this kernel with 'vectors' = 5 and what else its schedule says; it would take 4}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<method = gemm, rows = 6, vectors = 5, block = 54, columns = 80, packs = true>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// For CUDA there are tiles that fit, and no others near them.
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_80"}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{method 'simt' cannot cut this kernel with 'block_m' = 48 and what else its schedule says; it would take }}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<block_m = 48>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// What is asked for beside nothing else is a wish; that it cannot be had is said.
module attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-warning@+1 {{method 'gemm' cuts this kernel with 'block' = 64 instead of 4096}}
    %y = tandem.kernel "y" (%x0, %x1) {
    ^bb0(%a0: tensor<64x64xf32>, %a1: tensor<64x64xf32>):
      %0 = tandem.matmul %a0, %a1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } {schedule = #tandem.schedule<block = 4096>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// No 13 parts are equal: 24 tiles of k in parts of 2 are 12.
module @parts13 attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x1536xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<1536x64xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xbf16> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{method 'mma' cannot cut this kernel with 'splits' = 13 and what else its schedule says}}
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<64x1536xbf16>, %b: tensor<1536x64xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x1536xbf16>, tensor<1536x64xbf16> -> tensor<64x64xbf16>
      tandem.yield %0 : tensor<64x64xbf16>
    } {schedule = #tandem.schedule<splits = 13>} : (tensor<64x1536xbf16>, tensor<1536x64xbf16>) -> tensor<64x64xbf16>
    return %y : tensor<64x64xbf16>
  }
}

// -----

// A part is a k of 128 at the least, which is 2 tiles.
module @parts24 attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x1536xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<1536x64xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xbf16> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{method 'mma' cannot cut this kernel with 'splits' = 24 and what else its schedule says}}
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<64x1536xbf16>, %b: tensor<1536x64xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x1536xbf16>, tensor<1536x64xbf16> -> tensor<64x64xbf16>
      tandem.yield %0 : tensor<64x64xbf16>
    } {schedule = #tandem.schedule<splits = 24>} : (tensor<64x1536xbf16>, tensor<1536x64xbf16>) -> tensor<64x64xbf16>
    return %y : tensor<64x64xbf16>
  }
}
