// RUN: tandem-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(tandem-expand-cuda-functions)))' | FileCheck %s

// What the GPU has instructions for is an intrinsic, and the rest arithmetic
// around its approximations: nothing is left that would call libdevice.
// CHECK-LABEL: gpu.func @functions
// CHECK-NOT: math.
// CHECK: llvm.call_intrinsic "llvm.sqrt"
// CHECK-NOT: math.exp
// CHECK: gpu.return
gpu.module @cuda {
  gpu.func @functions(%m: memref<3xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = memref.load %m[%c0] : memref<3xf32>
    %0 = math.sqrt %x : f32
    memref.store %0, %m[%c0] : memref<3xf32>
    %1 = math.exp %x : f32
    memref.store %1, %m[%c1] : memref<3xf32>
    gpu.return
  }
}
