//===- SavedMarks.h - the choice of what is saved, in the IR --------------===//
//
// The marks `tandem.saved` of a joint (ir/PartitionMarks.h) are what one pass
// writes and another one reads. An edit can put one where it says nothing, and
// can leave one out that the backward needs: whoever reads them checks them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_SAVEDMARKS_H
#define TANDEM_PASSES_PARTITION_SAVEDMARKS_H

#include "passes/partition/SavedValues.h"

namespace tandem {

/// Marks the values of `joint` that are in `saved`, and no others; `by` says
/// who chose.
void markSaved(mlir::func::FuncOp joint, const SavedValues &saved,
               llvm::StringRef by);

/// Returns the marked values of a joint, in its order. Fails, with every
/// problem, where nobody has chosen, where a value is marked that both programs
/// have in any case or that the backward alone has, and where the backward
/// needs a value that is not marked and that it cannot make.
mlir::FailureOr<SavedValues> markedValues(const JointView &view);

} // namespace tandem

#endif
