//===- Expr.h - arithmetic on tensor values -------------------------------===//
//
// An Expr is a tensor value together with the builder and location at which
// arithmetic on it makes new ops, so that gradient rules and decompositions
// read as formulas: `p.dy() * (1.0 - p.y() * p.y())`. Operands must have one
// type; a double stands for a constant of the other operand's type.
// Broadcasting is explicit (`broadcastTo`).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_EXPR_H
#define TANDEM_IR_EXPR_H

#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"

namespace tandem {

class Expr {
public:
  Expr() = default;
  Expr(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value)
      : builder(&builder), loc(loc), value(value) {}

  operator mlir::Value() const { return value; }
  explicit operator bool() const { return value != nullptr; }
  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  int64_t dim(int64_t i) const { return type().getDimSize(i); }

  /// A constant of this value's type, every element `number`.
  Expr like(double number) const;
  /// The same with another element type.
  Expr cast(mlir::Type elementType) const;
  /// This value along `dims` of a tensor of `shape`: dimension i of this value
  /// is dimension dims[i] of the result.
  Expr broadcastTo(llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<int64_t> dims) const;
  /// The reverse of reducing `dims` away from a tensor of `shape`.
  Expr expandReduced(llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<int64_t> dims) const;
  Expr reshape(llvm::ArrayRef<int64_t> shape) const;
  Expr permute(llvm::ArrayRef<int64_t> permutation) const;
  Expr reduceSum(llvm::ArrayRef<int64_t> dims) const;
  Expr reduceMax(llvm::ArrayRef<int64_t> dims) const;
  Expr reduceProd(llvm::ArrayRef<int64_t> dims) const;
  Expr reverse(llvm::ArrayRef<int64_t> dims) const;
  Expr wrap(mlir::Value other) const { return {*builder, loc, other}; }

  mlir::OpBuilder *builder = nullptr;
  mlir::LocationAttr loc; ///< null, as the rest, of an Expr that is none
  mlir::Value value;
};

Expr operator+(const Expr &a, const Expr &b);
Expr operator-(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);
Expr operator/(const Expr &a, const Expr &b);
Expr operator-(const Expr &a);
Expr operator+(const Expr &a, double b);
Expr operator-(const Expr &a, double b);
Expr operator*(const Expr &a, double b);
Expr operator/(const Expr &a, double b);
Expr operator+(double a, const Expr &b);
Expr operator-(double a, const Expr &b);
Expr operator*(double a, const Expr &b);
Expr operator/(double a, const Expr &b);

// The functions of the pointwise ops: exp(x), logicalAnd(x, y), ...
#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC) Expr FUNCTION(const Expr &x);
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC)                                  \
  Expr FUNCTION(const Expr &x, const Expr &y);
#include "ir/ops/PointwiseFunctions.h.inc"

Expr detach(const Expr &x);
Expr compare(ComparePredicate predicate, const Expr &a, const Expr &b);
Expr select(const Expr &condition, const Expr &a, const Expr &b);

} // namespace tandem

#endif
