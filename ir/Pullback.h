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

  Expr expr(mlir::Value value) { return {builder, loc, value}; }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Operation *op;

protected:
  virtual mlir::Value cotangent(unsigned i) = 0;
};

} // namespace tandem

#endif
