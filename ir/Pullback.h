//===- Pullback.h - what a gradient rule sees -----------------------------===//
//
// One application of an op's gradient rule. The rule reads cotangents of the
// results and the primals, and sets cotangents of operands. Sums of cotangents,
// missing cotangents and pruning by need belong to the engine
// (passes/autodiff), which derives from this class.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_PULLBACK_H
#define TANDEM_IR_PULLBACK_H

#include "ir/Expr.h"

namespace tandem {

class Pullback {
public:
  Pullback(mlir::OpBuilder &builder, mlir::Location loc, mlir::Operation *op)
      : builder(builder), loc(loc), op(op) {}
  virtual ~Pullback() = default;

  /// The cotangent of result `i`; zeros if nothing flows into that result.
  Expr dy(unsigned i = 0) { return expr(cotangent(i)); }
  /// True if something flows into result `i`.
  virtual bool has(unsigned i) const = 0;
  /// Operand `i`, and shorter names for the first two.
  Expr in(unsigned i) { return expr(op->getOperand(i)); }
  Expr x() { return in(0); }
  Expr rhs() { return in(1); }
  /// Result `i`.
  Expr out(unsigned i = 0) { return expr(op->getResult(i)); }
  Expr y() { return out(0); }
  /// True if the cotangent of operand `i` is wanted.
  virtual bool needs(unsigned i) const = 0;
  /// Hands over the cotangent of operand `i`; its type is the operand's.
  virtual void set(unsigned i, const Expr &cotangent) = 0;

  /// What only ops with regions ask for: differentiates the ops in front of
  /// `end` in a block. Returns the cotangent of each of `wrt`, null where none
  /// flows into it, from the `cotangents` of `targets`. What it builds stands
  /// in front of `end`.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  differentiate(mlir::Operation *end, llvm::ArrayRef<mlir::Value> wrt,
                llvm::ArrayRef<mlir::Value> targets,
                llvm::ArrayRef<mlir::Value> cotangents) = 0;

  // What only a custom_vjp asks for.

  /// The cotangent of result `i`; null if nothing flows into that result.
  virtual mlir::Value dyOrUndefined(unsigned i) = 0;
  /// The argument `name` of the graph as the backward finds it, or as an
  /// earlier rule left it; with a null name a private copy of the primal
  /// `input`.
  virtual mlir::Value state(mlir::StringAttr name, mlir::Value input,
                            mlir::Type type) = 0;
  /// Overwrites what `state` gives.
  virtual void update(mlir::StringAttr name, mlir::Value input,
                      mlir::Value value) = 0;
  /// Overwrites the cotangent of result `i`, for the caller if it is the
  /// caller's.
  virtual void updateCotangent(unsigned i, mlir::Value value) = 0;

  Expr expr(mlir::Value value) { return {builder, loc, value}; }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Operation *op;

protected:
  virtual mlir::Value cotangent(unsigned i) = 0;
};

} // namespace tandem

#endif
