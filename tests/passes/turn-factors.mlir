// RUN: tandem-opt %s --tandem-turn-factors --split-input-file | FileCheck %s
// RUN: tandem-opt %s --tandem-turn-factors --tandem-form-kernels --split-input-file | FileCheck %s --check-prefix=KERNELS

// The gradients of y = x w^T: dx = dy w and dw = dy^T x read w, x and dy along
// their lines. What both read is turned once; dy, which dx reads along k, stays
// beside it.
// CHECK-LABEL: module @gradients
// CHECK: [[W:%.*]] = tandem.permute %arg2 by [1, 0]
// CHECK: [[OF_W:%.*]] = tandem.cast [[W]] : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
// CHECK: tandem.matmul {{.*}}, [[OF_W]] {precision = "tf32", transpose_rhs}
// CHECK: [[DY:%.*]] = tandem.permute %arg0 by [1, 0]
// CHECK: [[OF_DY:%.*]] = tandem.cast [[DY]]
// CHECK: [[X:%.*]] = tandem.permute %arg1 by [1, 0]
// CHECK: [[OF_X:%.*]] = tandem.cast [[X]]
// CHECK: tandem.matmul [[OF_DY]], [[OF_X]] {precision = "tf32", transpose_rhs}
// CHECK-NOT: tandem.permute
// CHECK: [[AGAIN_DY:%.*]] = tandem.cast [[DY]]
// CHECK: [[AGAIN_X:%.*]] = tandem.cast [[X]]
// CHECK: tandem.matmul [[AGAIN_DY]], [[AGAIN_X]] {precision = "tf32", transpose_rhs}
// KERNELS-LABEL: module @gradients
// KERNELS-COUNT-3: tandem.kernel "permute"
module @gradients attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%dy: tensor<8192x4096xf8E5M2> {tandem.role = #tandem.role<input "dy">}, %x: tensor<8192x4096xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<4096x4096xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<8192x4096xf32> {tandem.role = #tandem.role<output "dx">}, tensor<4096x4096xf32> {tandem.role = #tandem.role<output "dw">}, tensor<4096x4096xf32> {tandem.role = #tandem.role<output "again">}) {
    %a = tandem.cast %dy : tensor<8192x4096xf8E5M2> to tensor<8192x4096xf32>
    %b = tandem.cast %x : tensor<8192x4096xf8E4M3FN> to tensor<8192x4096xf32>
    %c = tandem.cast %w : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
    %dx = tandem.matmul %a, %c {precision = "tf32"} : tensor<8192x4096xf32>, tensor<4096x4096xf32> -> tensor<8192x4096xf32>
    %dw = tandem.matmul %a, %b {precision = "tf32", transpose_lhs} : tensor<8192x4096xf32>, tensor<8192x4096xf32> -> tensor<4096x4096xf32>
    %again = tandem.matmul %a, %b {precision = "tf32", transpose_lhs} : tensor<8192x4096xf32>, tensor<8192x4096xf32> -> tensor<4096x4096xf32>
    return %dx, %dw, %again : tensor<8192x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>
  }
}

// -----

// mma.sync turns them on their way where that is all there is, rows are no
// pieces of 16 bytes, or little is gained.
// CHECK-LABEL: module @ada
// CHECK-NOT: tandem.permute
// KERNELS-LABEL: module @ada
module @ada attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<4096x4096xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<4096x4096xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<4096x4096xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
    %b = tandem.cast %w : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<4096x4096xf32>, tensor<4096x4096xf32> -> tensor<4096x4096xf32>
    return %y : tensor<4096x4096xf32>
  }
}

// -----

// CHECK-LABEL: module @odd
// CHECK-NOT: tandem.permute
// KERNELS-LABEL: module @odd
module @odd attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<4096x4104xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<4104x4096xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<4096x4096xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<4096x4104xf8E4M3FN> to tensor<4096x4104xf32>
    %b = tandem.cast %w : tensor<4104x4096xf8E4M3FN> to tensor<4104x4096xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<4096x4104xf32>, tensor<4104x4096xf32> -> tensor<4096x4096xf32>
    return %y : tensor<4096x4096xf32>
  }
}

// -----

// CHECK-LABEL: module @small
// CHECK-NOT: tandem.permute
// KERNELS-LABEL: module @small
module @small attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<64x64xf8E4M3FN> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x64xf8E4M3FN> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<64x64xf8E4M3FN> to tensor<64x64xf32>
    %b = tandem.cast %w : tensor<64x64xf8E4M3FN> to tensor<64x64xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// Who asks for it gets it, also of integers: a test's target.
// CHECK-LABEL: module @asked
// CHECK: tandem.permute %arg1 by [0, 2, 1]
// CHECK: tandem.matmul {{.*}} {transpose_rhs}
// KERNELS-LABEL: module @asked
module @asked attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>} {
  func.func @evaluate(%x: tensor<2x32x64xi8> {tandem.role = #tandem.role<input "x">}, %w: tensor<2x64x16xui8> {tandem.role = #tandem.role<input "w">}) -> (tensor<2x32x16xf32> {tandem.role = #tandem.role<output "y">}) {
    %a = tandem.cast %x : tensor<2x32x64xi8> to tensor<2x32x64xf32>
    %b = tandem.cast %w : tensor<2x64x16xui8> to tensor<2x64x16xf32>
    %y = tandem.matmul %a, %b : tensor<2x32x64xf32>, tensor<2x64x16xf32> -> tensor<2x32x16xf32>
    return %y : tensor<2x32x16xf32>
  }
}

// -----

// What quantizes stays a kernel that stores one order: the other one is turned.
// What is read in the other order alone is stored so.
// CHECK-LABEL: module @quantized
// KERNELS-LABEL: module @quantized
// KERNELS: tandem.kernel "cast"
// KERNELS: tandem.yield {{.*}} : tensor<4096x4096xf8E4M3FN>
// KERNELS: tandem.kernel "cast"
// KERNELS: tandem.permute
// KERNELS: tandem.yield {{.*}} : tensor<4096x4096xf8E4M3FN>
// KERNELS: tandem.kernel "cast_cast_matmul"
// KERNELS: tandem.kernel "permute"
// KERNELS: tandem.kernel "cast_cast_matmul"
module @quantized attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<4096x4096xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<4096x4096xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<4096x4096xf32> {tandem.role = #tandem.role<output "y">}, tensor<4096x4096xf32> {tandem.role = #tandem.role<output "z">}) {
    %q = tandem.cast %x : tensor<4096x4096xf32> to tensor<4096x4096xf8E4M3FN>
    %v = tandem.cast %w : tensor<4096x4096xf32> to tensor<4096x4096xf8E4M3FN>
    %a = tandem.cast %q : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
    %b = tandem.cast %v : tensor<4096x4096xf8E4M3FN> to tensor<4096x4096xf32>
    %y = tandem.matmul %a, %b {precision = "tf32"} : tensor<4096x4096xf32>, tensor<4096x4096xf32> -> tensor<4096x4096xf32>
    %z = tandem.matmul %a, %b {precision = "tf32", transpose_lhs} : tensor<4096x4096xf32>, tensor<4096x4096xf32> -> tensor<4096x4096xf32>
    return %y, %z : tensor<4096x4096xf32>, tensor<4096x4096xf32>
  }
}
