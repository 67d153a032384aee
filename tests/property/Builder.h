//===- Builder.h - adds the ops of steps to a function --------------------===//
#ifndef TANDEM_TESTS_PROPERTY_BUILDER_H
#define TANDEM_TESTS_PROPERTY_BUILDER_H

#include "tests/property/Recipe.h"

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::property {

class ProgramBuilder {
public:
  explicit ProgramBuilder(mlir::func::FuncOp func);
  void add(const Step &step);
  /// Adds the terminator and the roles of the results.
  void finish();

  static mlir::RankedTensorType tensorType(mlir::Value value);

private:
  using Choice = std::array<uint32_t, 4>;
  using Shape = llvm::SmallVector<int64_t>;

  /// A ref, and what a program that is meant to compile must know of it.
  struct Ref {
    mlir::Value value;
    int root;      ///< the argument whose storage it shows; -1: made here
    int handle;    ///< the argument whose handle it is, where it is one
    bool isHidden; ///< through a detach, or made in a no-grad region
    bool overlaps; ///< its elements, in storage
    bool isHandle;
  };

  void read(const Choice &choice);
  void viewOfRef(const Choice &choice);
  void compute(const Choice &choice);
  void write(const Choice &choice);
  void transpose(const Choice &choice);
  void set(const Choice &choice);
  void custom(const Choice &choice);
  void output(const Choice &choice);

  /// A view of `source`, a tensor or ref; `overlaps` if it shows an element
  /// twice.
  mlir::Value view(mlir::Value source, const Choice &choice, bool &overlaps);
  /// The tensor in another shape: reshaped where it has as many elements, else
  /// its sum, repeated.
  mlir::Value adapt(mlir::Value tensor, llvm::ArrayRef<int64_t> shape);
  mlir::Value randomState(uint32_t choice);
  mlir::Value tensor(uint32_t choice);
  mlir::Value tensorOf(llvm::ArrayRef<int64_t> shape, uint32_t choice);
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, double number);
  /// Marks what was made behind `before` as of the no-grad region.
  template <typename Op, typename... Operands> Op make(Operands &&...operands) {
    auto op = Op::create(builder, builder.getUnknownLoc(),
                         std::forward<Operands>(operands)...);
    if (isNoGrad)
      op->setAttr(kNoGradAttr, builder.getUnitAttr());
    return op;
  }

  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  std::vector<Ref> refs;
  std::vector<mlir::Value> tensors;
  std::vector<mlir::Value> outputs;
  std::vector<bool> isLeafParam, isInput; ///< by argument
  bool isNoGrad = false;
};

} // namespace tandem::property

#endif
