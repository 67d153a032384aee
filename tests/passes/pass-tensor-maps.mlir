// RUN: tandem-opt %s -pass-pipeline='builtin.module(gpu.module(tandem-pass-tensor-maps))' | FileCheck %s

// The parameter behind the two buffers is the map, of 128 bytes; what follows it
// is scratch.
// CHECK: llvm.func @maps(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %arg3: !llvm.ptr)
// CHECK: llvm.func @plain(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
gpu.module @cuda {
  llvm.func @maps(%a: !llvm.ptr, %b: !llvm.ptr, %map: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr) attributes {nvvm.kernel, tandem.kernel = #tandem.kernel_facts<kind = "contraction", ops = ["tandem.exp"], type = (tensor<4x4xf32>) -> tensor<4x4xf32>, items = 1, tensor_maps = [#tandem.tensor_map<buffer = 0, element = "f32", sizes = [4, 4], strides = [16], box = [4, 4], swizzle = 128>]>} {
    llvm.return
  }
  llvm.func @plain(%a: !llvm.ptr, %b: !llvm.ptr) attributes {nvvm.kernel, tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], type = (tensor<4x4xf32>) -> tensor<4x4xf32>, items = 1>} {
    llvm.return
  }
}
