//===- Kernels.h - what lowering kernels to any target has in common ------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_KERNELS_H
#define TANDEM_PASSES_LOWER_COMMON_KERNELS_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// The kernels of the module's programs, in order; without those of the regions
/// of branches and loops that are functions (`tandem.regions`).
llvm::SmallVector<KernelOp> programKernels(mlir::ModuleOp module);
/// The functions of a kernel's regions, and their kernels.
llvm::SmallVector<mlir::func::FuncOp> regionFunctions(KernelOp kernel);
llvm::SmallVector<KernelOp> regionKernels(KernelOp kernel);
/// The first kernel of each function (`tandem.function`), in the order of the
/// programs, behind the kernels of its regions. Fails, with an error, at a
/// kernel that has none.
mlir::FailureOr<llvm::SmallVector<KernelOp>> distinctKernels(mlir::ModuleOp);

/// Fails, with an error, if kernels with other code than each other's share a
/// function, as an edited dump may say.
mlir::LogicalResult checkSharedFunctions(mlir::ModuleOp module);

/// Fails, with an error, if the plan counts on other scratch for a kernel than
/// its code takes.
mlir::LogicalResult checkPlannedScratch(KernelOp kernel, int64_t taken);

} // namespace tandem::lower

#endif
