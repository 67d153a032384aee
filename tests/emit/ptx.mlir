// The PTX of kernels that were lowered: header, sizes of blocks, fused multiply
// and add, correct rounding, the three kinds of shared memory.
// RUN: tandem compile %s --cubin=no -o %t.tdm
// RUN: tandem inspect %t.tdm --ptx | FileCheck %s

// CHECK: .version 8.0
// CHECK-NEXT: .target sm_90
// CHECK-NEXT: .address_size 64
module @small attributes {tandem.phase = "lower",
                          tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(
      %x: tensor<512xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<512xf32> {tandem.role = #tandem.role<output "y">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 2048, peak_bytes = 2048,
                                             lower_bound_bytes = 2048>} {
    %0 = tandem.launch @cuda::@scale(%x) {buffers = [#tandem.buffer<arena 0>],
        work = 2, grain = 1, grid = array<i64: 2, 1, 1>}
        : (tensor<512xf32>) -> tensor<512xf32>
    %1 = tandem.launch @cuda::@shared(%0) {buffers = [#tandem.buffer<result 0>],
        work = 2, grain = 1, grid = array<i64: 2, 1, 1>}
        : (tensor<512xf32>) -> tensor<512xf32>
    return %1 : tensor<512xf32>
  }
  gpu.module @cuda {
    // CHECK: .visible .entry scale(
    // CHECK: .reqntid 256, 1, 1
    // CHECK-NOT: .ftz
    // CHECK-NOT: fma
    // CHECK: mul.rn.f32
    // CHECK: add.rn.f32
    // CHECK: sqrt.rn.f32
    // CHECK: div.rn.f32
    llvm.func @scale(
        %a: !llvm.ptr {llvm.noalias, llvm.readonly, llvm.align = 64 : i64},
        %b: !llvm.ptr {llvm.noalias, llvm.align = 64 : i64})
        attributes {nvvm.kernel, tandem.kernel = #tandem.kernel_facts<
            type = (tensor<512xf32>) -> tensor<512xf32>, items = 2,
            blocks = [2, 1, 1], kind = "pointwise", ops = ["tandem.mul"], flops = 512, bytes = 4096,
            scratch_bytes = 0, block = [256, 1, 1],
            shared_bytes = 0>} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %w = nvvm.read.ptx.sreg.ctaid.x : i32
      %n = llvm.mlir.constant(256 : i32) : i32
      %k = llvm.mul %w, %n : i32
      %i = llvm.add %k, %t : i32
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %m = llvm.fmul %v, %v : f32
      %s = llvm.fadd %m, %v : f32
      %r = llvm.intr.sqrt(%s) : (f32) -> f32
      %d = llvm.fdiv %r, %v : f32
      llvm.store %d, %q : f32, !llvm.ptr
      llvm.return
    }
    llvm.mlir.global internal @buffer() {addr_space = 3 : i32}
        : !llvm.array<256 x f32>
    llvm.mlir.global internal @given() {addr_space = 3 : i32}
        : !llvm.array<0 x i8>
    llvm.func internal @helper(%x: f32) -> f32 attributes {no_inline} {
      %y = llvm.fadd %x, %x : f32
      llvm.return %y : f32
    }
    llvm.func @shared(%a: !llvm.ptr, %b: !llvm.ptr)
        attributes {nvvm.kernel, tandem.kernel = #tandem.kernel_facts<
            type = (tensor<512xf32>) -> tensor<512xf32>, items = 2,
            blocks = [2, 1, 1], kind = "pointwise", ops = ["tandem.add"], flops = 512, bytes = 4096,
            scratch_bytes = 0, block = [256, 1, 1],
            shared_bytes = 1024>} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %w = nvvm.read.ptx.sreg.ctaid.x : i32
      %n = llvm.mlir.constant(256 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %k = llvm.mul %w, %n : i32
      %i = llvm.add %k, %t : i32
      %o = llvm.xor %t, %one : i32
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %h = llvm.call @helper(%v) : (f32) -> f32
      %buffer = llvm.mlir.addressof @buffer : !llvm.ptr<3>
      %given = llvm.mlir.addressof @given : !llvm.ptr<3>
      %s0 = llvm.getelementptr %buffer[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %s1 = llvm.getelementptr %given[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %v, %s0 : f32, !llvm.ptr<3>
      llvm.store %h, %s1 : f32, !llvm.ptr<3>
      nvvm.barrier0
      %o0 = llvm.getelementptr %buffer[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %o1 = llvm.getelementptr %given[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %r0 = llvm.load %o0 : !llvm.ptr<3> -> f32
      %r1 = llvm.load %o1 : !llvm.ptr<3> -> f32
      %r = llvm.fadd %r0, %r1 : f32
      llvm.store %r, %q : f32, !llvm.ptr
      llvm.return
    }
  }
}
