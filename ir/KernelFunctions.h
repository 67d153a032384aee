//===- KernelFunctions.h - which function a kernel becomes ----------------===//
//
// While a module is lowered, its kernels say which function has their code, and
// that function says of itself what its launches need. A module at `lower` has
// neither kernels nor these attributes: its launches say the same.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_KERNELFUNCTIONS_H
#define TANDEM_IR_KERNELFUNCTIONS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace tandem {

/// `tandem.function = @cpu::@exp_0` on a kernel, set by
/// tandem-deduplicate-kernels: the function that it shares with equal ones.
inline constexpr llvm::StringLiteral kFunctionAttr = "tandem.function";
/// `tandem.regions = [@scan_0.region0]` on the kernel of a branch or a loop,
/// set by tandem-outline-regions: each region as a planned function.
inline constexpr llvm::StringLiteral kRegionsAttr = "tandem.regions";
/// `tandem.grain = 8 : i64` on a kernel's function, beside `tandem.kernel`: the
/// least number of items that are worth a thread.
inline constexpr llvm::StringLiteral kGrainAttr = "tandem.grain";

/// The function of a kernel; null if none is chosen.
mlir::SymbolRefAttr kernelFunction(mlir::Operation *kernel);
/// The functions of its regions; empty if it has none.
llvm::SmallVector<mlir::FlatSymbolRefAttr> kernelRegions(mlir::Operation *);
/// The grain of a kernel's function, 1 where it does not say.
int64_t grainOf(mlir::Operation *function);

/// Checks one of the attributes where it stands; the error is the op's.
mlir::LogicalResult verifyKernelFunction(mlir::Operation *op,
                                         mlir::NamedAttribute attribute);

} // namespace tandem

#endif
