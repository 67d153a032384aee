//===- Agreement.h - what the programs of a module say of one value -------===//
#ifndef TANDEM_PASSES_VERIFY_AGREEMENT_H
#define TANDEM_PASSES_VERIFY_AGREEMENT_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Checks the roles of a module's programs, after `phase` (joint or later),
/// against each other: the same value has the same kind, type, `init`, `high`
/// and `requires_grad` in all of them; they take the graph's values, and give
/// its outputs, under the same names; what requires grad gets a gradient, or
/// says that it gets none (`no_grad`), and what gets one is updated. Emits
/// every problem; of an edited module one of two programs is right, but nobody
/// knows which.
mlir::LogicalResult checkAgreement(mlir::ModuleOp module,
                                   llvm::StringRef phase);

} // namespace tandem

#endif
