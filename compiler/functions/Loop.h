//===- Loop.h - the same step over a first dimension ----------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_LOOP_H
#define TANDEM_COMPILER_FUNCTIONS_LOOP_H

#include "compiler/functions/Call.h"

namespace tandem {

/// What a step sees: the carries, its slice of each input, the constants.
struct LoopStep {
  llvm::ArrayRef<Expr> carries, inputs, constants;
};
/// What it makes: the new carries, and its slice of each stack.
struct LoopMade {
  llvm::SmallVector<Expr> carries, slices;
};
using LoopBody = llvm::function_ref<LoopMade(const LoopStep &)>;

/// Steps over dimension 0 of `inputs`, which has `length` slices of each; with
/// `reverse` from the last to the first. A short loop is written out, a long
/// one is a `scan`. Returns the last carries, then the stacks; empty after a
/// mistake.
llvm::SmallVector<Expr> loopOver(Call &call, int64_t length, bool reverse,
                                 llvm::ArrayRef<Expr> carries,
                                 llvm::ArrayRef<Expr> inputs,
                                 llvm::ArrayRef<Expr> constants, LoopBody body);

} // namespace tandem

#endif
