//===- Policy.h - which ops mixed precision computes in which type --------===//
#ifndef TANDEM_PASSES_PRECISION_POLICY_H
#define TANDEM_PASSES_PRECISION_POLICY_H

#include "passes/precision/Retyper.h"

namespace tandem {

/// What an op says of itself (AutocastLow and AutocastFull, ir/OpBase.td).
enum class AutocastClass { Low, Full, Follows };
AutocastClass autocastClassOf(mlir::Operation *op);

/// True for an op of the dialect without effects and regions that computes
/// floats: for what has a type to choose. Casts and constants have the one that
/// they say.
bool hasChoice(mlir::Operation *op);

/// A type to compute an op in, and the reason in words; null: the op's own.
struct TypeChoice {
  mlir::Type type;
  llvm::StringRef why;
};

/// The choice for `op`, of f32, where the low type is `low`: low if its class
/// says so, or if it follows, and every operand of f32 was computed in `low`,
/// or costs nothing in it: a parameter, or a number that `low` can hold.
TypeChoice chooseType(const Retyper &retyper, mlir::Operation *op,
                      mlir::Type low);

} // namespace tandem

#endif
