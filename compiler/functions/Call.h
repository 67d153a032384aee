//===- Call.h - one call of a function ------------------------------------===//
//
// What a function's builder sees: the operands, the attributes, and ways to
// make ops that check what they are given. Whatever is wrong is a diagnostic at
// the call's location, and the call fails; a builder may go on after a mistake
// (attributes have their defaults then, made values are null), for what it
// returns is not used.
//
// Expr's operators assert that their operands have one type. A builder checks
// types and shapes first (`expect...`, `broadcast`), or makes ops by name
// (`op`), which checks everything.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_CALL_H
#define TANDEM_COMPILER_FUNCTIONS_CALL_H

#include "ir/Expr.h"

#include <optional>

namespace tandem {

class Call {
public:
  Call(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
       mlir::ValueRange operands, mlir::DictionaryAttr attributes)
      : builder(builder), loc(loc), name(name), operands(operands),
        attributes(attributes) {}

  mlir::OpBuilder &builder;
  const mlir::Location loc;
  const llvm::StringRef name;

  //===--------------------------------------------------------------------===//
  // Operands: tensors; an absent one is null
  //===--------------------------------------------------------------------===//

  size_t size() const { return operands.size(); }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  mlir::Value value(size_t i) const {
    return has(i) ? operands[i] : mlir::Value();
  }
  Expr operator[](size_t i) const { return at(value(i)); }
  Expr at(mlir::Value value) const { return {builder, loc, value}; }

  //===--------------------------------------------------------------------===//
  // Attributes: of another kind than asked for, they are a mistake
  //===--------------------------------------------------------------------===//

  bool hasAttribute(llvm::StringRef attribute) const;
  /// True if the attribute is one integer (and no list).
  bool isInteger(llvm::StringRef attribute) const;
  int64_t integer(llvm::StringRef attribute, int64_t otherwise);
  double number(llvm::StringRef attribute, double otherwise);
  bool flag(llvm::StringRef attribute, bool otherwise);
  /// One of `allowed`, unless that is empty.
  llvm::StringRef text(llvm::StringRef attribute, llvm::StringRef otherwise,
                       llvm::ArrayRef<llvm::StringRef> allowed = {});
  llvm::SmallVector<int64_t> integers(llvm::StringRef attribute,
                                      llvm::ArrayRef<int64_t> otherwise = {});
  llvm::SmallVector<double> numbers(llvm::StringRef attribute,
                                    llvm::ArrayRef<double> otherwise = {});
  /// A dimension of a tensor of `rank`, negative ones counted from the end. A
  /// mistake gives 0.
  int64_t dim(llvm::StringRef attribute, int64_t otherwise, int64_t rank);
  /// Distinct dimensions, rising; `otherwise` where the attribute is absent.
  llvm::SmallVector<int64_t> dims(llvm::StringRef attribute, int64_t rank,
                                  llvm::ArrayRef<int64_t> otherwise = {});

  //===--------------------------------------------------------------------===//
  // Checks
  //===--------------------------------------------------------------------===//

  /// Says what is wrong; the call fails.
  mlir::LogicalResult fail(const llvm::Twine &message);
  bool failed() const { return wrong; }

  /// These return success if they found nothing.
  mlir::LogicalResult expectFloat(size_t i);
  mlir::LogicalResult expectInteger(size_t i);
  mlir::LogicalResult expectBool(size_t i);
  /// From `low` to `high` dimensions.
  mlir::LogicalResult expectRank(size_t i, int64_t low, int64_t high);
  mlir::LogicalResult expectShape(size_t i, llvm::ArrayRef<int64_t> shape);
  mlir::LogicalResult expectSameShape(size_t i, size_t j);
  mlir::LogicalResult expectSameElements(size_t i, size_t j);

  //===--------------------------------------------------------------------===//
  // Making ops
  //===--------------------------------------------------------------------===//

  /// The first result of `tandem.<op>`; null after a mistake, also if an
  /// operand is null. `type`: its result type, where it is not inferred.
  Expr op(llvm::StringRef op, mlir::ValueRange operands,
          llvm::ArrayRef<mlir::NamedAttribute> list = {}, mlir::Type type = {});
  /// All results; empty after a mistake.
  llvm::SmallVector<mlir::Value>
  ops(llvm::StringRef op, mlir::ValueRange operands,
      llvm::ArrayRef<mlir::NamedAttribute> list = {},
      mlir::TypeRange types = {});
  /// The first result of another function; null after a mistake.
  Expr call(llvm::StringRef function, mlir::ValueRange operands,
            llvm::ArrayRef<mlir::NamedAttribute> list = {});
  llvm::SmallVector<mlir::Value>
  calls(llvm::StringRef function, mlir::ValueRange operands,
        llvm::ArrayRef<mlir::NamedAttribute> list = {});

  /// Attributes for these.
  mlir::NamedAttribute ints(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute integerAttr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute numberAttr(llvm::StringRef name, double value);
  mlir::NamedAttribute textAttr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute flagAttr(llvm::StringRef name, bool value);
  mlir::NamedAttribute unitAttr(llvm::StringRef name);

  /// A constant of `shape`, every element `number`.
  Expr full(mlir::Type element, llvm::ArrayRef<int64_t> shape, double number);
  /// A constant of given elements, in row-major order.
  Expr integersOf(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<int64_t> elements);
  Expr numbersOf(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                 llvm::ArrayRef<double> elements);

  /// The shape that both stretch to, as NumPy has it: sizes match from the last
  /// dimension on, or are 1.
  std::optional<llvm::SmallVector<int64_t>>
  broadcastShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
  /// `x` stretched to `shape`; null after a mistake.
  Expr stretch(const Expr &x, llvm::ArrayRef<int64_t> shape);
  /// Stretches all to one shape, in place.
  mlir::LogicalResult broadcast(llvm::MutableArrayRef<Expr> values);

private:
  mlir::Attribute attribute(llvm::StringRef attribute) const;
  mlir::LogicalResult mismatch(llvm::StringRef attribute,
                               llvm::StringRef expected);

  llvm::SmallVector<mlir::Value> operands;
  mlir::DictionaryAttr attributes;
  bool wrong = false;
};

} // namespace tandem

#endif
