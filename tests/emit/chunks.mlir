// Kernels are compiled one by one and put into one text: one header, and what
// several kernels use is in each, under names of its own.
// RUN: tandem compile %s --cubin=no -o %t.tdm --threads=2
// RUN: tandem compile %s --cubin=no -o %t.1.tdm --threads=1
// RUN: cmp %t.tdm %t.1.tdm
// RUN: tandem inspect %t.tdm --ptx | FileCheck %s
// RUN: tandem inspect %t.tdm --ptx=k5 | FileCheck %s --check-prefix=ONE

// CHECK-COUNT-1: .version
// CHECK-NOT: .version
// CHECK-DAG: .extern .shared .align 128 .b8 k0$1[];
// CHECK-DAG: .func k0$2(
// CHECK-DAG: .visible .entry k0(
// CHECK-DAG: .visible .entry k3(
// CHECK-DAG: .extern .shared .align 128 .b8 k4$1[];
// CHECK-DAG: .func k4$2(
// CHECK-DAG: .visible .entry k4(
// CHECK-DAG: .visible .entry k5(

// ONE: .version
// ONE-NOT: .entry k4
// ONE: .entry k5
module @chunks attributes {tandem.phase = "lower", tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(%x: tensor<32xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<32xf32> {tandem.role = #tandem.role<output "y">})
      attributes {tandem.plan = #tandem.plan<arena_bytes = 256, peak_bytes = 256,
                                             lower_bound_bytes = 256>} {
    %0 = tandem.launch @cuda::@k0(%x) {buffers = [#tandem.buffer<arena 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    %1 = tandem.launch @cuda::@k1(%0) {buffers = [#tandem.buffer<arena 128>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    %2 = tandem.launch @cuda::@k2(%1) {buffers = [#tandem.buffer<arena 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    %3 = tandem.launch @cuda::@k3(%2) {buffers = [#tandem.buffer<arena 128>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    %4 = tandem.launch @cuda::@k4(%3) {buffers = [#tandem.buffer<arena 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    %5 = tandem.launch @cuda::@k5(%4) {buffers = [#tandem.buffer<result 0>],
        work = 1, grain = 1, grid = array<i64: 1, 1, 1>}
        : (tensor<32xf32>) -> tensor<32xf32>
    return %5 : tensor<32xf32>
  }
  gpu.module @cuda {
    llvm.mlir.global internal constant @table(dense<[3, 1, 2, 0, 5, 4]> : tensor<6xi32>)
        {addr_space = 1 : i32} : !llvm.array<6 x i32>
    llvm.mlir.global internal @given() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.func internal @shift(%a: !llvm.ptr, %b: !llvm.ptr, %c: i32) attributes {no_inline} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %n = llvm.mlir.constant(31 : i32) : i32
      %table = llvm.mlir.addressof @table : !llvm.ptr<1>
      %e = llvm.getelementptr %table[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %s = llvm.load %e : !llvm.ptr<1> -> i32
      %given = llvm.mlir.addressof @given : !llvm.ptr<3>
      %p = llvm.getelementptr %a[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %g = llvm.getelementptr %given[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %v, %g : f32, !llvm.ptr<3>
      nvvm.barrier0
      %u = llvm.add %t, %s : i32
      %o = llvm.and %u, %n : i32
      %h = llvm.getelementptr %given[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %w = llvm.load %h : !llvm.ptr<3> -> f32
      %q = llvm.getelementptr %b[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %w, %q : f32, !llvm.ptr
      llvm.return
    }
    llvm.func @k0(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(0 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
    llvm.func @k1(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(1 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
    llvm.func @k2(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(2 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
    llvm.func @k3(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(3 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
    llvm.func @k4(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(4 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
    llvm.func @k5(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel,
        tandem.kernel = #tandem.kernel_facts<type = (tensor<32xf32>) -> tensor<32xf32>, items = 1, blocks = [1, 1, 1], kind = "pointwise", ops = ["tandem.add"],
                         block = [32, 1, 1], shared_bytes = 128>} {
      %c = llvm.mlir.constant(5 : i32) : i32
      llvm.call @shift(%a, %b, %c) : (!llvm.ptr, !llvm.ptr, i32) -> ()
      llvm.return
    }
  }
}
