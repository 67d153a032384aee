//===- CustomRegions.h - custom_vjp from two recorded regions -------------===//
//
// What the tracer and the importers share. Each records a block for the forward
// and one for the backward, with everything in refs: values that come in are
// tensors with a `make_ref` of each, results and cotangents are refs. Here the
// blocks get their terminators, refs that are not written become values, and
// what each region writes is found and declared.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_CUSTOMREGIONS_H
#define TANDEM_COMPILER_CAPTURE_CUSTOMREGIONS_H

#include "ir/Ops.h"

#include <memory>

namespace tandem {

class CustomRegions {
public:
  /// The op will take `inputs` and `refs`, values and refs of the outside.
  CustomRegions(std::string name, mlir::Location loc,
                llvm::ArrayRef<mlir::Value> inputs,
                llvm::ArrayRef<mlir::Value> refs);

  /// The blocks that the regions are recorded into, with the builder at their
  /// ends.
  mlir::Block &forwardBlock() { return forward->front(); }
  mlir::Block &backwardBlock() { return backward->front(); }

  /// Adds refs of the inputs to `values`.
  void beginForward(mlir::OpBuilder &builder,
                    llvm::SmallVectorImpl<mlir::Value> &values);
  /// `results` are refs; `saved` were read when they were saved. False, with
  /// diagnostics, if the op would have an effect that is not declared.
  bool endForward(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> results,
                  llvm::ArrayRef<mlir::Value> saved,
                  llvm::ArrayRef<int64_t> unchecked);

  /// Adds what was saved, and the cotangents, as refs.
  void beginBackward(mlir::OpBuilder &builder,
                     llvm::SmallVectorImpl<mlir::Value> &saved,
                     llvm::SmallVectorImpl<mlir::Value> &cotangents);
  /// `gradients` are refs; null where there is none.
  bool endBackward(mlir::OpBuilder &builder,
                   llvm::ArrayRef<mlir::Value> gradients);

  /// The refs, as the arguments of a block that was begun.
  llvm::SmallVector<mlir::Value> refsOf(mlir::Block &block) const;

  /// Makes the op of the two blocks.
  mlir::FailureOr<CustomVjpOp> build(mlir::OpBuilder &builder,
                                     bool undefinedCotangents, bool firstOrder,
                                     llvm::ArrayRef<mlir::NamedAttribute> tags);

  std::string str() const { return "custom_vjp \"" + name + "\""; }

private:
  llvm::SmallVector<int64_t> declaredWrites(mlir::Block &block) const;
  bool checkWrites(mlir::Block &block);
  bool checkWrite(mlir::Operation *op, mlir::BlockArgument value);

  std::string name;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> inputs, refs;
  std::unique_ptr<mlir::Region> forward, backward;
  llvm::SmallVector<mlir::Type> results;
  llvm::SmallVector<mlir::Value> saved;
  llvm::SmallVector<int64_t> unchecked;
};

} // namespace tandem

#endif
