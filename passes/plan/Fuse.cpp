//===- Fuse.cpp - which units become one ----------------------------------===//
//
// Units::merge knows what can be one kernel; here is what should be.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/FormKernels.h"
#include "passes/plan/Units.h"
#include "passes/target/Target.h"

#include "ir/ReadsViews.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tandem;

static OpClass classOf(Operation *op) {
  if (auto cost = dyn_cast<CostOpInterface>(op))
    return cost.getOpClass();
  return OpClass::Program;
}

/// True for an op of the forward in a program that has both passes.
static bool isForward(Operation *op) {
  auto tag = op->getAttrOfType<StringAttr>(kPassAttr);
  return tag && tag.getValue() == "forward";
}

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// A forward op stays in the forward where that uses it: a kernel of the
/// backward that had it would bring the forward's ops and what the backward
/// makes again from it together, and be run with the first of them. One that
/// only the backward uses stays too, unless it can be computed later from one
/// tensor alone: its operands would live longer.
static bool belongsToForward(const Units &units, Operation *op, unsigned unit) {
  if (!isForward(op) || llvm::any_of(units.ops(unit), isForward))
    return false;
  return units.producers(op).size() > 1 ||
         llvm::any_of(units.users(op), [&](Operation *user) {
           return !units.isRepeated(user) && isForward(user);
         });
}

/// True if another reader of `value` waits for what is made of `user`, so that
/// `value` is written, whatever reads it in its own kernel.
static bool isWrittenAnyway(const Units &units, Operation *value,
                            Operation *user) {
  DenseSet<Operation *> seen{user};
  SmallVector<Operation *> work{user};
  while (!work.empty())
    for (Operation *next : units.users(work.pop_back_val())) {
      if (units.isRepeated(next) || !seen.insert(next).second)
        continue; // the terminator
      if (llvm::is_contained(units.users(value), next))
        return true;
      work.push_back(next);
    }
  return false;
}

/// True if only sums read what `user` makes of `value`, and the kernel of the
/// sums can make it of what it reads instead of it: of `value`, which a sum
/// reads itself, or which is written in any case. So are gradients that are
/// clipped by their norm: to store their squares beside them costs a product on
/// a processor more than the sum.
static bool belongsToSums(const Units &units, Operation *value,
                          Operation *user) {
  auto isSum = [](Operation *op) { return isa<ReductionOpInterface>(op); };
  return llvm::all_of(units.users(user), isSum) &&
         (llvm::any_of(units.users(value), isSum) ||
          (!isForCuda(value) && isWrittenAnyway(units, value, user)));
}

/// Whether the kernel of `anchor` is to take `user`, which reads its op `op`.
static bool takes(const Units &units, Operation *anchor, Operation *op,
                  Operation *user) {
  unsigned one = units.unit(anchor), other = units.unit(user);
  if (isForward(anchor) != isForward(user)) {
    units.keepApart(one, other,
                    "one is of the forward and one of the backward, and the "
                    "kernel would be run with the first of them");
    return false;
  }
  if (!belongsToSums(units, op, user))
    return true;
  units.keepApart(one, other,
                  "only sums read what one makes of the other, and the kernel "
                  "of the sums makes it of what it reads anyway");
  return false;
}

/// Attention takes the permutations of its results (ReorderResults.cpp).
static void fuseReordered(Units &units) {
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (Operation *anchor = units.anchor(unit); anchor && readsViews(anchor))
      for (Operation *user : units.users(anchor))
        if (isa<PermuteOp>(user) && !units.isRepeated(user))
          units.merge(unit, units.unit(user));
}

/// Anchors take what follows them element by element, but not from the forward
/// what the backward makes (again, perhaps, because it is not to be kept).
static void fuseIntoAnchors(Units &units) {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *anchor = units.anchor(unit);
    if (!anchor || anchor->getNumResults() != 1 ||
        classOf(anchor) != OpClass::Contraction)
      continue;
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *op : SmallVector<Operation *>(units.ops(unit)))
        for (Operation *user : units.users(op))
          if (!units.isRepeated(user) && isa<PointwiseOpInterface>(user) &&
              takes(units, anchor, op, user))
            changed |= units.merge(unit, units.unit(user));
    }
  }
}

/// Producers join their consumers, the last first.
static void fuseIntoConsumers(Units &units) {
  SmallVector<Operation *> ops;
  for (unsigned unit = 0; unit < units.size(); ++unit)
    llvm::append_range(ops, units.ops(unit));
  llvm::sort(ops, [&](Operation *a, Operation *b) {
    return units.position(a) > units.position(b);
  });
  for (Operation *op : ops) {
    if (units.anchor(units.unit(op)) == op)
      continue;
    for (Operation *user : units.users(op)) {
      if (units.isRepeated(user))
        continue; // the terminator
      unsigned consumer = units.unit(user);
      if (belongsToForward(units, op, consumer))
        units.keepApart(consumer, units.unit(op),
                        "one is of the forward, where others use it or its "
                        "operands would live longer");
      else
        units.merge(consumer, units.unit(op));
    }
  }
}

