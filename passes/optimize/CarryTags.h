//===- CarryTags.h - tags of ops that are folded and merged ---------------===//
//
// Tags (ir/Tags.h) would keep equal ops apart, so they are taken off while ops
// are rewritten, and put on what is left. Of ops that become one, what one says
// about saving holds, and two that contradict each other are an error; a region
// has an op only if all that became it, of the forward, were of that region.
// An op that only takes the place of another one is not computed for it: it
// gets no more than 'tandem.save', which is about a value.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_OPTIMIZE_CARRYTAGS_H
#define TANDEM_PASSES_OPTIMIZE_CARRYTAGS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>
#include <string>

namespace tandem {

class TagCarrier : public mlir::RewriterBase::Listener {
public:
  /// Takes the tags off the ops of `func`, which still say their pass.
  explicit TagCarrier(mlir::func::FuncOp func);

  using Listener::notifyOperationReplaced;

  /// Merges equal ops; returns how many became one with another.
  int64_t merge();
  /// Puts the tags on; fails if ops that became one contradict each other.
  mlir::LogicalResult restore();

  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint) final;
  void notifyOperationReplaced(mlir::Operation *op,
                               mlir::ValueRange values) final;
  void notifyOperationErased(mlir::Operation *op) final;
  void notifyPatternBegin(const mlir::Pattern &pattern,
                          mlir::Operation *op) final;
  void notifyPatternEnd(const mlir::Pattern &pattern,
                        mlir::LogicalResult status) final;

private:
  /// An op that says something, and where it stands.
  struct Said {
    std::string where;
    mlir::LocationAttr loc;
  };
  struct Tags {
    bool isForward = false;
    mlir::StringAttr region;
    std::optional<Said> saved, offloaded, recomputed;
  };
  static void add(Tags &tags, const Tags &more);

  mlir::func::FuncOp func;
  llvm::DenseMap<mlir::Operation *, Tags> tags;
  /// What a pattern has made, and the tags of the op that it matched.
  llvm::SmallVector<mlir::Operation *> fresh;
  Tags root;
  bool isMerging = false;
  int64_t merged = 0;
};

} // namespace tandem

#endif
