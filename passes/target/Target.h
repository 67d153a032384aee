//===- Target.h - what passes ask of a module's target --------------------===//
#ifndef TANDEM_PASSES_TARGET_H
#define TANDEM_PASSES_TARGET_H

#include "ir/Dialect.h"

#include "mlir/IR/Operation.h"

namespace tandem {

/// True if the module around `op` says what it is compiled for
/// (`tandem.target`), and if that is cuda.
bool hasTarget(mlir::Operation *op);
bool isForCuda(mlir::Operation *op);

/// True if the processor that the module around `op` is compiled for has the
/// instructions of `feature`, LLVM's name of them.
bool hasFeature(mlir::Operation *op, llvm::StringRef feature);

/// True if the module around `op` is compiled for functions of f32 in fewer
/// steps, and for products and sums that are rounded as one.
bool usesFastMath(mlir::Operation *op);

/// The `precision` of a product (matmul, linear, convolutions) of f32, "f32" or
/// "tf32": its own, or what the module around it is compiled with. Empty for
/// ops that have none.
llvm::StringRef productPrecision(mlir::Operation *op);

/// True unless the target of the module around `op` forbids Winograd's method
/// for convolutions.
bool allowsWinograd(mlir::Operation *op);

/// The bytes of the last cache before memory that a program can count on to
/// find again, while others use it too: an eighth, of 32 MiB where the target
/// does not say.
int64_t cacheShare(mlir::Operation *op);

/// The architecture of a target for cuda: sm_90 where it does not say.
struct CudaArch {
  int64_t sm = 90;      ///< compute capability: 90 for sm_90
  bool isExact = false; ///< sm_90a: what only this architecture has
};
CudaArch cudaArchOf(mlir::Operation *op);
/// True if products by warpgroup (wgmma) are among its instructions.
inline bool hasWarpgroups(const CudaArch &arch) {
  return arch.isExact && arch.sm == 90;
}

} // namespace tandem

#endif
