//===- Functionalizer.h - storage becomes values --------------------------===//
//
// Walks a block once, in order, and keeps for every storage the value that it
// holds at that point (Views.h). A read is that value seen through the ref's
// view; a write makes a new value of the whole storage. A handle is a ref whose
// view itself can change. The function (FunctionalizeRefs.cpp) and the regions
// of a custom_vjp (FunctionalizeCustom.cpp) are blocks alike.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_FUNCTIONALIZE_FUNCTIONALIZER_H
#define TANDEM_PASSES_FUNCTIONALIZE_FUNCTIONALIZER_H

#include "passes/functionalize/Views.h"

#include "ir/Ops.h"

#include "llvm/ADT/MapVector.h"

namespace tandem {

class Functionalizer {
public:
  explicit Functionalizer(mlir::Block &block)
      : block(block), builder(block.getParentOp()->getContext()),
        views(builder) {}

  /// A ref that comes in from outside or is made here, and what it is now.
  struct Handle {
    View *before, *now;
    mlir::Operation *set = nullptr;          ///< the last set_
    mlir::Operation *transpose = nullptr;    ///< the last transpose_
    mlir::Operation *visibleWrite = nullptr; ///< the first through it
  };

  /// A storage of this block that the backward of a custom_vjp reads or writes
  /// as a private copy.
  struct PrivateState {
    CustomVjpOp op;
    StorageState *storage;
    unsigned version; ///< of the storage when it was copied
    /// The backward's last write to it, as a message names it, and its place.
    std::string write; ///< empty: it is not written
    mlir::Location writeLoc;
  };

  /// Makes `ref` a handle that shows `view`.
  void bind(mlir::Value ref, View *view);
  /// Follows gradients from `value` on.
  void addTracked(mlir::Value value) { tracked.insert(value); }
  bool isTracked(mlir::Value value) const { return tracked.contains(value); }

  /// Visits every op but the terminator.
  mlir::LogicalResult run();
  /// The view that a ref shows at the end of its block.
  View *viewOf(mlir::Value ref) const { return shown.lookup(ref); }
  /// The handle that began as `ref`.
  const Handle &handleOf(mlir::Value ref) const {
    return handles[handleIndex.lookup(ref)];
  }
  /// Removes the ops on refs; their results must not be used any more.
  void eraseRefOps();

  mlir::Block &block;
  mlir::OpBuilder builder;
  Views views;
  std::vector<PrivateState> privateStates;

private:
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitRead(ReadOp read);
  mlir::LogicalResult visitWrite(WriteOp write);
  mlir::LogicalResult visitResize(ResizeOp resize);
  mlir::LogicalResult visitHandle(mlir::Operation *op);
  mlir::LogicalResult visitCustom(CustomVjpOp op);
  mlir::LogicalResult visitRegions(mlir::Operation *op);
  /// Replaces the value of `storage`; the gradient passes to the old one.
  void overwriteHidden(StorageState *storage, mlir::Value value,
                       mlir::Operation *op);
  void track(mlir::Operation *op);
  void trackBetween(mlir::Operation *before, mlir::Operation *end,
                    bool isHidden);

  std::vector<Handle> handles;
  llvm::DenseMap<mlir::Value, unsigned> handleIndex;
  llvm::DenseMap<mlir::Value, View *> shown;
  /// Refs of handles that have changed since, by the op that changed them.
  llvm::DenseMap<mlir::Value, mlir::Operation *> stale;
  /// Values through which gradients flow to an argument that requires one.
  llvm::DenseSet<mlir::Value> tracked;
  llvm::SmallVector<mlir::Operation *> dead;
};

/// Rewrites a custom_vjp with refs into its functional form. `valueOf` gives
/// the view that a ref operand shows.
struct FunctionalCustom {
  CustomVjpOp op; ///< the new op, in front of the old one
  /// The storages that the forward wrote, and their new values.
  llvm::SmallVector<std::pair<StorageState *, mlir::Value>> written;
  llvm::SmallVector<Functionalizer::PrivateState> privateStates;
};
mlir::FailureOr<FunctionalCustom> functionalizeCustom(CustomVjpOp op,
                                                      Functionalizer &outer);

} // namespace tandem

#endif
