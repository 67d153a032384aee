// RUN: tandem-opt %s -split-input-file -tandem-choose-methods | FileCheck %s
// RUN: tandem-opt %s -split-input-file -tandem-choose-methods -tandem-plan-memory -tandem-report-plan | FileCheck %s --check-prefix=STEP

// A product packs panels; what is pointwise needs no memory of its own. The
// step needs what the kernel with the most does.
// CHECK-LABEL: module @cpu
// STEP: module @cpu attributes {tandem.step_memory = {{{.*}}scratch = [[BYTES:[1-9][0-9]*]] : i64
module @cpu attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<64x300xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<300x200xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x200xf32> {tandem.role = #tandem.role<output "y">}, tensor<64x300xf32> {tandem.role = #tandem.role<output "z">}) {
    // CHECK: schedule = #tandem.schedule<chosen(method = gemm, rows = {{[0-9]+}}, vectors = {{[0-9]+}}, block = {{[0-9]+}}, columns = {{[0-9]+}}, packs = {{true|false}})>, scratch_bytes = {{[1-9][0-9]*}} : i64}
    // STEP: schedule = #tandem.schedule<chosen(method = gemm, {{.*}})>, scratch_bytes = [[BYTES]] : i64}
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<64x300xf32>, %b: tensor<300x200xf32>):
      %0 = tandem.matmul %a, %b : tensor<64x300xf32>, tensor<300x200xf32> -> tensor<64x200xf32>
      tandem.yield %0 : tensor<64x200xf32>
    } : (tensor<64x300xf32>, tensor<300x200xf32>) -> tensor<64x200xf32>
    // CHECK: schedule = #tandem.schedule<chosen(method = pointwise, vectors = {{[0-9]+}}, block = 4096)>, scratch_bytes = 0 : i64}
    %z = tandem.kernel "z" (%x) {
    ^bb0(%a: tensor<64x300xf32>):
      %0 = tandem.exp %a : tensor<64x300xf32>
      tandem.yield %0 : tensor<64x300xf32>
    } : (tensor<64x300xf32>) -> tensor<64x300xf32>
    return %y, %z : tensor<64x200xf32>, tensor<64x300xf32>
  }
}

// -----

// What a schedule says stays, and scratch is that of what it says.
// CHECK-LABEL: module @asked
module @asked attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<4x1024xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<96x1024xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<4x96xf32> {tandem.role = #tandem.role<output "y">}, tensor<4x96xf32> {tandem.role = #tandem.role<output "z">}) {
    // CHECK: schedule = #tandem.schedule<chosen(method = dots, columns = 48)>, scratch_bytes = 768 : i64}
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<4x1024xf32>, %b: tensor<96x1024xf32>):
      %0 = tandem.matmul %a, %b {transpose_rhs} : tensor<4x1024xf32>, tensor<96x1024xf32> -> tensor<4x96xf32>
      tandem.yield %0 : tensor<4x96xf32>
    } : (tensor<4x1024xf32>, tensor<96x1024xf32>) -> tensor<4x96xf32>
    // CHECK: schedule = #tandem.schedule<method = gemm, rows = 4, chosen(vectors = {{[0-9]+}}, block = 4, columns = {{[0-9]+}}, packs = {{true|false}})>, scratch_bytes = {{[1-9][0-9]*}} : i64}
    %z = tandem.kernel "z" (%x, %w) {
    ^bb0(%a: tensor<4x1024xf32>, %b: tensor<96x1024xf32>):
      %0 = tandem.matmul %a, %b {transpose_rhs} : tensor<4x1024xf32>, tensor<96x1024xf32> -> tensor<4x96xf32>
      tandem.yield %0 : tensor<4x96xf32>
    } {schedule = #tandem.schedule<method = gemm, rows = 4>, scratch_bytes = 1 : i64} : (tensor<4x1024xf32>, tensor<96x1024xf32>) -> tensor<4x96xf32>
    return %y, %z : tensor<4x96xf32>, tensor<4x96xf32>
  }
}

// -----

// A loop has no method; its scratch is the memory of its body, of its carries
// and of the kernels in it.
// CHECK-LABEL: module @loop
// CHECK: } {scratch_bytes = {{[1-9][0-9]*}} : i64}
module @loop attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.kernel "y" (%x) {
    ^bb0(%a: tensor<64x64xf32>):
      %0 = tandem.scan 100 carries(%a) inputs() constants() {
      ^bb0(%c: tensor<64x64xf32>):
        %1 = tandem.matmul %c, %c : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
        %2 = tandem.tanh %1 : tensor<64x64xf32>
        tandem.yield %2 : tensor<64x64xf32>
      } : (tensor<64x64xf32>) -> tensor<64x64xf32>
      tandem.yield %0 : tensor<64x64xf32>
    } : (tensor<64x64xf32>) -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// Blocks that share a long sum keep their parts in scratch.
