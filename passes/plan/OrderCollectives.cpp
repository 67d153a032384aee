//===- OrderCollectives.cpp - which collective starts first ---------------===//
//
// All ranks run one program, so any order is the same on all of them. Those
// with numbers start in the order of these, before those without, as far as
// the data flow allows; the others keep the program's order. What a collective
// needs moves in front of it. From here on no pass changes the order.
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
  SmallVector<Operation *> order() const;

  Block &body;
  SmallVector<Operation *> collectives; ///< in the order of the program
  /// Of each op, the collectives that it follows from.
  DenseMap<Operation *, llvm::SmallSetVector<Operation *, 4>> needs;
};
} // namespace

void CollectiveOrder::findNeeds() {
  for (Operation &op : body) {
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

SmallVector<Operation *> CollectiveOrder::order() const {
  auto number = [](Operation *op) {
    return cast<CollectiveOpInterface>(op).orderNumber().value_or(
        std::numeric_limits<int64_t>::max());
  };
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
      if (isReady(*at) && (best == left.end() || number(*at) < number(*best)))
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
