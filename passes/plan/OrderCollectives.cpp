//===- OrderCollectives.cpp - which collective starts first ---------------===//
//
// All ranks run one program, so any order is the same on all of them. Those
// with numbers start in the order of these, before those without, as far as
// the data flow allows; the others in the order in which their operands are
// made, since the program may have them all at its end. What a collective needs
// moves in front of it. From here on no pass changes the order.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/Collectives.h"

#include "llvm/ADT/SetVector.h"

#include <limits>

namespace tandem {
#define GEN_PASS_DEF_ORDERCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

CollectiveOpInterface tandem::collectiveOf(KernelOp kernel) {
  return dyn_cast<CollectiveOpInterface>(kernel.getBody().front().front());
}

bool tandem::standsAlone(KernelOp kernel) {
  return standsAlone(&kernel.getBody().front().front());
}

namespace {
class CollectiveOrder {
public:
  explicit CollectiveOrder(Block &body) : body(body) {}
  bool apply();

private:
  void findNeeds();
  /// What to compare: a number, or where the operand is made; of an argument
  /// the op's own place.
  std::pair<int64_t, int64_t> keyOf(Operation *op) const;
  SmallVector<Operation *> order() const;

  Block &body;
  SmallVector<Operation *> collectives; ///< in the order of the program
  /// Of each op, the collectives that it follows from.
  DenseMap<Operation *, llvm::SmallSetVector<Operation *, 4>> needs;
  DenseMap<Operation *, int64_t> places; ///< of all ops
};
} // namespace

void CollectiveOrder::findNeeds() {
  for (Operation &op : body) {
    places[&op] = static_cast<int64_t>(places.size());
    auto &own = needs[&op];
    op.walk([&](Operation *inside) {
      for (Value operand : inside->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && maker->getBlock() == &body && maker != &op) {
          own.insert(needs[maker].begin(), needs[maker].end());
          if (communicates(maker))
            own.insert(maker);
        }
    });
    if (communicates(&op))
      collectives.push_back(&op);
  }
}

std::pair<int64_t, int64_t> CollectiveOrder::keyOf(Operation *op) const {
  int64_t made = -1;
  for (Value operand : op->getOperands())
    if (auto maker = places.find(operand.getDefiningOp());
        maker != places.end())
      made = std::max(made, maker->second);
  return {cast<CollectiveOpInterface>(op).orderNumber().value_or(
              std::numeric_limits<int64_t>::max()),
          made < 0 ? places.lookup(op) : made};
}

SmallVector<Operation *> CollectiveOrder::order() const {
  SmallVector<Operation *> left = collectives, ordered;
  llvm::SmallDenseSet<Operation *> done;
  while (!left.empty()) {
    // A barrier holds back what stands behind it.
    auto isReady = [&](Operation *op) {
      return llvm::all_of(needs.find(op)->second, [&](Operation *before) {
        return done.contains(before);
      });
    };
    auto **best = left.end();
    for (auto **at = left.begin(); at != left.end(); ++at) {
      if (isReady(*at) && (best == left.end() || keyOf(*at) < keyOf(*best)))
        best = at;
      if (isa<BarrierOp>(*at))
        break;
    }
    done.insert(*best);
    ordered.push_back(*best);
    left.erase(best);
  }
  return ordered;
}

/// Returns whether ops moved.
bool CollectiveOrder::apply() {
  findNeeds();
  if (collectives.size() < 2)
    return false;
  SmallVector<Operation *> ordered = order();
  if (ordered == collectives)
    return false;
  // What one needs, in the order of the program, and then it.
  SmallVector<Operation *> all;
  llvm::SmallPtrSet<Operation *, 32> seen;
  for (Operation *collective : ordered) {
    SmallVector<Operation *> work{collective}, group;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!seen.insert(op).second)
        continue;
      group.push_back(op);
      op->walk([&](Operation *inside) {
        for (Value operand : inside->getOperands())
          if (Operation *maker = operand.getDefiningOp();
              maker && maker->getBlock() == &body)
            work.push_back(maker);
      });
    }
    llvm::sort(group, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    llvm::append_range(all, group);
  }
  Operation *front = &body.front();
  for (Operation *op : all)
    if (op == front)
      front = front->getNextNode();
    else
      op->moveBefore(front);
  return true;
}

namespace {
struct OrderCollectives : tandem::impl::OrderCollectivesBase<OrderCollectives> {
  void runOnOperation() final {
    moved += CollectiveOrder(getOperation().getBody().front()).apply();
  }
};
} // namespace
