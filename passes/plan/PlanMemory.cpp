//===- PlanMemory.cpp - where every value of a program lives --------------===//
#include "passes/plan/PlanMemory.h"
#include "ir/Signature.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/LoopNest.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// True if the kernel reads its input only at the index at which it writes the
/// result, before it does: the result can overwrite the input.
static bool canOverwrite(KernelOp kernel, unsigned result, unsigned input) {
  if (kernel.getResult(result).getType() != kernel.getInputs()[input].getType())
    return false;
  Block &body = kernel.getBody().front();
  BlockArgument argument = body.getArgument(input);
  Operation *anchor = nullptr;
  for (Operation &op : body)
    if (auto cost = dyn_cast<CostOpInterface>(op)) {
      OpClass opClass = cost.getOpClass();
      if (opClass == OpClass::Contraction || opClass == OpClass::Window ||
          opClass == OpClass::Indexed)
        anchor = &op;
    }
  if (anchor) {
    // The anchor reads its operands at any time.
    SmallVector<Value> work(anchor->getOperands());
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (value == argument)
        return false;
      if (Operation *op = value.getDefiningOp())
        llvm::append_range(work, op->getOperands());
    }
  }
  SmallVector<Value> results(body.getTerminator()->getOperands());
  auto nest = findLoopNest(
      results,
      [&](Operation *op) { return op->getBlock() == &body && op != anchor; },
      kernel.getContext());
  if (!nest)
    return false;
  const LoopNest::Root &root = nest->roots[result];
  auto position = [&](ArrayRef<AffineExpr> index, Value value) {
    return simplifyIndex(
        linearize(index, typeOf(value).getShape(), kernel.getContext()),
        nest->sizes);
  };
  // Loops of a later level would read what this one has overwritten.
  if (root.isFull && root.level != nest->levels)
    return false;
  AffineExpr own = position(root.index, root.value);
  for (const LoopNest::Access &read : nest->reads)
    if (read.value == argument &&
        (position(read.place.index, argument) != own ||
         !read.place.guards.empty()))
      return false;
  return true;
}

namespace {
/// A buffer of the arena: one value, or several that overwrite each other.
struct Life {
  int64_t bytes, first, last, offset;
};

class Planner {
public:
  explicit Planner(func::FuncOp func) : func(func), b(func.getContext()) {}
  void plan();

private:
  void findLifetimes();
  void placeResults();
  void placeInArena();
  int64_t assignOffsets();
  int64_t liveBytes(bool aligned);
  bool overwrites(unsigned kernel, unsigned result, Value source);
  BufferAttr buffer(BufferPlace place, int64_t position) {
    return BufferAttr::get(func.getContext(), place, position);
  }

  func::FuncOp func;
  Builder b;
  SmallVector<KernelOp> kernels;
  /// Sources (arguments, constants, kernel results; never views): the kernels
  /// that read them, rising.
  DenseMap<Value, SmallVector<int64_t>> readers;
  DenseMap<Value, BufferAttr> places;
  DenseMap<Value, unsigned> lifeOf;
  std::vector<Life> lives;
  DenseMap<Operation *, SmallVector<Attribute>> inPlace;
};
} // namespace

void Planner::findLifetimes() {
  for (KernelOp kernel : func.getOps<KernelOp>()) {
    for (Value input : kernel.getInputs()) {
      SmallVector<int64_t> &list = readers[throughFreeViews(input)];
      int64_t index = kernels.size();
      if (list.empty() || list.back() != index)
        list.push_back(index);
    }
    kernels.push_back(kernel);
  }
}

/// The kernel's result overwrites the storage of `source`, if it can: the
/// kernel reads it once (or not at all) and nobody reads it later.
bool Planner::overwrites(unsigned kernel, unsigned result, Value source) {
  auto &list = readers[source];
  if (!list.empty() && list.back() > kernel)
    return false;
  KernelOp op = kernels[kernel];
  std::optional<unsigned> which;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    if (throughFreeViews(input) != source)
      continue;
    if (which)
      return false;
    which = i;
  }
  if (!which)
    return true;
  if (!canOverwrite(op, result, *which))
    return false;
  inPlace[op].push_back(
      b.getDenseI64ArrayAttr({static_cast<int64_t>(result), *which}));
  return true;
}

