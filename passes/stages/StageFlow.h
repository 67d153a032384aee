//===- StageFlow.h - what of a graph goes between stages ------------------===//
//
// Stages are pieces of the graph in the order of its ops, but for *floating*
// ops: constants, and what is light and follows from inputs and states alone
// (indices, masks, random bits). Those are computed in each stage that needs
// them. So what crosses is made by other ops, or is a param with a gradient.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_STAGES_STAGEFLOW_H
#define TANDEM_PASSES_STAGES_STAGEFLOW_H

#include "ir/Signature.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace tandem {

class StageFlow {
public:
  explicit StageFlow(mlir::func::FuncOp graph);

  /// The ops but the terminator, in order.
  llvm::ArrayRef<mlir::Operation *> ops() const { return all; }
  bool isFloating(mlir::Operation *op) const { return floating.contains(op); }
  /// True if a stage can compute or read the value without another stage.
  bool isFree(mlir::Value value) const;
  /// The values that the op reads, in its regions, too.
  static llvm::SetVector<mlir::Value> operandsOf(mlir::Operation *op);

  /// What may cross, with the positions in `ops()` of its first and its last
  /// op: of what makes it, or of its first reader, if it is a param.
  struct Carried {
    unsigned first, last;
  };
  const llvm::MapVector<mlir::Value, Carried> &carried() const {
    return values;
  }

  /// A param or state that the graph overwrites by what does not float: the
  /// positions between which no stage may end.
  struct Bound {
    mlir::BlockArgument argument;
    unsigned first, last;
  };
  llvm::ArrayRef<Bound> bound() const { return states; }

  /// The position of an op in `ops()`.
  unsigned positionOf(mlir::Operation *op) const { return positions.at(op); }

private:
  void findFloating();
  void findCarried();
  void findBound();
  bool isSource(mlir::BlockArgument argument) const;

  mlir::func::FuncOp graph;
  llvm::SmallVector<mlir::Operation *> all;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseSet<mlir::Operation *> floating;
  /// Overwritten by what is computed from activations.
  llvm::DenseSet<mlir::Value> written;
  llvm::MapVector<mlir::Value, Carried> values;
  llvm::SmallVector<Bound> states;
};

} // namespace tandem

#endif
