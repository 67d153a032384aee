//===- Definedness.h - which cotangents a value needs ---------------------===//
//
// A cotangent that the caller leaves out is undefined, and so is all that is
// computed from it. When a value is defined is a condition: an array of groups
// of cotangents, `[["loss", "aux"], ["o"]]`, which holds where every group has
// a defined member; `[]` always holds. A backward does not run at all unless
// one of its cotangents is defined. So a group of all of them says nothing and
// is left out, and in a function with one cotangent every value is certain.
// What cotangents are to a backward, gradients are to @update.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_AUTODIFF_DEFINEDNESS_H
#define TANDEM_PASSES_AUTODIFF_DEFINEDNESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

#include "llvm/ADT/DenseMap.h"

namespace tandem {

/// True if the caller may leave the argument out: a cotangent, or a gradient
/// that @update takes. Those of @grad_forward are all given.
bool mayBeUndefined(mlir::func::FuncOp func, unsigned argument);

/// The condition that holds where both (either) of two do, in normal form:
/// names and groups are sorted, and no group contains another. Equal conditions
/// are one attribute.
mlir::ArrayAttr definedBoth(mlir::ArrayAttr a, mlir::ArrayAttr b);
mlir::ArrayAttr definedEither(mlir::ArrayAttr a, mlir::ArrayAttr b);
/// True if `b` holds wherever `a` does.
bool definedImplies(mlir::ArrayAttr a, mlir::ArrayAttr b);
/// True if `condition` holds where the cotangents `defined` are defined.
bool evaluateDefined(mlir::ArrayAttr condition,
                     llvm::ArrayRef<llvm::StringRef> defined);

/// When the values of a function are defined: an argument that may be undefined
/// where it is given,
/// `accumulate` where either operand is, `or_zero` as its `needs` say, the
/// result of `if_defined` and what depends on no cotangent always, any other
/// where all operands are. In a function whose arguments are all given
/// everything is.
///
/// Values are looked at when they are asked for, each once; ops may be added to
/// the function in between.
class Definedness {
public:
  explicit Definedness(mlir::func::FuncOp func);

  mlir::ArrayAttr of(mlir::Value value);
  /// `[]`: always.
  mlir::ArrayAttr always() const { return none; }

private:
  /// `condition` without what holds whenever the backward runs.
  mlir::ArrayAttr simplified(mlir::ArrayAttr condition) const;
  mlir::ArrayAttr fromOperands(mlir::Operation *op);

  mlir::ArrayAttr none;
  size_t numOptional = 0;
  llvm::DenseMap<mlir::Value, mlir::ArrayAttr> known;
};

} // namespace tandem

#endif
