// RUN: tandem-opt %s --split-input-file --tandem-plan-programs | FileCheck %s

// What a library can be told, and what not; where it is not asked for.

module attributes {tandem.phase = "partition",
    tandem.target = #tandem.target<cuda {arch = "sm_90", libraries = "yes"}>} {
  // CHECK-LABEL: @evaluate
  // CHECK: library = #tandem.library_call<op = "matmul", dtype = f32, relu = true, operands = {{\[}}[[L:[0-9]]], [[R:[0-9]]], 3, [[B:[0-9]]]], sizes = [1, 5, 7, 6], lds = [6, 6, 7], batch_strides = [0, 0, 0], transposes = [0, 1]>
  func.func @evaluate(%a: tensor<5x6xf32> {tandem.role = #tandem.role<input "a">},
      %b: tensor<7x6xf32> {tandem.role = #tandem.role<input "b">},
      %c: tensor<7xf32> {tandem.role = #tandem.role<input "c">})
      -> (tensor<5x7xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %a, %b {transpose_rhs} : tensor<5x6xf32>, tensor<7x6xf32> -> tensor<5x7xf32>
    %v = tandem.broadcast %c to [5, 7] along [1] : tensor<7xf32> -> tensor<5x7xf32>
    %s = tandem.add %p, %v : tensor<5x7xf32>
    %y = tandem.relu %s : tensor<5x7xf32>
    return %y : tensor<5x7xf32>
  }

  // A bias along the rows; another function; a sum that is no bias.
  // CHECK-LABEL: @update
  // CHECK-NOT: tandem.library_call
  func.func @update(%a: tensor<5x6xf32> {tandem.role = #tandem.role<input "a">},
      %b: tensor<6x7xf32> {tandem.role = #tandem.role<input "b">},
      %c: tensor<5xf32> {tandem.role = #tandem.role<input "c">},
      %d: tensor<5x7xf32> {tandem.role = #tandem.role<input "d">})
      -> (tensor<5x7xf32> {tandem.role = #tandem.role<output "y">},
          tensor<5x7xf32> {tandem.role = #tandem.role<output "z">},
          tensor<5x7xf32> {tandem.role = #tandem.role<output "u">}) {
    %p = tandem.matmul %a, %b : tensor<5x6xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %v = tandem.broadcast %c to [5, 7] along [0] : tensor<5xf32> -> tensor<5x7xf32>
    %y = tandem.add %p, %v : tensor<5x7xf32>
    %e = tandem.neg %a : tensor<5x6xf32>
    %q = tandem.matmul %a, %b : tensor<5x6xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %z = tandem.tanh %q : tensor<5x7xf32>
    %r = tandem.matmul %a, %b : tensor<5x6xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %u = tandem.add %r, %d : tensor<5x7xf32>
    return %y, %z, %u : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>
  }

  // A library adds a bias of bf16 to the sums in f32, before the product was
  // rounded to its type.
  // CHECK-LABEL: @step
  // CHECK-NOT: tandem.library_call
  func.func @step(%a: tensor<8x16xbf16> {tandem.role = #tandem.role<input "a">},
      %b: tensor<8x16xbf16> {tandem.role = #tandem.role<input "b">},
      %c: tensor<8xbf16> {tandem.role = #tandem.role<input "c">})
      -> (tensor<8x8xbf16> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %a, %b {transpose_rhs} : tensor<8x16xbf16>, tensor<8x16xbf16> -> tensor<8x8xbf16>
    %v = tandem.broadcast %c to [8, 8] along [1] : tensor<8xbf16> -> tensor<8x8xbf16>
    %y = tandem.add %p, %v : tensor<8x8xbf16>
    return %y : tensor<8x8xbf16>
  }
}

// -----

// A long sum over few elements has a workspace in the arena.
module attributes {tandem.phase = "partition",
    tandem.target = #tandem.target<cuda {arch = "sm_90", libraries = "yes"}>} {
  // CHECK-LABEL: @evaluate
  // CHECK-SAME: arena_bytes = [[BYTES:[1-9][0-9]+]],
  // CHECK: library = #tandem.library_call<{{.*}}workspace_bytes = [[BYTES]], workspace = 0>
  func.func @evaluate(%a: tensor<64x4096xf32> {tandem.role = #tandem.role<input "a">},
      %b: tensor<64x4096xf32> {tandem.role = #tandem.role<input "b">})
      -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %a, %b {transpose_rhs} : tensor<64x4096xf32>, tensor<64x4096xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// By the table: large products of half precision on sm_90.
module attributes {tandem.phase = "partition",
    tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  // CHECK-LABEL: @evaluate
  // CHECK: library = #tandem.library_call<{{.*}}dtype = bf16
  func.func @evaluate(%a: tensor<4096x1024xbf16> {tandem.role = #tandem.role<input "a">},
      %b: tensor<4096x1024xbf16> {tandem.role = #tandem.role<input "b">})
      -> (tensor<4096x4096xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %a, %b {transpose_rhs} : tensor<4096x1024xbf16>, tensor<4096x1024xbf16> -> tensor<4096x4096xbf16>
    return %y : tensor<4096x4096xbf16>
  }
  // CHECK-LABEL: @update
  // CHECK-NOT: tandem.library_call
  func.func @update(%a: tensor<64x64xbf16> {tandem.role = #tandem.role<input "a">},
      %b: tensor<64x64xbf16> {tandem.role = #tandem.role<input "b">})
      -> (tensor<64x64xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %a, %b : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    return %y : tensor<64x64xbf16>
  }
}

// -----

module attributes {tandem.phase = "partition",
    tandem.target = #tandem.target<cuda {arch = "sm_90", libraries = "no"}>} {
  // CHECK-LABEL: @evaluate
  // CHECK-NOT: tandem.library_call
  func.func @evaluate(%a: tensor<4096x1024xbf16> {tandem.role = #tandem.role<input "a">},
      %b: tensor<4096x1024xbf16> {tandem.role = #tandem.role<input "b">})
      -> (tensor<4096x4096xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %a, %b {transpose_rhs} : tensor<4096x1024xbf16>, tensor<4096x1024xbf16> -> tensor<4096x4096xbf16>
    return %y : tensor<4096x4096xbf16>
  }
}
