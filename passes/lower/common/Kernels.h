//===- Kernels.h - what lowering kernels to any target has in common ------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_KERNELS_H
#define TANDEM_PASSES_LOWER_COMMON_KERNELS_H

#include "ir/Ops.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem::lower {

/// The class of a kernel is that of its anchor, or of its reductions, or
/// pointwise.
OpClass classOf(KernelOp kernel);
/// True if the kernel has loop ops alone; else it has an anchor.
bool isLoopKernel(KernelOp kernel);

/// Finds the kernels that one function serves: those with equal regions and
/// facts of their code, locations, names and places aside.
class DistinctKernels {
public:
  /// The number of the kernel among the distinct ones, in the order in which
  /// they came, and whether it is the first of its number.
  std::pair<size_t, bool> insert(KernelOp kernel);

private:
  /// Of each number, what its kernels have in common.
  std::vector<mlir::OwningOpRef<KernelOp>> common;
  std::unordered_multimap<size_t, size_t> byHash;
};

/// What kernels of one number have in common as text, for what is kept in
/// files.
std::string textOf(KernelOp kernel);

/// A tensor as a memref: row-major, booleans and floats of 8 bits i8.
mlir::MemRefType memrefOf(mlir::Type tensor);

/// What only the lowering knows of a kernel's function.
struct LoweredFacts {
  int64_t items = 1, scratchBytes = 0;
  // Of a GPU.
  llvm::ArrayRef<int64_t> blocks, block;
  int64_t sharedBytes = 0;
  llvm::ArrayRef<mlir::Attribute> tensorMaps; ///< each a TensorMapAttr
};

/// The attribute `tandem.kernel` of the kernel's function.
KernelFactsAttr describeKernel(KernelOp kernel, const LoweredFacts &lowered);

/// All kernels of the module's programs, in order. Fails, with errors, at those
/// that were not planned.
mlir::FailureOr<llvm::SmallVector<KernelOp>> plannedKernels(mlir::ModuleOp);

/// Puts the copy that each of `kernels` to or from the host's memory is in the
/// kernel's place, and takes these kernels off the list.
void replaceHostCopies(llvm::SmallVectorImpl<KernelOp> &kernels);

/// Fails, with an error, if the plan counts on other scratch for a kernel than
/// its code takes.
mlir::LogicalResult checkPlannedScratch(KernelOp kernel, int64_t taken);

/// Puts a launch of `function` in the kernel's place. `grid` may be null.
void replaceByLaunch(KernelOp kernel, mlir::SymbolRefAttr function,
                     int64_t work, int64_t grain, mlir::DenseI64ArrayAttr grid);

} // namespace tandem::lower

#endif
