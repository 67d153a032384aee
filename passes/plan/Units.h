//===- Units.h - groups of ops on the way to kernels ----------------------===//
#ifndef TANDEM_PASSES_PLAN_UNITS_H
#define TANDEM_PASSES_PLAN_UNITS_H

#include "ir/Ops.h"
#include "passes/plan/LoopNest.h"
#include "passes/plan/RunConditions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// What fusion decided against, for those who ask (ExplainFusion.h): the ops of
/// two units as they were then, and why.
struct FusionLog {
  struct Refusal {
    llvm::SmallVector<mlir::Operation *> ops[2];
    llvm::StringRef why;
  };
  std::vector<Refusal> refusals;
};

/// The units of a function's body. Starts with one unit per op that is not
/// repeated; merge() joins two where the result can be one kernel. The ops of a
/// unit are of one stream and run under one condition; an op with choices has a
/// unit of its own.
class Units {
public:
  /// `conditions` must outlive the units, and so must `log`, unless it is null.
  Units(mlir::func::FuncOp func, const RunConditions &conditions,
        FusionLog *log = nullptr);

  /// Joins two units if the result can be one kernel and no cycle arises;
  /// returns whether it did. `into` keeps its number. What joins an anchor
  /// follows it, or may stand `beside` it: it has as many elements.
  bool merge(unsigned into, unsigned from, bool beside = false);
  /// Two units that could perhaps be one are not to be: `why` is a part of a
  /// sentence, and lives as long as the program.
  void keepApart(unsigned a, unsigned b, llvm::StringRef why) const;

  /// True if the op is repeated in every unit that uses it (or is a free view).
  bool isRepeated(mlir::Operation *op) const { return !unitOf.contains(op); }
  unsigned unit(mlir::Operation *op) const { return unitOf.lookup(op); }
  /// The ops of a unit in program order; empty if it was merged into another.
  llvm::ArrayRef<mlir::Operation *> ops(unsigned unit) const {
    return members[unit];
  }
  /// True if something in the unit stands beside its anchor.
  bool isBeside(unsigned unit) const { return withBeside.contains(unit); }
  /// The unit's contraction, window or indexed op; null in a loop kernel.
  mlir::Operation *anchor(unsigned unit) const { return anchors[unit]; }
  unsigned size() const { return members.size(); }
  /// The stream, the condition and the choices of a unit (RunConditions.h).
  int64_t stream(unsigned unit) const;
  mlir::ArrayAttr conditionOf(unsigned unit) const {
    return conditions[members[unit].front()];
  }
  mlir::ArrayAttr choices(unsigned unit) const {
    return conditions.choices(members[unit].front());
  }

  /// The ops, not repeated, that use an op's results or give its operands,
  /// through repeated ones; in program order. The terminator counts as a user.
  llvm::ArrayRef<mlir::Operation *> users(mlir::Operation *op) const {
    return realUsers.find(op)->second;
  }
  llvm::ArrayRef<mlir::Operation *> producers(mlir::Operation *op) const {
    return realProducers.find(op)->second;
  }

  /// True if `op` would stand in the kernel of `unit` when a value of it is
  /// used there.
  bool isInside(mlir::Operation *op, unsigned unit) const;
  /// The unit's values that are used outside of it, in program order.
  llvm::SmallVector<mlir::Value> results(unsigned unit) const;
  /// The units in an order of execution: as in the program where that is free.
  llvm::SmallVector<unsigned> order() const;
  unsigned position(mlir::Operation *op) const { return positions.lookup(op); }

private:
  static bool isAnchor(mlir::Operation *op);
  /// Joins two units; or returns why they cannot be one.
  llvm::StringRef mergeOrSay(unsigned into, unsigned from, bool beside);
  void decideRepeated(mlir::Block &body);
  void decideBytes(mlir::Block &body);
  bool isReadAsBytes(mlir::Operation *cast) const;
  bool turnsBytes(unsigned unit) const;
  /// Why both would be too much for one kernel; empty if they are not.
  llvm::StringRef tooLarge(unsigned into, unsigned from) const;
  bool mustExist(mlir::Value value) const;
  bool isReadInPlace(mlir::Operation *op) const;
  bool crossesStreams(mlir::Operation *op) const;
  /// What lies between two units, by rank.
  struct Between {
    /// True if a path leads from the first to the second through others.
    bool isPath = false;
    /// What is between them and leads to the second; `isForward`: what follows
    /// the first. Complete where there is no path.
    llvm::DenseSet<unsigned> units;
    bool isForward = false;
  };
  Between findBetween(unsigned before, unsigned after) const;
  void rank(unsigned unit, unsigned first, unsigned last,
            const Between &between);
  bool isKernel(unsigned unit, bool beside) const;
  bool storesReordered(unsigned unit) const;
  bool computesInVain(unsigned unit) const;

  mlir::MLIRContext *context;
  const RunConditions &conditions;
  FusionLog *log;
  llvm::DenseMap<mlir::Operation *, unsigned> positions, unitOf;
  llvm::DenseSet<mlir::Operation *> repeated;
  /// Casts of which products read the bytes.
  llvm::DenseSet<mlir::Operation *> byteCasts;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 4>>
      realUsers, realProducers;
  /// To how many elements views pad a producer's value on the way to a user.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Operation *>, int64_t>
      padding;
  std::vector<llvm::SmallVector<mlir::Operation *>> members;
  /// An order of execution of the units as they are, kept while they are
  /// merged: a unit's rank is above those of what it uses. And the units by
  /// rank, with those that are gone anywhere.
  std::vector<unsigned> ranks, ranked;
  llvm::SmallVector<mlir::Operation *> anchors;
  llvm::DenseSet<unsigned> withBeside;
};

/// True if elements that are neighbours along the last dimension of the view's
/// result are neighbours along the last dimension of its operand, and all
/// others are at distances that do not change.
bool keepsRows(ViewOpInterface view);

/// Merges units greedily: single elements, pointwise ops into the anchors they
/// follow, producers into their consumers, and then readers of one tensor.
void fuse(Units &units);

} // namespace tandem

#endif