/// A reader is tried with this many that follow it.
static constexpr size_t kReadersTried = 8;

/// The large tensors that a unit reads: those of at least half as many elements
/// as the largest value in it.
static SmallVector<Value> largeReads(const Units &units, unsigned unit) {
  SmallVector<Operation *> work(units.ops(unit));
  DenseSet<Operation *> seen;
  SmallVector<Value> reads;
  int64_t most = 1;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    for (Value result : op->getResults())
      most = std::max(most, elementsOf(result));
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && units.isInside(producer, unit))
        work.push_back(producer);
      else
        reads.push_back(operand);
    }
  }
  for (Value read : reads)
    most = std::max(most, elementsOf(read));
  llvm::erase_if(reads,
                 [&](Value read) { return 2 * elementsOf(read) < most; });
  return reads;
}

static bool reducesRows(const Units &units, unsigned unit) {
  return llvm::any_of(units.ops(unit), [](Operation *op) {
    auto reduction = dyn_cast<ReductionOpInterface>(op);
    return reduction &&
           reduction.getReducedDims().back() + 1 ==
               cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  });
}

static bool isOfForward(const Units &units, unsigned unit) {
  return isForward(units.ops(unit).back());
}

/// True if a unit of the forward can wait for one of the backward: the rest of
/// the forward uses nothing large of it. Otherwise what the backward makes
/// would be made early, and kept.
static bool canWait(const Units &units, unsigned forward, unsigned backward) {
  int64_t most = 1;
  for (Operation *op : units.ops(forward))
    most = std::max(most, elementsOf(op->getResult(0)));
  return llvm::all_of(units.ops(forward), [&](Operation *op) {
    return 2 * elementsOf(op->getResult(0)) < most ||
           llvm::all_of(units.users(op), [&](Operation *user) {
             return !isForward(user) || units.unit(user) == forward ||
                    units.unit(user) == backward;
           });
  });
}

/// Loop kernels that read the same large tensor read it once: those of one
/// pass; or, then, where rows are reduced, one of the forward and one of the
/// backward. These can be one only if nothing else is between them, which is
/// at the end of a network: the rows of a loss and those of its gradient.
static void fuseReaders(Units &units, bool acrossPasses) {
  llvm::MapVector<Value, SmallVector<Operation *>> readers;
  for (unsigned unit : units.order()) {
    if (units.anchor(unit))
      continue;
    Operation *first = units.ops(unit).front();
    for (Value read : largeReads(units, unit)) {
      SmallVector<Operation *> &list = readers[throughFreeViews(read)];
      if (list.empty() || list.back() != first)
        list.push_back(first);
    }
  }
  for (auto &[value, list] : readers)
    for (size_t i = 0; i + 1 < list.size(); ++i)
      for (size_t j = i + 1; j < std::min(list.size(), i + 1 + kReadersTried);
           ++j) {
        // Either may be a part of another by now. For processors it stays so:
        // what it would take there has not been measured.
        unsigned x = units.unit(list[i]), y = units.unit(list[j]);
        if (x == y || (!isForCuda(list[i]) && (units.ops(x)[0] != list[i] ||
                                               units.ops(y)[0] != list[j])))
          continue;
        bool isOnePass = isForward(units.ops(x).front()) ==
                             isForward(units.ops(y).front()) &&
                         isOfForward(units, x) == isOfForward(units, y);
        if (isOnePass != !acrossPasses)
          continue;
        if (isOnePass || ((reducesRows(units, x) || reducesRows(units, y)) &&
                          (isOfForward(units, x) ? canWait(units, x, y)
                                                 : canWait(units, y, x))))
          units.merge(x, y);
        else
          units.keepApart(x, y,
                          "one is of the forward and one of the backward, and "
                          "they do not both end a network");
      }
}

