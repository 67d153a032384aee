//===- Libraries.h - kernels that a vendor's library can compute ----------===//
//
// A kernel around one product or convolution may be one call of cuBLASLt or
// cuDNN. Then it carries `library`, which says the call; launch and
// manifest have it too (runtime/artifact/LibraryCall.h), beside the kernel's
// own code. Whether a library is worth it is what LibraryTable.h says, unless
// the target says `libraries = "yes"` (wherever it can be said) or "no".
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_LIBRARIES_H
#define TANDEM_PASSES_PLAN_LIBRARIES_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// The call of a kernel or a launch; null if there is none.
LibraryCallAttr libraryOf(mlir::Operation *op);
/// The bytes that the kernel's library call asks for beside its operands.
int64_t libraryWorkspace(mlir::Operation *kernelOrLaunch);
/// Says where they are in the arena.
void placeLibraryWorkspace(KernelOp kernel, int64_t offset);

} // namespace tandem

#endif