// CHECK-LABEL: module @cuda
// CHECK: schedule = #tandem.schedule<chosen(method = mma, block_m = {{[0-9]+}}, block_n = {{[0-9]+}}, block_k = {{[0-9]+}}, warps_m = {{[0-9]+}}, warps_n = {{[0-9]+}}, stages = 4, splits = {{[1-9][0-9]+}})>, scratch_bytes = {{[1-9][0-9]*}} : i64}
module @cuda attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x8192xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<8192x64xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<64x8192xbf16>, %b: tensor<8192x64xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x8192xbf16>, tensor<8192x64xbf16> -> tensor<64x64xbf16>
      tandem.yield %0 : tensor<64x64xbf16>
    } : (tensor<64x8192xbf16>, tensor<8192x64xbf16>) -> tensor<64x64xbf16>
    return %y : tensor<64x64xbf16>
  }
}

// -----

// Of any number of parts those that fill the machine: 72 tiles of 64 x 128 in 5
// parts are 360 blocks, and 132 multiprocessors have 396 at a time.
// CHECK-LABEL: module @waves
// CHECK: schedule = #tandem.schedule<chosen(method = mma, block_m = 64, block_n = 128, {{.*}} splits = 5)>, scratch_bytes = {{[1-9][0-9]*}} : i64}
module @waves attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<16384x768xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<16384x768xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<768x768xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<16384x768xbf16>, %b: tensor<16384x768xbf16>):
      %0 = tandem.matmul %a, %b {transpose_lhs} : tensor<16384x768xbf16>, tensor<16384x768xbf16> -> tensor<768x768xbf16>
      tandem.yield %0 : tensor<768x768xbf16>
    } : (tensor<16384x768xbf16>, tensor<16384x768xbf16>) -> tensor<768x768xbf16>
    return %y : tensor<768x768xbf16>
  }
}

// -----

// So many parts are asked for: 24 tiles of k in 12 parts, of a k of 128 each, are
// the most (choose-methods-errors.mlir).
// CHECK-LABEL: module @parts
// CHECK: schedule = #tandem.schedule<splits = 12, chosen(method = mma, {{.*}} block_k = 64, {{.*}})>
module @parts attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<64x1536xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<1536x64xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xbf16> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<64x1536xbf16>, %b: tensor<1536x64xbf16>):
      %0 = tandem.matmul %a, %b : tensor<64x1536xbf16>, tensor<1536x64xbf16> -> tensor<64x64xbf16>
      tandem.yield %0 : tensor<64x64xbf16>
    } {schedule = #tandem.schedule<splits = 12>} : (tensor<64x1536xbf16>, tensor<1536x64xbf16>) -> tensor<64x64xbf16>
    return %y : tensor<64x64xbf16>
  }
}

// -----

// Of few rows, panels of the right factor are read where they are, and each
// processor has as many: two of them 8 of 32 columns, not 3 of 48 and 3 of
// which one has 16.
// CHECK-LABEL: module @few
// CHECK: schedule = #tandem.schedule<chosen(method = gemm, rows = 8, vectors = 2, block = 32, columns = 32, packs = false)>
// CHECK: schedule = #tandem.schedule<chosen(method = gemm, {{.*}}packs = true)>
module @few attributes {tandem.target = #tandem.target<cpu {vector_bits = 512 : i64, processors = 2 : i64}>} {
  func.func @evaluate(%x: tensor<32x1024xf32> {tandem.role = #tandem.role<input "x">}, %u: tensor<48x1024xf32> {tandem.role = #tandem.role<input "u">}, %w: tensor<1024x256xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<32x256xf32> {tandem.role = #tandem.role<output "y">}, tensor<48x256xf32> {tandem.role = #tandem.role<output "z">}) {
    %y = tandem.kernel "y" (%x, %w) {
    ^bb0(%a: tensor<32x1024xf32>, %b: tensor<1024x256xf32>):
      %0 = tandem.matmul %a, %b : tensor<32x1024xf32>, tensor<1024x256xf32> -> tensor<32x256xf32>
      tandem.yield %0 : tensor<32x256xf32>
    } : (tensor<32x1024xf32>, tensor<1024x256xf32>) -> tensor<32x256xf32>
    %z = tandem.kernel "z" (%u, %w) {
    ^bb0(%a: tensor<48x1024xf32>, %b: tensor<1024x256xf32>):
      %0 = tandem.matmul %a, %b : tensor<48x1024xf32>, tensor<1024x256xf32> -> tensor<48x256xf32>
      tandem.yield %0 : tensor<48x256xf32>
    } : (tensor<48x1024xf32>, tensor<1024x256xf32>) -> tensor<48x256xf32>
    return %y, %z : tensor<32x256xf32>, tensor<48x256xf32>
  }
}
