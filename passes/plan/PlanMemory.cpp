//===- PlanMemory.cpp - where every value of a program lives --------------===//
#include "passes/plan/PlanMemory.h"
#include "ir/Signature.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/LoopNest.h"
#include "passes/plan/Storage.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// True if `values` of a kernel's region are computed from `argument`.
static bool readsFrom(ArrayRef<Value> values, BlockArgument argument) {
  SmallVector<Value> work(values);
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (value == argument)
      return true;
    if (Operation *op = value.getDefiningOp())
      llvm::append_range(work, op->getOperands());
  }
  return false;
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
  // Other parts of the kernel read at any time.
  SmallVector<Value> results;
  unsigned first = 0;
  for (const SmallVector<Value> &part : partsOf(kernel)) {
    if (result >= first && result < first + part.size()) {
      results = part;
      result -= first;
      first = kernel->getNumResults();
    } else {
      if (readsFrom(part, argument))
        return false;
      first += part.size();
    }
  }
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
/// One value, or several that overwrite each other: in the arena, or in the
/// storage of a donated argument.
struct Life {
  int64_t bytes, first, last;
  int64_t offset = -1, argument = -1;
};

/// A saved value that may be overwritten, and when there is something in it.
struct Donated {
  int64_t argument, bytes;
  SmallVector<std::pair<int64_t, int64_t>, 2> taken;
};

class Planner {
public:
  explicit Planner(func::FuncOp func)
      : func(func), b(func.getContext()), ownStorage(haveOwnStorage(func)) {}
  void plan();

private:
  void findLifetimes();
  void findDonated();
  void placeResults();
  void placeInArena();
  int64_t assignOffsets();
  bool placeInDonated(Life &life);
  int64_t liveBytes(bool aligned);
  bool overwrites(unsigned kernel, unsigned result, Value source);
  BufferAttr buffer(BufferPlace place, int64_t position) {
    return BufferAttr::get(func.getContext(), place, position);
  }

  func::FuncOp func;
  Builder b;
  SmallVector<bool> ownStorage; ///< of each argument
  SmallVector<KernelOp> kernels;
  /// Sources (arguments, constants, kernel results; never views): the kernels
  /// that read them, rising.
  DenseMap<Value, SmallVector<int64_t>> readers;
  DenseMap<Value, BufferAttr> places;
  DenseMap<Value, unsigned> lifeOf;
  std::vector<Life> lives;
  std::vector<Donated> donated;
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

/// Saved values that may be overwritten live from before the first kernel.
void Planner::findDonated() {
  for (BlockArgument argument : func.getArguments()) {
    if (!isDonated(func, argument.getArgNumber()))
      continue;
    auto &list = readers[argument];
    int64_t last = list.empty() ? -1 : list.back();
    lifeOf[argument] = lives.size();
    lives.push_back({byteSize(typeOf(argument)), -1, last, -1,
                     static_cast<int64_t>(argument.getArgNumber())});
  }
}

/// The kernel's result overwrites the storage of `source`, if it can: the
/// kernel reads it once (or not at all), nobody reads it later, and no other
/// argument shows it.
bool Planner::overwrites(unsigned kernel, unsigned result, Value source) {
  if (auto argument = dyn_cast<BlockArgument>(source);
      argument && !ownStorage[argument.getArgNumber()])
    return false;
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
  DenseSet<unsigned> taken;
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    auto source = cast<OpResult>(throughFreeViews(returned));
    BufferAttr place = buffer(BufferPlace::Result, i);
    RoleAttr role = roleOfResult(func, i);
    if (role && role.getKind() == RoleKind::Saved && role.has("alias"))
      continue; // the output that it lies in has the place
    if (role && role.getKind() == RoleKind::Update) {
      auto argument = updatedArgument(func, role.getName());
      if (argument && !taken.contains(*argument) &&
          func.getArgument(*argument).getType() == returned.getType() &&
          overwrites(number[source.getOwner()], source.getResultNumber(),
                     func.getArgument(*argument))) {
        taken.insert(*argument);
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
      lives.push_back({bytes, static_cast<int64_t>(k), last});
    }
  }
}

static int64_t aligned(int64_t bytes) {
  return llvm::alignTo(bytes, kBufferAlignment);
}

/// Puts a life into the storage of a saved value of its size in which nothing
/// lives meanwhile, if there is one.
bool Planner::placeInDonated(Life &life) {
  for (Donated &saved : donated) {
    if (saved.bytes != life.bytes ||
        llvm::any_of(saved.taken, [&](auto &taken) {
          return taken.first <= life.last && life.first <= taken.second;
        }))
      continue;
    saved.taken.push_back({life.first, life.last});
    life.argument = saved.argument;
    return true;
  }
  return false;
}

/// Largest first, each in a saved value that is not needed any more, or at the
/// lowest place that is free for its whole life.
int64_t Planner::assignOffsets() {
  std::vector<unsigned> order;
  for (auto [i, life] : llvm::enumerate(lives))
    if (life.argument < 0)
      order.push_back(i);
    else
      donated.push_back({life.argument, life.bytes, {{life.first, life.last}}});
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
    if (placeInDonated(life))
      continue;
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
    if (life.argument >= 0)
      continue;
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
  findDonated();
  placeResults();
  placeInArena();
  int64_t arena = assignOffsets();
  for (KernelOp kernel : kernels) {
    SmallVector<Attribute> buffers;
    for (Value result : kernel.getResults()) {
      if (auto place = places.find(result); place != places.end()) {
        buffers.push_back(place->second);
        continue;
      }
      const Life &life = lives[lifeOf[result]];
      buffers.push_back(life.argument < 0
                            ? buffer(BufferPlace::Arena, life.offset)
                            : buffer(BufferPlace::Argument, life.argument));
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
