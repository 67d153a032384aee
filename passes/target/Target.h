//===- Target.h - what passes ask of a module's target --------------------===//
#ifndef TANDEM_PASSES_TARGET_H
#define TANDEM_PASSES_TARGET_H

#include "mlir/IR/Operation.h"

namespace tandem {

/// True if the module around `op` says what it is compiled for
/// (`tandem.target`), and if that is cuda.
bool hasTarget(mlir::Operation *op);
bool isForCuda(mlir::Operation *op);

/// True if the processor that the module around `op` is compiled for has the
/// instructions of `feature`, LLVM's name of them.
bool hasFeature(mlir::Operation *op, llvm::StringRef feature);

/// In the target of a cpu: functions of f32 in fewer steps, and products and
/// sums rounded as one.
inline constexpr llvm::StringLiteral kFastMathAttr = "fast_math";
/// True if the module around `op` is compiled so.
bool usesFastMath(mlir::Operation *op);

/// The `precision` of a product (matmul, linear, convolutions) of f32, "f32" or
/// "tf32": its own, or what the module around it is compiled with. Empty for
/// ops that have none.
llvm::StringRef productPrecision(mlir::Operation *op);

/// True unless the target of the module around `op` forbids Winograd's method
/// for convolutions.
bool allowsWinograd(mlir::Operation *op);

/// In the target of a cpu: the bytes of the last cache before memory.
inline constexpr llvm::StringLiteral kLastCacheAttr = "last_cache_bytes";
/// The bytes of that cache that a program can count on to find again, while
/// others use it too: an eighth, of 32 MiB where the target does not say.
int64_t cacheShare(mlir::Operation *op);

/// In the target of a cpu: the processors of the machine.
inline constexpr llvm::StringLiteral kProcessorsAttr = "processors";

/// The architecture of a target for cuda: sm_90 where it does not say.
struct CudaArch {
  int64_t sm = 90;      ///< compute capability: 90 for sm_90
  bool isExact = false; ///< sm_90a: what only this architecture has
};
CudaArch cudaArchOf(mlir::Operation *op);

/// What the target says of `name`, a text; empty where it says nothing. For
/// what one pass alone asks: "libraries", "products".
llvm::StringRef textOfTarget(mlir::Operation *op, llvm::StringRef name);
/// The same of an integer; `otherwise` where it says nothing.
int64_t integerOfTarget(mlir::Operation *op, llvm::StringRef name,
                        int64_t otherwise);

} // namespace tandem

#endif
