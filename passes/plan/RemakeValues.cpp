//===- RemakeValues.cpp - readers make cheap values again -----------------===//
//
// A value that one kernel makes of narrower ones element by element, and that
// others read, crosses memory in more bytes than what it is made of:
//
//   kernel (%x: bf16) { %s = sigmoid(cast %x): f32 ... yield %s, ... }
//   kernel (%x: bf16, %s: f32) { ... }
//
// Here the ops that make it are copied for each kernel that reads it, so that
// the kernel makes it of %x, and nobody writes it. Which kernels there will be
// is found by forming them (Units.h); FormKernels does so again afterwards.
//
// For CUDA: there a function of one element takes less time than 4 bytes that
// are written and read. On processors it does not.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/KernelBytes.h"
#include "passes/plan/Units.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_REMAKEVALUES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Smaller values stay in a cache.
static constexpr int64_t kSmallest = 1 << 20;
/// The most ops that a reader repeats, and the most of them that are functions.
static constexpr size_t kMostOps = 24, kMostFunctions = 4;

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// What a unit reads, through free views.
static DenseSet<Value> readsOf(const Units &units, unsigned unit) {
  DenseSet<Value> reads;
  DenseSet<Operation *> seen;
  SmallVector<Operation *> work(units.ops(unit));
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && units.isInside(producer, unit))
        work.push_back(producer);
      else
        reads.insert(throughFreeViews(operand));
    }
  }
  return reads;
}

/// What the units are worth: the bytes that they read and write.
static int64_t bytesMoved(const Units &units) {
  int64_t bytes = 0;
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    for (Value result : units.results(unit))
      bytes += bytesOf(result);
    for (Value read : readsOf(units, unit))
      bytes += bytesOf(read);
  }
  return bytes;
}

namespace {
/// How one unit makes a value again.
struct Recipe {
  llvm::SetVector<Operation *> ops; ///< pointwise ops and views
  int64_t reads = 0;                ///< bytes that the unit did not read before
  unsigned functions = 0;           ///< ops that are expensive
};

class Remaker {
public:
  Remaker(func::FuncOp func, const Units &units) : func(func), units(units) {}
  /// Changes the program; returns how many values are made again.
  unsigned run();
  /// As if it had not been changed.
  void undo();

private:
  bool isCandidate(Value value) const;
  bool findReaders(Value value, llvm::SetVector<Operation *> &readers) const;
  bool isInMemory(Value value) const;
  const DenseSet<Value> &readsOf(unsigned unit);
  bool findRecipe(Value value, unsigned unit, int64_t limit, Recipe &recipe);
  void giveOwn(unsigned unit, ArrayRef<Value> values,
               const llvm::SetVector<Operation *> &readers,
               const llvm::SetVector<Operation *> &recipe);

  func::FuncOp func;
  const Units &units;
  DenseMap<unsigned, DenseSet<Value>> reads;
  SmallVector<Operation *> copies;
  SmallVector<std::pair<OpOperand *, Value>> changed; ///< and what it was
};
} // namespace

/// The results of a kernel, arguments, and what anchors read are in memory.
bool Remaker::isInMemory(Value value) const {
  Operation *op = throughFreeViews(value).getDefiningOp();
  if (!op)
    return true;
  return !units.isRepeated(op) &&
         llvm::is_contained(units.results(units.unit(op)),
                            throughFreeViews(value));
}

const DenseSet<Value> &Remaker::readsOf(unsigned unit) {
  auto [found, isNew] = reads.try_emplace(unit);
  if (isNew)
    found->second = ::readsOf(units, unit);
  return found->second;
}

bool Remaker::isCandidate(Value value) const {
  Operation *op = value.getDefiningOp();
  return isa<PointwiseOpInterface>(op) && bytesOf(value) >= kSmallest &&
         op->getNumResults() == 1 && !units.choices(units.unit(op));
}

/// The ops of other units that read the value, each element once and as
/// elements of a loop. False if there is another reader.
bool Remaker::findReaders(Value value,
                          llvm::SetVector<Operation *> &readers) const {
  unsigned own = units.unit(value.getDefiningOp());
  llvm::SetVector<Value> shown;
  shown.insert(value);
  for (size_t i = 0; i < shown.size(); ++i)
    for (Operation *user : shown[i].getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        return false;
      if (units.isRepeated(user)) {
        if (user->getNumResults() != 1 ||
            elementsOf(user->getResult(0)) != elementsOf(value))
          return false;
        shown.insert(user->getResult(0));
        continue;
      }
      unsigned unit = units.unit(user);
      if (unit == own)
        continue;
      if (units.anchor(unit) == user || standsAlone(user) ||
          units.choices(unit) || units.stream(unit) != units.stream(own) ||
          !isa<PointwiseOpInterface, ReductionOpInterface>(user))
        return false;
      readers.insert(user);
    }
  return !readers.empty();
}