void Planner::placeResults() {
  DenseMap<Operation *, unsigned> number;
  for (auto [i, kernel] : llvm::enumerate(kernels))
    number[kernel] = i;
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    auto source = cast<OpResult>(throughFreeViews(returned));
    BufferAttr place = buffer(BufferPlace::Result, i);
    RoleAttr role = roleOfResult(func, i);
    if (role && role.getKind() == RoleKind::Update) {
      auto argument = findValue(func, role.getName());
      if (argument &&
          func.getArgument(*argument).getType() == returned.getType() &&
          overwrites(number[source.getOwner()], source.getResultNumber(),
                     func.getArgument(*argument))) {
        place = buffer(BufferPlace::Argument, *argument);
        setRoleOfResult(func, i, role.withUnit("in_place"));
      }
    }
    places[source] = place;
  }
}

void Planner::placeInArena() {
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    DenseSet<unsigned> taken;
    for (auto [r, result] : llvm::enumerate(kernel.getResults())) {
      if (places.contains(result))
        continue;
      auto &list = readers[result];
      int64_t last = list.empty() ? static_cast<int64_t>(k) : list.back();
      int64_t bytes = byteSize(typeOf(result));
      // In the place of an input that dies here?
      bool found = false;
      for (Value input : kernel.getInputs()) {
        Value source = throughFreeViews(input);
        auto life = lifeOf.find(source);
        if (life == lifeOf.end() || source != input ||
            lives[life->second].last != static_cast<int64_t>(k) ||
            lives[life->second].bytes != bytes ||
            taken.contains(life->second) || !overwrites(k, r, source))
          continue;
        taken.insert(life->second);
        lives[life->second].last = last;
        unsigned shared = life->second;
        lifeOf[result] = shared;
        found = true;
        break;
      }
      if (found)
        continue;
      lifeOf[result] = lives.size();
      lives.push_back({bytes, static_cast<int64_t>(k), last, -1});
    }
  }
}

static int64_t aligned(int64_t bytes) {
  return llvm::alignTo(bytes, kBufferAlignment);
}

/// Largest first, each at the lowest place that is free for its whole life.
int64_t Planner::assignOffsets() {
  std::vector<unsigned> order(lives.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::sort(order, [&](unsigned x, unsigned y) {
    if (lives[x].bytes != lives[y].bytes)
      return lives[x].bytes > lives[y].bytes;
    return std::make_pair(lives[x].first, x) <
           std::make_pair(lives[y].first, y);
  });
  int64_t total = 0;
  std::vector<unsigned> placed; // by rising offset
  for (unsigned i : order) {
    Life &life = lives[i];
    int64_t offset = 0, best = -1, bestGap = 0;
    for (unsigned j : placed) {
      const Life &other = lives[j];
      if (other.first > life.last || other.last < life.first)
        continue;
      int64_t gap = other.offset - offset;
      if (gap >= aligned(life.bytes) && (best < 0 || gap < bestGap)) {
        best = offset;
        bestGap = gap;
      }
      offset = std::max(offset, other.offset + aligned(other.bytes));
    }
    life.offset = best >= 0 ? best : offset;
    total = std::max(total, life.offset + aligned(life.bytes));
    placed.insert(llvm::upper_bound(placed, i,
                                    [&](unsigned x, unsigned y) {
                                      return lives[x].offset < lives[y].offset;
                                    }),
                  i);
  }
  return total;
}

/// The most bytes of the arena that are in use at once.
int64_t Planner::liveBytes(bool isAligned) {
  std::vector<int64_t> change(kernels.size() + 2, 0);
  for (const Life &life : lives) {
    int64_t bytes = isAligned ? aligned(life.bytes) : life.bytes;
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  int64_t now = 0, most = 0;
  for (int64_t bytes : change) {
    now += bytes;
    most = std::max(most, now);
  }
  return most;
}

void Planner::plan() {
  findLifetimes();
  placeResults();
  placeInArena();
  int64_t arena = assignOffsets();
  for (KernelOp kernel : kernels) {
    SmallVector<Attribute> buffers;
    for (Value result : kernel.getResults()) {
      if (auto place = places.find(result); place != places.end())
        buffers.push_back(place->second);
      else
        buffers.push_back(
            buffer(BufferPlace::Arena, lives[lifeOf[result]].offset));
    }
    kernel.setBuffersAttr(b.getArrayAttr(buffers));
    if (auto pairs = inPlace.find(kernel); pairs != inPlace.end())
      kernel->setAttr("in_place", b.getArrayAttr(pairs->second));
  }
  func->setAttr(
      kPlanAttr,
      b.getDictionaryAttr(
          {b.getNamedAttr("arena_bytes", b.getI64IntegerAttr(arena)),
           b.getNamedAttr("peak_bytes", b.getI64IntegerAttr(liveBytes(true))),
           b.getNamedAttr("lower_bound_bytes",
                          b.getI64IntegerAttr(liveBytes(false)))}));
}

void tandem::planMemory(func::FuncOp func) { Planner(func).plan(); }
