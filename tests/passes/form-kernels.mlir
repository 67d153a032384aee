// RUN: tandem-opt %s -split-input-file -tandem-form-kernels | FileCheck %s

// Pointwise ops behind a product are its kernel's.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "matmul_relu"(%arg0)
// CHECK: tandem.matmul
// CHECK: tandem.relu
// CHECK-NOT: tandem.kernel
// CHECK: return
func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
  %p = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %y = tandem.relu %p : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A gradient that waits for the norm of itself is written: the kernel of the sum
// squares it. (The product wrote the squares beside it, which cost mlp 5 % of a
// step with --clip=norm.)
// CHECK-LABEL: func.func @update
// CHECK: tandem.kernel "matmul"(%arg0)
// CHECK: tandem.kernel "{{.*}}reduce_sum{{.*}}"
// CHECK: tandem.mul
// CHECK: tandem.reduce_sum
// CHECK: return
func.func @update(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}) {
  %g = tandem.matmul %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %q = tandem.mul %g, %g : tensor<64x64xf32>
  %s = tandem.reduce_sum %q over [0, 1] : tensor<64x64xf32> -> tensor<f32>
  %n = tandem.sqrt %s : tensor<f32>
  %b = tandem.broadcast %n to [64, 64] along [] : tensor<f32> -> tensor<64x64xf32>
  %y = tandem.mul %g, %b : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// The same, where nobody waits: the product squares its sums, and writes nothing
// else.
// CHECK-LABEL: func.func @squares
// CHECK: tandem.kernel "matmul_mul"(%arg0)
// CHECK: return
func.func @squares(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
  %g = tandem.matmul %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %q = tandem.mul %g, %g : tensor<64x64xf32>
  %s = tandem.reduce_sum %q over [0, 1] : tensor<64x64xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// A piece of what is concatenated of many that is computed is not computed for
// every row of the whole; all pieces are then read by one pointer. (LLVM did
// not come to an end with conditions for each of fifty.)
// CHECK-LABEL: func.func @forward
// CHECK: tandem.kernel "exp"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: tandem.exp
// CHECK-NEXT: tandem.yield
// CHECK: tandem.kernel
// CHECK-NOT: tandem.exp
// CHECK-COUNT-5: tandem.select
// CHECK-NOT: tandem.kernel
// CHECK: return
func.func @forward(%x0: tensor<1x64xf32> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<1x64xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<1x64xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<1x64xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<1x64xf32> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<1x64xf32> {tandem.role = #tandem.role<input "x5">}) -> (tensor<6x64xf32> {tandem.role = #tandem.role<output "y">}) {
  %e = tandem.exp %x5 : tensor<1x64xf32>
  %i = tandem.iota dim 0 : tensor<6x64xi32>
  %p0 = tandem.pad %x0 low [0, 0] high [5, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %p1 = tandem.pad %x1 low [1, 0] high [4, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %p2 = tandem.pad %x2 low [2, 0] high [3, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %p3 = tandem.pad %x3 low [3, 0] high [2, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %p4 = tandem.pad %x4 low [4, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %p5 = tandem.pad %e low [5, 0] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
  %c1 = tandem.constant dense<1> : tensor<6x64xi32>
  %b1 = tandem.compare lt %i, %c1 : tensor<6x64xi32>
  %s1 = tandem.select %b1, %p0, %p1 : tensor<6x64xi1>, tensor<6x64xf32>
  %c2 = tandem.constant dense<2> : tensor<6x64xi32>
  %b2 = tandem.compare lt %i, %c2 : tensor<6x64xi32>
  %s2 = tandem.select %b2, %s1, %p2 : tensor<6x64xi1>, tensor<6x64xf32>
  %c3 = tandem.constant dense<3> : tensor<6x64xi32>
  %b3 = tandem.compare lt %i, %c3 : tensor<6x64xi32>
  %s3 = tandem.select %b3, %s2, %p3 : tensor<6x64xi1>, tensor<6x64xf32>
  %c4 = tandem.constant dense<4> : tensor<6x64xi32>
  %b4 = tandem.compare lt %i, %c4 : tensor<6x64xi32>
  %s4 = tandem.select %b4, %s3, %p4 : tensor<6x64xi1>, tensor<6x64xf32>
  %c5 = tandem.constant dense<5> : tensor<6x64xi32>
  %b5 = tandem.compare lt %i, %c5 : tensor<6x64xi32>
  %s5 = tandem.select %b5, %s4, %p5 : tensor<6x64xi1>, tensor<6x64xf32>
  return %s5 : tensor<6x64xf32>
}

// -----

// A cheap function is repeated where it is used; but what the forward makes
// narrower for the backward is kept narrow. (A step kept tensors of f32, to
// round them to f8 in the backward: 71 MiB in place of 24.)
// CHECK-LABEL: func.func @step
// CHECK: %[[N:.*]]:2 = tandem.kernel {{.*}}(%arg0) {
// CHECK: %[[E:.*]] = tandem.exp
// CHECK: %[[B:.*]] = tandem.cast %[[E]]
// CHECK: tandem.yield {{.*}} : {{.*}}tensor<4x4xf8E4M3FN>
// CHECK: tandem.kernel "cast"(%[[N]]#0)
// CHECK-NOT: tandem.exp
// CHECK: return
func.func @step(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}, tensor<4x4xf32> {tandem.role = #tandem.role<output "z">}) {
  %e = tandem.exp %x {tandem.pass = "forward"} : tensor<4x4xf32>
  %b = tandem.cast %e {tandem.pass = "forward"} : tensor<4x4xf32> to tensor<4x4xf8E4M3FN>
  %f = tandem.cast %b {tandem.pass = "forward"} : tensor<4x4xf8E4M3FN> to tensor<4x4xf32>
  %y = tandem.matmul %f, %f {tandem.pass = "forward"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %g = tandem.cast %b {tandem.pass = "backward"} : tensor<4x4xf8E4M3FN> to tensor<4x4xf32>
  %z = tandem.matmul %g, %y {tandem.pass = "backward"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Three loops read two tensors: those of x become one, and it is this one that
// the other reader of d is joined to. (A layer norm's gradient left the sum of
// what it reads to a second kernel, which read it again.)
// CHECK-LABEL: func.func @evaluate
// CHECK-COUNT-1: tandem.kernel
// CHECK: tandem.yield %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} : tensor<256x64xf32>, tensor<256xf32>, tensor<16x64xf32>
// CHECK-NOT: tandem.kernel
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<256x64xf32> {tandem.role = #tandem.role<input "x">}, %d: tensor<256x64xf32> {tandem.role = #tandem.role<input "d">}) -> (tensor<256x64xf32> {tandem.role = #tandem.role<output "e">}, tensor<256xf32> {tandem.role = #tandem.role<output "r">}, tensor<16x64xf32> {tandem.role = #tandem.role<output "s">}) {
    %e = tandem.exp %x : tensor<256x64xf32>
    %m = tandem.mul %x, %d : tensor<256x64xf32>
    %r = tandem.reduce_sum %m over [1] : tensor<256x64xf32> -> tensor<256xf32>
    %p = tandem.reshape %d to [16, 16, 64] : tensor<256x64xf32> -> tensor<16x16x64xf32>
    %s = tandem.reduce_sum %p over [1] : tensor<16x16x64xf32> -> tensor<16x64xf32>
    return %e, %r, %s : tensor<256x64xf32>, tensor<256xf32>, tensor<16x64xf32>
  }
}

// -----

// What is made of a tensor alone that a product's epilogue reads, by other
// views, is made there, once. (Gelu, which a weight's gradient reads, was made
// again by a kernel that read its input again.)
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel {{.*}}(%arg0, %arg1) {
// CHECK-DAG: tandem.matmul
// CHECK-DAG: tandem.tanh
// CHECK: tandem.yield %{{[0-9]+}}, %{{[0-9]+}} : tensor<2x32x64xf32>, tensor<64x64xf32>
// CHECK-NOT: tandem.tanh
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x64xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<2x32x64xf32> {tandem.role = #tandem.role<output "y">}, tensor<64x64xf32> {tandem.role = #tandem.role<output "z">}) {
    %r = tandem.reshape %x to [2, 32, 64] : tensor<64x64xf32> -> tensor<2x32x64xf32>
    %t = tandem.tanh %r : tensor<2x32x64xf32>
    %y = tandem.mul %t, %r : tensor<2x32x64xf32>
    %p = tandem.matmul %w, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %u = tandem.tanh %x : tensor<64x64xf32>
    %z = tandem.mul %p, %u : tensor<64x64xf32>
    return %y, %z : tensor<2x32x64xf32>, tensor<64x64xf32>
  }
}

// -----

// Where it reads more than the epilogue it is a kernel of its own.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "mul"(%arg0, %arg1)
// CHECK: tandem.kernel "matmul_mul"
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x64xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}, tensor<64x64xf32> {tandem.role = #tandem.role<output "z">}) {
    %y = tandem.mul %x, %w : tensor<64x64xf32>
    %p = tandem.matmul %w, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %z = tandem.mul %p, %x : tensor<64x64xf32>
    return %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
  }
}

// -----

// And where it reads its elements at other places.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel {{.*}}(%arg0)
// CHECK: tandem.kernel "matmul_mul"
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x64xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<64x64xf32> {tandem.role = #tandem.role<output "y">}, tensor<64x64xf32> {tandem.role = #tandem.role<output "z">}) {
    %s = tandem.slice %x from [1, 0] to [64, 64] step [1, 1] : tensor<64x64xf32> -> tensor<63x64xf32>
    %d = tandem.pad %s low [0, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<63x64xf32> -> tensor<64x64xf32>
    %y = tandem.tanh %d : tensor<64x64xf32>
    %p = tandem.matmul %w, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %z = tandem.mul %p, %x : tensor<64x64xf32>
    return %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
  }
}

// -----

// A product adds up rows of its tiles where a bias' gradient follows from what
// it stores. (A kernel of its own read that again.)
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel {{.*}}(%arg0, %arg1) {
// CHECK-DAG: tandem.matmul
// CHECK-DAG: tandem.reduce_sum
// CHECK: tandem.yield %{{[0-9]+}}, %{{[0-9]+}} : tensor<256x256xbf16>, tensor<4x256xf32>
// CHECK-NOT: tandem.kernel
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<256x64xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x256xbf16> {tandem.role = #tandem.role<input "w">}) -> (tensor<256x256xbf16> {tandem.role = #tandem.role<output "y">}, tensor<4x256xf32> {tandem.role = #tandem.role<output "s">}) {
    %y = tandem.matmul %x, %w : tensor<256x64xbf16>, tensor<64x256xbf16> -> tensor<256x256xbf16>
    %f = tandem.cast %y : tensor<256x256xbf16> to tensor<256x256xf32>
    %r = tandem.reshape %f to [4, 64, 256] : tensor<256x256xf32> -> tensor<4x64x256xf32>
    %s = tandem.reduce_sum %r over [1] : tensor<4x64x256xf32> -> tensor<4x256xf32>
    return %y, %s : tensor<256x256xbf16>, tensor<4x256xf32>
  }
}

// -----

// Of another type, of a batch, and of other columns than its own it adds up
// nothing: these are no rows of its tiles.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.matmul
// CHECK-NOT: tandem.reduce_sum
// CHECK: tandem.kernel
// CHECK: tandem.reduce_sum
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<256x64xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x256xf32> {tandem.role = #tandem.role<input "w">}, %z: tensor<256x256xf32> {tandem.role = #tandem.role<input "z">}) -> (tensor<4x256xf32> {tandem.role = #tandem.role<output "s">}) {
    %y = tandem.matmul %x, %w : tensor<256x64xf32>, tensor<64x256xf32> -> tensor<256x256xf32>
    %m = tandem.mul %y, %z : tensor<256x256xf32>
    %r = tandem.reshape %m to [4, 64, 256] : tensor<256x256xf32> -> tensor<4x64x256xf32>
    %s = tandem.reduce_sum %r over [1] : tensor<4x64x256xf32> -> tensor<4x256xf32>
    return %s : tensor<4x256xf32>
  }
}

// -----

// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.matmul
// CHECK-NOT: tandem.reduce_sum
// CHECK: tandem.kernel
// CHECK: tandem.reduce_sum
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<4x64x64xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<4x64x256xbf16> {tandem.role = #tandem.role<input "w">}, %z: tensor<4x64x256xbf16> {tandem.role = #tandem.role<input "z">}) -> (tensor<4x256xf32> {tandem.role = #tandem.role<output "s">}) {
    %y = tandem.matmul %x, %w : tensor<4x64x64xbf16>, tensor<4x64x256xbf16> -> tensor<4x64x256xbf16>
    %m = tandem.mul %y, %z : tensor<4x64x256xbf16>
    %r = tandem.cast %m : tensor<4x64x256xbf16> to tensor<4x64x256xf32>
    %s = tandem.reduce_sum %r over [1] : tensor<4x64x256xf32> -> tensor<4x256xf32>
    return %s : tensor<4x256xf32>
  }
}

// -----

// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.matmul
// CHECK-NOT: tandem.reduce_sum
// CHECK: tandem.kernel
// CHECK: tandem.reduce_sum
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90a"}>} {
  func.func @evaluate(%x: tensor<256x64xbf16> {tandem.role = #tandem.role<input "x">}, %w: tensor<64x512xbf16> {tandem.role = #tandem.role<input "w">}, %z: tensor<256x512xbf16> {tandem.role = #tandem.role<input "z">}) -> (tensor<8x256xf32> {tandem.role = #tandem.role<output "s">}) {
    %y = tandem.matmul %x, %w : tensor<256x64xbf16>, tensor<64x512xbf16> -> tensor<256x512xbf16>
    %m = tandem.mul %y, %z : tensor<256x512xbf16>
    %f = tandem.cast %m : tensor<256x512xbf16> to tensor<256x512xf32>
    %r = tandem.reshape %f to [8, 64, 256] : tensor<256x512xf32> -> tensor<8x64x256xf32>
    %s = tandem.reduce_sum %r over [1] : tensor<8x64x256xf32> -> tensor<8x256xf32>
    return %s : tensor<8x256xf32>
  }
}

// -----

// Of many sines each kernel has 16: machine code of one took a time that grows
// with the square of their number.
// CHECK-LABEL: func.func @sines
// CHECK-COUNT-1: tandem.sin
// CHECK: tandem.yield
// CHECK: tandem.kernel
// CHECK-COUNT-16: tandem.sin
// CHECK-NOT: tandem.sin
// CHECK: return
func.func @sines(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
  %0 = tandem.sin %x : tensor<8xf32>
  %1 = tandem.sin %0 : tensor<8xf32>
  %2 = tandem.sin %1 : tensor<8xf32>
  %3 = tandem.sin %2 : tensor<8xf32>
  %4 = tandem.sin %3 : tensor<8xf32>
  %5 = tandem.sin %4 : tensor<8xf32>
  %6 = tandem.sin %5 : tensor<8xf32>
  %7 = tandem.sin %6 : tensor<8xf32>
  %8 = tandem.sin %7 : tensor<8xf32>
  %9 = tandem.sin %8 : tensor<8xf32>
  %10 = tandem.sin %9 : tensor<8xf32>
  %11 = tandem.sin %10 : tensor<8xf32>
  %12 = tandem.sin %11 : tensor<8xf32>
  %13 = tandem.sin %12 : tensor<8xf32>
  %14 = tandem.sin %13 : tensor<8xf32>
  %15 = tandem.sin %14 : tensor<8xf32>
  %16 = tandem.sin %15 : tensor<8xf32>
  return %16 : tensor<8xf32>
}