bool Remaker::findRecipe(Value value, unsigned unit, int64_t limit,
                         Recipe &recipe) {
  SmallVector<Value> work{value};
  DenseSet<Value> leaves;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    Value source = throughFreeViews(next);
    bool isFirst = next == value;
    if (!isFirst && (!op || readsOf(unit).contains(source) ||
                     (isInMemory(next) && bytesOf(source) < limit) ||
                     (!isa<ConstantOp, PointwiseOpInterface>(op) &&
                      !(isa<ViewOpInterface>(op) && units.isRepeated(op))))) {
      if (leaves.insert(source).second && !readsOf(unit).contains(source))
        recipe.reads += bytesOf(source) * (isInMemory(next) ? 1 : 2);
      continue;
    }
    if (isa<ConstantOp>(op) || !recipe.ops.insert(op))
      continue;
    auto pointwise = dyn_cast<PointwiseOpInterface>(op);
    if (pointwise && isExpensive(pointwise)) {
      ++recipe.functions;
      if (getElementTypeOrSelf(op->getResult(0)).isF64())
        return false;
    }
    if (recipe.ops.size() > kMostOps || recipe.functions > kMostFunctions ||
        op->getNumResults() != 1)
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return recipe.reads <= limit;
}

/// Copies what makes `values`, and what shows them to the readers, for these.
/// Each copy stands behind the op that it is of.
void Remaker::giveOwn(unsigned unit, ArrayRef<Value> values,
                      const llvm::SetVector<Operation *> &readers,
                      const llvm::SetVector<Operation *> &recipe) {
  Operation *tagged = units.ops(unit).back();
  IRMapping own;
  auto copyOf = [&](Operation *op) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Operation *copy = b.clone(*op, own);
    for (StringRef tag : {kPassAttr, kStreamAttr}) {
      copy->removeAttr(tag);
      if (Attribute value = tagged->getAttr(tag))
        copy->setAttr(tag, value);
    }
    copies.push_back(copy);
  };
  SmallVector<Operation *> ordered(recipe.getArrayRef());
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::for_each(ordered, copyOf);
  // Only the values themselves are read anew: the rest is as it was.
  DenseMap<Value, bool> shows;
  for (Value value : values)
    shows[value] = true;
  std::function<bool(Value)> doesShow = [&](Value value) {
    if (auto found = shows.find(value); found != shows.end())
      return found->second;
    Operation *op = value.getDefiningOp();
    bool does = op && units.isRepeated(op) &&
                llvm::count_if(op->getOperands(), doesShow) > 0;
    if (does && !recipe.contains(op))
      copyOf(op);
    return shows[value] = does;
  };
  for (Operation *reader : readers)
    for (OpOperand &operand : reader->getOpOperands())
      if (Value old = operand.get(); doesShow(old)) {
        changed.push_back({&operand, old});
        operand.set(own.lookup(old));
      }
}

unsigned Remaker::run() {
  struct Reader {
    SmallVector<Value> values;
    llvm::SetVector<Operation *> ops, recipe;
  };
  llvm::MapVector<unsigned, Reader> all;
  unsigned count = 0;
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    if (units.ops(unit).empty())
      continue;
    for (Value value : units.results(unit)) {
      llvm::SetVector<Operation *> readers;
      if (!isCandidate(value) || !findReaders(value, readers))
        continue;
      llvm::MapVector<unsigned, Recipe> recipes;
      if (!llvm::all_of(readers, [&](Operation *reader) {
            unsigned of = units.unit(reader);
            auto [found, isNew] = recipes.try_emplace(of);
            return !isNew ||
                   findRecipe(value, of, bytesOf(value), found->second);
          }))
        continue;
      ++count;
      for (auto &[of, recipe] : recipes) {
        all[of].values.push_back(value);
        all[of].recipe.insert_range(recipe.ops);
        for (Operation *reader : readers)
          if (units.unit(reader) == of)
            all[of].ops.insert(reader);
      }
    }
  }
  for (auto &[unit, reader] : all)
    giveOwn(unit, reader.values, reader.ops, reader.recipe);
  return count;
}

void Remaker::undo() {
  for (auto [operand, old] : llvm::reverse(changed))
    operand->set(old);
  for (Operation *copy : llvm::reverse(copies))
    copy->erase();
}

namespace {
struct RemakeValues : tandem::impl::RemakeValuesBase<RemakeValues> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (!isForCuda(func))
      return;
    FailureOr<RunConditions> before = RunConditions::of(func);
    if (failed(before))
      return signalPassFailure();
    Units units(func, *before);
    fuse(units);
    int64_t bytes = bytesMoved(units);
    Remaker remaker(func, units);
    unsigned count = remaker.run();
    if (count == 0)
      return;
    FailureOr<RunConditions> after = RunConditions::of(func);
    if (failed(after))
      return signalPassFailure();
    Units changed(func, *after);
    fuse(changed);
    // Kernels may have become others than were expected.
    if (bytesMoved(changed) >= bytes) {
      remaker.undo();
      return;
    }
    remade += count;
    eraseDeadOps(func);
  }
};
} // namespace
