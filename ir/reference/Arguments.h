//===- Arguments.h - which storage each argument of a call shows ----------===//
#ifndef TANDEM_IR_REFERENCE_ARGUMENTS_H
#define TANDEM_IR_REFERENCE_ARGUMENTS_H

#include "ir/reference/Evaluator.h"

namespace tandem::reference {

/// One per argument; nothing for a tensor.
using ArgumentRefs = llvm::SmallVector<std::optional<Ref>>;

/// Makes the storages of a call, those that arguments declare to share once,
/// and lists them in `outcome`. Fails, with an error at `func`, where an
/// `alias` leads nowhere or where two arguments show one element but were given
/// two values of it.
mlir::FailureOr<ArgumentRefs> bindRefs(mlir::func::FuncOp func,
                                       const Call &call, Outcome &outcome);

} // namespace tandem::reference

#endif
