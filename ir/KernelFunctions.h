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

#include <optional>

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
/// `tandem.code = "3f.."` on a kernel and its function: the hash of all that
/// its code follows from. Only within a compilation
/// (compiler/emit/KernelKeys.h): what was read must not have it.
inline constexpr llvm::StringLiteral kCodeAttr = "tandem.code";
/// `tandem.compiled = array<i64: 8, 0, 1>` beside it, items, bytes of scratch
/// and grain: on a kernel if its code is there already, and on its function.
/// For a GPU it is the `#tandem.kernel_facts` of the function.
inline constexpr llvm::StringLiteral kCompiledAttr = "tandem.compiled";

/// What launches need to know of code.
struct CompiledFacts {
  int64_t items = 0;
  int64_t scratchBytes = 0;
  int64_t grain = 1;
};

/// The function of a kernel; null if none is chosen.
mlir::SymbolRefAttr kernelFunction(mlir::Operation *kernel);
/// The functions of its regions; empty if it has none.
llvm::SmallVector<mlir::FlatSymbolRefAttr> kernelRegions(mlir::Operation *);
/// The grain of a kernel's function, 1 where it does not say.
int64_t grainOf(mlir::Operation *function);
/// What `tandem.compiled` says; nothing where it does not stand.
std::optional<CompiledFacts> compiledFacts(mlir::Operation *op);
void setCompiledFacts(mlir::Operation *op, const CompiledFacts &facts);
/// The text of `tandem.code`; empty where it does not stand.
llvm::StringRef codeKey(mlir::Operation *op);

/// Checks one of the attributes where it stands; the error is the op's.
mlir::LogicalResult verifyKernelFunction(mlir::Operation *op,
                                         mlir::NamedAttribute attribute);

} // namespace tandem

#endif
