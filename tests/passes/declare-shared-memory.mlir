// RUN: tandem-opt %s -pass-pipeline='builtin.module(gpu.module(tandem-declare-shared-memory))' | FileCheck %s

// Shared memory of no size that is known is the launch's; what has a size, or
// is not shared, stays as it is.
// CHECK: llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.mlir.global internal @static() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
// CHECK: llvm.mlir.global internal @device() {addr_space = 1 : i32} : !llvm.array<0 x i8>
gpu.module @cuda {
  llvm.mlir.global internal @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @static() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @device() {addr_space = 1 : i32} : !llvm.array<0 x i8>
}