/// What is read, free views aside, for `value` of a unit at its own index: by
/// pointwise ops and free views alone, none of which is the anchor.
static void addOwnReads(const Units &units, unsigned unit, Value value,
                        DenseSet<Value> &reads) {
  SmallVector<Value> work{value};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    auto view = dyn_cast_or_null<ViewOpInterface>(op);
    if (!op || !units.isInside(op, unit))
      reads.insert(throughFreeViews(next));
    else if ((isa<PointwiseOpInterface>(op) || (view && view.isFree())) &&
             seen.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
}

/// Whether a loop reads nothing large but what a product's epilogue reads, and
/// makes each result of some of that, element by element.
static bool readsLess(const Units &units, unsigned loop,
                      const DenseSet<Value> &epilogue) {
  return llvm::all_of(largeReads(units, loop),
                      [&](Value read) {
                        return epilogue.contains(throughFreeViews(read));
                      }) &&
         llvm::all_of(units.results(loop), [&](Value result) {
           DenseSet<Value> reads;
           addOwnReads(units, loop, result, reads);
           return llvm::any_of(
               reads, [&](Value read) { return epilogue.contains(read); });
         });
}

/// For CUDA a product whose epilogue reads a tensor takes what others make of
/// that element by element: they would read it again. So gelu, made again for
/// the gradient of a weight, is made beside gelu's own gradient.
static void fuseBesideProducts(Units &units) {
  llvm::MapVector<Value, SmallVector<Operation *>> loops;
  for (unsigned unit : units.order()) {
    ArrayRef<Operation *> ops = units.ops(unit);
    auto isPointwise = [](Operation *op) {
      return isa<PointwiseOpInterface>(op);
    };
    if (isForCuda(ops.front()) && llvm::all_of(ops, isPointwise))
      for (Value read : largeReads(units, unit))
        loops[throughFreeViews(read)].push_back(ops.front());
  }
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *anchor = units.anchor(unit);
    if (!isa_and_nonnull<MatmulOp>(anchor) || !isForCuda(anchor))
      continue;
    DenseSet<Value> epilogue;
    for (Value result : units.results(unit))
      addOwnReads(units, unit, result, epilogue);
    for (auto &[value, list] : loops)
      for (Operation *first : list) {
        unsigned loop = units.unit(first);
        if (epilogue.contains(value) && !units.anchor(loop) &&
            isForward(first) == isForward(anchor) &&
            isOfForward(units, loop) == isForward(anchor) &&
            readsLess(units, loop, epilogue))
          units.merge(unit, loop, /*beside=*/true);
      }
  }
}

/// A product of bytes takes the magnitudes of what it makes of which it finds
/// the largest (fuseTileSums), before the loops that read them do.
static void fuseMagnitudes(Units &units) {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *anchor = units.anchor(unit);
    if (!makesTileSums(anchor) ||
        !getElementTypeOrSelf(anchor->getResult(0)).isF32())
      continue;
    auto isTileMax = [&](Operation *user) {
      return isa<ReduceMaxOp>(user) &&
             units.ops(units.unit(user)).size() == 1 &&
             isForward(user) == isForward(anchor) &&
             summedInTiles(user->getResult(0), anchor);
    };
    for (Operation *op : SmallVector<Operation *>(units.ops(unit)))
      for (Operation *user : units.users(op)) {
        if (units.isRepeated(user) || units.unit(user) == unit ||
            !isa<PointwiseOpInterface>(user) ||
            !llvm::all_of(units.users(user), isTileMax))
          continue;
        if (units.merge(unit, units.unit(user)))
          for (Operation *largest : SmallVector<Operation *>(units.users(user)))
            units.merge(unit, units.unit(largest), /*beside=*/true);
      }
  }
}

/// A product takes the parts of sums over rows of what it makes, which nobody
/// else reads on the way: the gradient of a bias in front of it.
static void fuseTileSums(Units &units) {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *anchor = units.anchor(unit);
    if (!makesTileSums(anchor))
      continue;
    for (Operation *op : SmallVector<Operation *>(units.ops(unit)))
      for (Operation *user : units.users(op)) {
        if (units.isRepeated(user) || user->getNumResults() != 1 ||
            units.unit(user) == unit ||
            units.ops(units.unit(user)).size() != 1 ||
            isForward(user) != isForward(anchor))
          continue;
        if (summedInTiles(user->getResult(0), anchor))
          units.merge(unit, units.unit(user), /*beside=*/true);
      }
  }
}

/// Single elements that are returned and computed of nothing but arguments, and
/// what is computed of these alone, become one kernel, though they read nothing
/// in common: what an optimizer counts for each parameter is no launch for
/// each, and the corrections that follow from it are not made anew for every
/// element. Before anything else is merged: units are ops.
static void fuseScalars(Units &units) {
  DenseSet<Operation *> scalars;
  auto isScalar = [&](Operation *op) {
    ArrayRef<Operation *> producers = units.producers(op);
    bool isReturned = llvm::any_of(units.users(op), [](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>();
    });
    return isa<PointwiseOpInterface>(op) && !isForward(op) &&
           elementsOf(op->getResult(0)) == 1 &&
           (isReturned || !producers.empty()) &&
           llvm::all_of(producers, [&](Operation *producer) {
             return scalars.contains(producer);
           });
  };
  std::optional<unsigned> last;
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    Operation *op = units.ops(unit).front();
    if (!isScalar(op))
      continue;
    scalars.insert(op);
    if (!last || !units.merge(*last, unit))
      last = unit;
  }
}

void tandem::fuse(Units &units) {
  fuseScalars(units);
  fuseReordered(units);
  fuseIntoAnchors(units);
  fuseMagnitudes(units);
  fuseIntoConsumers(units);
  fuseReaders(units, /*acrossPasses=*/false);
  fuseReaders(units, /*acrossPasses=*/true);
  fuseBesideProducts(units);
  fuseTileSums(units);
}
