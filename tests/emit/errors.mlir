// What kernels for a GPU cannot have is said at the op's place, all at once,
// before the backend ends the process or ptxas refuses the text.
// RUN: split-file %s %t
// RUN: not tandem compile %t/calls.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=CALLS
// RUN: not tandem compile %t/intrinsics.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=INTRINSICS
// RUN: not tandem compile %t/shared.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not tandem compile %t/block.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not tandem compile %t/given.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: not tandem compile %t/name.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tandem compile %t/none.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tandem compile %t/arch.mlir -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not tandem compile %t/shared.mlir --target=cuda:sm_80 -o %t/x.tdm 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not ls %t/x.tdm

//--- calls.mlir
// CALLS: calls.mlir:20:12: error: unsupported on 'cuda': kernel 'k' ('tandem.tanh', 'tandem.add') calls '__nv_tanhf', which no library gives
// CALLS: calls.mlir:21:12: error: unsupported on 'cuda': kernel 'k' ('tandem.tanh', 'tandem.add') calls 'malloc'
// CALLS: kernels cannot be compiled for 'cuda'
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.func @__nv_tanhf(f32) -> f32
    llvm.func @malloc(i64) -> !llvm.ptr
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.tanh", "tandem.add"],
                         block = [32, 1, 1]>} {
      %n = llvm.mlir.constant(16 : i64) : i64
      %v = llvm.load %a : !llvm.ptr -> f32
      %y = llvm.call @__nv_tanhf(%v) : (f32) -> f32
      %p = llvm.call @malloc(%n) : (i64) -> !llvm.ptr
      llvm.store %y, %b : f32, !llvm.ptr
      llvm.store %y, %p : f32, !llvm.ptr
      llvm.return
    }
  }
}

//--- intrinsics.mlir
// INTRINSICS: 'k' uses 'llvm.sin.f32', for which a GPU has no instruction; 'k' uses 'llvm.exp2.f64', for which
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.sin"],
                         block = [32, 1, 1]>} {
      %v = llvm.load %a : !llvm.ptr -> f32
      %y = llvm.intr.sin(%v) : (f32) -> f32
      %w = llvm.fpext %y : f32 to f64
      %z = llvm.intr.exp2(%w) : (f64) -> f64
      llvm.store %z, %b : f64, !llvm.ptr
      llvm.return
    }
  }
}

//--- shared.mlir
// SHARED: 'k' declares 65536 bytes of shared memory, but a kernel can declare 49152 at most
// LATE: --target=cuda:sm_80 comes too late for a module at 'lower'
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.mlir.global internal @one() {addr_space = 3 : i32} : !llvm.array<8192 x f32>
    llvm.mlir.global internal @two() {addr_space = 3 : i32} : !llvm.array<8192 x f32>
    llvm.func internal @part(%t: i32) -> f32 attributes {no_inline} {
      %two = llvm.mlir.addressof @two : !llvm.ptr<3>
      %q = llvm.getelementptr %two[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %v = llvm.load %q : !llvm.ptr<3> -> f32
      llvm.store %v, %two : f32, !llvm.ptr<3>
      llvm.return %v : f32
    }
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1]>} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %one = llvm.mlir.addressof @one : !llvm.ptr<3>
      %p = llvm.getelementptr %one[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %v = llvm.load %a : !llvm.ptr -> f32
      llvm.store %v, %p : f32, !llvm.ptr<3>
      nvvm.barrier0
      %w = llvm.load %one : !llvm.ptr<3> -> f32
      %u = llvm.call @part(%t) : (i32) -> f32
      %s = llvm.fadd %w, %u : f32
      llvm.store %s, %b : f32, !llvm.ptr
      llvm.return
    }
  }
}

//--- block.mlir
// BLOCK: expected the kernel 'k' to have a 'block' of three sizes, 1 to 1024 in all
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [1024, -2, 1]>} {
      llvm.return
    }
  }
}

//--- given.mlir
// GIVEN: given.mlir:11:5: error: unsupported on 'cuda': kernel 'k' takes 110000 bytes of shared memory, but a block can have 101376 on 'sm_86'
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_86"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 110000>} {
      llvm.return
    }
  }
}

//--- name.mlir
// NAME: name.mlir:10:22: error: unsupported on 'cuda': the kernel's name 'a.b' is no identifier of PTX
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@a.b(%x) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  gpu.module @cuda { llvm.func @a.b(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1]>} {
      llvm.return
    }
  }
}

//--- none.mlir
// NONE: the lowered module has no kernels for 'cuda'
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">}) {
    return
  }
}

//--- arch.mlir
// ARCH: 'tandem.target': expected the architecture for 'cuda' to be one of sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103, sm_103a, sm_120, sm_120a, but got 'sm_1'
module @m attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_1"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">}) {
    return
  }
}
