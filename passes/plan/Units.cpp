//===- Units.cpp - groups of ops on the way to kernels --------------------===//
#include "passes/plan/Units.h"
#include "passes/common/PackedWeights.h"
#include "passes/common/Phase.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"

#include "ir/ReadsViews.h"

#include <queue>

using namespace mlir;
using namespace tandem;

static OpClass classOf(Operation *op) {
  if (auto cost = dyn_cast<CostOpInterface>(op))
    return cost.getOpClass();
  return OpClass::Program;
}

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

bool Units::isAnchor(Operation *op) {
  OpClass opClass = classOf(op);
  return opClass == OpClass::Contraction || opClass == OpClass::Window ||
         opClass == OpClass::Indexed || opClass == OpClass::Flow;
}

/// A branch or a loop is a kernel of its own: its regions are its code.
static bool isFlow(Operation *anchor) {
  return anchor && classOf(anchor) == OpClass::Flow;
}

static bool isFreeView(Operation *op) {
  auto view = dyn_cast<ViewOpInterface>(op);
  return view && view.isFree();
}

/// A constant that lives in memory.
static bool isStored(Operation *op) {
  auto constant = dyn_cast<ConstantOp>(op);
  return constant && !constant.getSplat();
}

static bool isConstant(Operation *op) {
  return classOf(op) == OpClass::Constant;
}

int64_t tandem::streamOf(Operation *op) {
  auto stream = op->getAttrOfType<IntegerAttr>(kStreamAttr);
  return stream ? stream.getInt() : 0;
}

Value tandem::throughFreeViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isFreeView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

int64_t Units::stream(unsigned unit) const {
  return streamOf(members[unit].front());
}

bool tandem::keepsRows(ViewOpInterface view) {
  AffineMap map = view.getIndexMap();
  if (view.getIndexDomain() || map.getNumDims() == 0 ||
      map.getNumResults() == 0)
    return false;
  AffineExpr last = getAffineDimExpr(map.getNumDims() - 1, map.getContext());
  for (AffineExpr expr : map.getResults().drop_back())
    if (expr.isFunctionOfDim(map.getNumDims() - 1) ||
        expr.walk([](AffineExpr part) {
              bool isStep = part.getKind() != AffineExprKind::FloorDiv &&
                            part.getKind() != AffineExprKind::CeilDiv &&
                            part.getKind() != AffineExprKind::Mod;
              return isStep ? WalkResult::advance() : WalkResult::interrupt();
            })
            .wasInterrupted())
      return false;
  return isa<AffineConstantExpr>(map.getResults().back() - last);
}

/// True if the value must be in memory: it is returned, or an operand of an
/// anchor or of an op with choices, or read in place through views.
bool Units::mustExist(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isFreeView(user))
      return mustExist(user->getResult(0));
    if (isReadInPlace(user))
      return true;
    return isAnchor(user) || standsAlone(user) || conditions.choices(user) ||
           user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// True if the op is a view whose result is an operand of an anchor that can
/// read it in the view's source, and nothing else asks for it in memory; or a
/// cast of bytes that products read.
bool Units::isReadInPlace(Operation *op) const {
  auto source = dyn_cast<ViewOpInterface>(op);
  if (!source || !(source.isFree() || keepsRows(source)))
    return byteCasts.contains(op);
  bool isRead = false;
  for (Operation *user : op->getUsers()) {
    auto product = dyn_cast<MatmulOp>(user);
    bool readsPanels = product && product.getRhs() == op->getResult(0) &&
                       product.getLhs() != op->getResult(0) &&
                       panelsOf(product);
    if (readsPanels || readsViews(user)) {
      isRead = true;
      continue;
    }
    if (isAnchor(user) || standsAlone(user) || conditions.choices(user) ||
        user->hasTrait<OpTrait::IsTerminator>())
      return false;
    if (isReadInPlace(user))
      isRead = true;
    else if (isFreeView(user) && mustExist(user->getResult(0)))
      return false;
  }
  return isRead;
}

/// True if the op computes on a stream where some of its users are not.
bool Units::crossesStreams(Operation *op) const {
  return !isConstant(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
    return isFreeView(user) ? crossesStreams(user)
                            : streamOf(user) != streamOf(op);
  });
}

/// True if the op of the forward makes something narrower of `wide` that the
/// backward reads, which does not read `wide` itself: to repeat it there would
/// keep what is wide until then.
static bool narrowsForBackward(Operation *op, Value wide) {
  auto isReadBackward = [](Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return passOf(user) == "backward";
    });
  };
  Value result = op->getResult(0);
  return passOf(op) == "forward" &&
         elementBytes(getElementTypeOrSelf(result)) <
             elementBytes(getElementTypeOrSelf(wide)) &&
         isReadBackward(result) && !isReadBackward(wide);
}

/// Constants, views that repeat or cut, and cheap functions of one tensor are
/// repeated where they are used, if they need not exist in memory anyway. A
/// tensor that repeats a much smaller one does not count.
void Units::decideRepeated(Block &body) {
  constexpr int64_t muchSmaller = 8;
  // A chain longer than this exists in memory somewhere.
  constexpr unsigned longestChain = 12;
  DenseSet<Value> small;
  DenseMap<Value, unsigned> chain;
  // The tensor that a repeated pointwise op is a function of, at one place.
  DenseMap<Value, Value> source;
  for (Operation &op : body.without_terminator()) {
    if (isFreeView(&op) || isStored(&op)) {
      repeated.insert(&op);
      continue;
    }
    if (isAnchor(&op) || standsAlone(&op) || conditions.choices(&op) ||
        crossesStreams(&op))
      continue;
    Value result = op.getResult(0);
    if (isReadInPlace(&op)) {
      repeated.insert(&op);
      continue;
    }
    if (mustExist(result))
      continue;
    if (isConstant(&op)) {
      repeated.insert(&op);
      small.insert(result);
    } else if (auto view = dyn_cast<ViewOpInterface>(op)) {
      // What cuts from the beginning maps each index to itself.
      if (view.getIndexMap().isPermutation() &&
          elementsOf(op.getOperand(0)) == elementsOf(result))
        continue;
      repeated.insert(&op);
      chain[result] = chain.lookup(op.getOperand(0));
      if (elementsOf(op.getOperand(0)) * muchSmaller <= elementsOf(result))
        small.insert(result);
    } else if (auto pointwise = dyn_cast<PointwiseOpInterface>(op)) {
      SmallVector<Value> large;
      for (Value operand : op.getOperands())
        if (!small.contains(operand))
          large.push_back(source.lookup_or(operand, operand));
      // A mask may read it several times: 0 <= x and x < 10.
      if (getElementTypeOrSelf(result).isInteger(1) && llvm::all_equal(large))
        large.truncate(std::min<size_t>(large.size(), 1));
      unsigned length = 1;
      for (Value operand : op.getOperands())
        length = std::max(length, chain.lookup(operand) + 1);
      if (large.size() > 1 || length > longestChain || isExpensive(pointwise) ||
          (large.size() == 1 && narrowsForBackward(&op, large[0])))
        continue;
      repeated.insert(&op);
      chain[result] = length;
      if (large.empty())
        small.insert(result);
      else
        source[result] = large[0];
    }
  }
}

Units::Units(func::FuncOp func, const RunConditions &conditions, FusionLog *log)
    : context(func->getContext()), conditions(conditions), log(log) {
  Block &body = func.getBody().front();
  unsigned next = 0;
  for (Operation &op : body)
    positions[&op] = next++;
  decideBytes(body);
  decideRepeated(body);

  // Collectives keep their order: each follows from the one before.
  Operation *before = nullptr;
  for (Operation &op : body) {
    if (repeated.contains(&op))
      continue;
    realUsers[&op];
    // Producers, through what is repeated, and to how many elements a view on
    // the way pads what they give.
    SmallVector<std::pair<Value, int64_t>> work;
    for (Value operand : op.getOperands())
      work.push_back({operand, 0});
    DenseSet<Operation *> seen;
    SmallVector<Operation *, 4> producers;
    while (!work.empty()) {
      auto [value, padded] = work.pop_back_val();
      Operation *producer = value.getDefiningOp();
      if (!producer || !seen.insert(producer).second)
        continue;
      if (!repeated.contains(producer)) {
        producers.push_back(producer);
        if (padded)
          padding[{producer, &op}] = padded;
        continue;
      }
      if (auto view = dyn_cast<ViewOpInterface>(producer);
          view && view.getIndexDomain())
        padded = std::max(padded, elementsOf(value));
      for (Value operand : producer->getOperands())
        work.push_back({operand, padded});
    }
    if (communicates(&op)) {
      if (before && !llvm::is_contained(producers, before))
        producers.push_back(before);
      before = &op;
    }
    llvm::sort(producers, [&](Operation *a, Operation *b) {
      return positions[a] < positions[b];
    });
    for (Operation *producer : producers)
      realUsers[producer].push_back(&op);
    realProducers[&op] = std::move(producers);
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    unitOf[&op] = members.size();
    ranks.push_back(members.size());
    ranked.push_back(members.size());
    members.push_back({&op});
    anchors.push_back(isAnchor(&op) ? &op : nullptr);
  }
}

bool Units::isInside(Operation *op, unsigned unit) const {
  auto found = unitOf.find(op);
  if (found != unitOf.end())
    return found->second == unit;
  if (isStored(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (!isFreeView(op))
    return true;
  Operation *source = op->getOperand(0).getDefiningOp();
  return source && isInside(source, unit);
}

SmallVector<Value> Units::results(unsigned unit) const {
  SmallVector<Value> results;
  // A value is used outside if a use, or one of a repeated op that shows it,
  // is.
  DenseMap<Value, bool> known;
  std::function<bool(Value)> isUsed = [&](Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    bool used = llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (repeated.contains(user))
        return isUsed(user->getResult(0));
      auto found = unitOf.find(user);
      return found == unitOf.end() || found->second != unit;
    });
    return known[value] = used;
  };
  for (Operation *op : members[unit])
    for (Value value : op->getResults())
      if (isUsed(value))
        results.push_back(value);
  return results;
}

/// How many units are looked at against the direction of uses before all that
/// follow are: what many use has many that follow it, and few in front of one.
static constexpr size_t kFewUnits = 64;

Units::Between Units::findBetween(unsigned before, unsigned after) const {
  Between found;
  SmallVector<unsigned> work;
  // A path rises in rank from the one to the other.
  auto visit = [&](Operation *op) {
    auto unit = unitOf.find(op);
    if (unit != unitOf.end() && ranks[unit->second] > ranks[before] &&
        ranks[unit->second] < ranks[after] &&
        found.units.insert(unit->second).second)
      work.push_back(unit->second);
  };
  auto isOf = [&](Operation *op, unsigned unit) {
    auto known = unitOf.find(op);
    return known != unitOf.end() && known->second == unit;
  };
  for (Operation *op : members[after])
    llvm::for_each(producers(op), visit);
  while (!work.empty() && found.units.size() <= kFewUnits)
    for (Operation *op : members[work.pop_back_val()])
      for (Operation *producer : producers(op)) {
        found.isPath |= isOf(producer, before);
        visit(producer);
      }
  if (work.empty() || found.isPath)
    return found;

  found = {};
  found.isForward = true;
  work.clear();
  for (Operation *op : members[before])
    llvm::for_each(users(op), visit);
  while (!work.empty() && !found.isPath)
    for (Operation *op : members[work.pop_back_val()])
      for (Operation *user : users(op)) {
        found.isPath |= isOf(user, after);
        visit(user);
      }
  return found;
}

/// Gives `unit`, made of the units of ranks `first` and `last`, its rank: what
/// leads to the second is in front of it, what follows the first behind.
void Units::rank(unsigned unit, unsigned first, unsigned last,
                 const Between &between) {
  SmallVector<unsigned> front, back;
  for (unsigned r = first + 1; r < last; ++r) {
    bool isKnown = between.units.contains(ranked[r]);
    (isKnown != between.isForward ? front : back).push_back(ranked[r]);
  }
  unsigned gone = ranked[first] == unit ? ranked[last] : ranked[first];
  front.push_back(unit);
  llvm::append_range(front, back);
  front.push_back(gone);
  for (auto [i, moved] : llvm::enumerate(front)) {
    ranked[first + i] = moved;
    ranks[moved] = first + i;
  }
}

/// True if the unit is attention for CUDA and permutations that keep its rows
/// whole, each the only reader of a result.
bool Units::storesReordered(unsigned unit) const {
  Operation *anchor = anchors[unit];
  return anchor && readsViews(anchor) && isForCuda(anchor) &&
         llvm::all_of(members[unit], [&](Operation *op) {
           auto permute = dyn_cast<PermuteOp>(op);
           if (!permute)
             return op == anchor;
           return permute.getX().getDefiningOp() == anchor &&
                  permute.getX().hasOneUse() &&
                  keepsRows(cast<ViewOpInterface>(*permute));
         });
}

/// A kernel reads at no more places than this: ops that each read two views of
/// the one before would make code that doubles with each of them.
static constexpr size_t kMostReads = 64;

/// True if the unit can be one kernel.
bool Units::isKernel(unsigned unit, bool beside) const {
  SmallVector<Value> values = results(unit);
  if (values.empty() || storesReordered(unit))
    return true;
  Operation *anchor = anchors[unit];
  DenseSet<Value> sums; // what a product adds up follows it
  for (Value &value : values)
    if (Value summed = summedInTiles(value, anchor))
      sums.insert(value = summed);
  auto nest = findLoopNest(
      values, [&](Operation *op) { return op != anchor && isInside(op, unit); },
      context);
  if (!nest || nest->reads.size() > kMostReads)
    return false;
  if (!anchor)
    return true;
  // What follows an anchor has one element for each of its elements.
  if (!nest->reductions.empty() || !nest->partials.empty())
    return false;
  auto type = cast<RankedTensorType>(anchor->getResult(0).getType());
  // Each op is asked once: a value that is used twice at each of many steps
  // would be asked for as often as there are ways to it.
  DenseMap<Operation *, bool> known;
  std::function<bool(Value)> follows = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isInside(op, unit))
      return false;
    if (op == anchor)
      return true;
    if (auto found = known.find(op); found != known.end())
      return found->second;
    bool does = llvm::any_of(op->getOperands(), follows);
    return known[op] = does;
  };
  AffineExpr own;
  for (const LoopNest::Root &root : nest->roots) {
    if (!follows(root.value) && (!beside || sums.contains(root.value)))
      return false;
    auto rootType = cast<RankedTensorType>(root.value.getType());
    if (rootType.getNumElements() != type.getNumElements())
      return false;
    own = simplifyIndex(linearize(root.index, rootType.getShape(), context),
                        nest->sizes);
  }
  for (const LoopNest::Access &read : nest->reads)
    if (read.value.getDefiningOp() == anchor &&
        (simplifyIndex(linearize(read.place.index, type.getShape(), context),
                       nest->sizes) != own ||
         !read.place.guards.empty()))
      return false;
  return true;
}

/// Of what is concatenated of at least as many pieces the one that is read is
/// found by a pointer (passes/lower/common/ChosenReads.cpp).
static constexpr int64_t kManyPieces = 5;

/// True if the unit computes a value that is one of many pieces of a larger
/// one: it would do so for every element of that one, and all the pieces, which
/// are there in memory, would be asked for by conditions, not by a pointer.
bool Units::computesInVain(unsigned unit) const {
  if (padding.empty())
    return false;
  // Which piece it is says the index alone.
  auto chooses = [&](Operation *op) {
    auto select = dyn_cast<SelectOp>(op);
    Operation *mask = select ? select->getOperand(0).getDefiningOp() : nullptr;
    return mask && isRepeated(mask);
  };
  // The elements of the largest value that an op's is a piece of.
  DenseMap<Operation *, int64_t> whole;
  for (Operation *op : llvm::reverse(members[unit])) {
    int64_t elements = whole.lookup(op);
    bool isChoice = chooses(op);
    if (!isChoice && elements >= kManyPieces * elementsOf(op->getResult(0)))
      return true;
    for (Operation *producer : producers(op))
      if (isInside(producer, unit))
        whole[producer] =
            std::max({whole.lookup(producer), isChoice ? elements : 0,
                      padding.lookup({producer, op})});
  }
  return false;
}

void Units::keepApart(unsigned a, unsigned b, StringRef why) const {
  if (log && a != b)
    log->refusals.push_back({{members[a], members[b]}, why});
}

bool Units::merge(unsigned into, unsigned from, bool beside) {
  if (into == from)
    return false;
  StringRef against = mergeOrSay(into, from, beside);
  if (!against.empty())
    keepApart(into, from, against);
  else if (beside)
    withBeside.insert(into);
  return against.empty();
}

StringRef Units::mergeOrSay(unsigned into, unsigned from, bool beside) {
  if (anchors[into] && anchors[from])
    return "each has a product, a convolution or another op that a kernel has "
           "but one of";
  if (isFlow(anchors[into]) || isFlow(anchors[from]))
    return "one of them is a branch or a loop, which is a kernel of its own";
  if (StringRef against = tooLarge(into, from); !against.empty())
    return against;
  if (conditionOf(into) != conditionOf(from))
    return "one of them runs under another condition on cotangents";
  if (stream(into) != stream(from))
    return "they run on different streams";
  if (choices(into) || choices(from))
    return "one of them may be a copy or zeros instead, which depends on "
           "cotangents";
  if (standsAlone(members[into].front()) || standsAlone(members[from].front()))
    return "one of them is a collective or a copy, which no kernel has";
  if (turnsBytes(into) || turnsBytes(from))
    return "one of them turns bytes for products";
  unsigned first = std::min(ranks[into], ranks[from]);
  unsigned last = std::max(ranks[into], ranks[from]);
  Between between = findBetween(ranked[first], ranked[last]);
  if (between.isPath)
    return "a kernel between them needs the first and gives to the second";
  auto oldInto = members[into], oldFrom = members[from];
  Operation *oldAnchor = anchors[into];
  for (Operation *op : oldFrom)
    unitOf[op] = into;
  SmallVector<Operation *> joined(oldInto);
  llvm::append_range(joined, oldFrom);
  llvm::sort(joined, [&](Operation *a, Operation *b) {
    return position(a) < position(b);
  });
  members[into] = joined;
  members[from].clear();
  if (!anchors[into])
    anchors[into] = anchors[from];
  // Nothing in front of an anchor joins its kernel.
  bool isInFront = false;
  if (Operation *anchor = anchors[into])
    for (Operation *producer : producers(anchor))
      isInFront |= unitOf.lookup(producer) == into;
  bool isInVain = !isInFront && computesInVain(into);
  if (!isInFront && !isInVain && isKernel(into, beside)) {
    anchors[from] = nullptr;
    rank(into, first, last, between);
    return {};
  }
  for (Operation *op : oldFrom)
    unitOf[op] = from;
  members[into] = oldInto;
  members[from] = oldFrom;
  anchors[into] = oldAnchor;
  if (isInFront)
    return "a product, a convolution or an op like these takes nothing into "
           "its kernel that comes before it";
  if (isInVain)
    return "one is a piece of many that the other concatenates, and would be "
           "computed for each element of the whole";
  return oldAnchor || anchors[from]
             ? "what joins a product, a convolution or an op like these "
               "follows it element by element, and reads at 64 places at most"
             : "their loops are not over the same elements, or would read at "
               "more than 64 places";
}

SmallVector<unsigned> Units::order() const {
  // A unit can run when its last op can: that is its place in the program.
  auto lastOf = [&](unsigned unit) { return position(members[unit].back()); };
  SmallVector<unsigned> waiting(members.size(), 0);
  std::vector<DenseSet<unsigned>> next(members.size());
  for (unsigned unit = 0; unit < members.size(); ++unit)
    for (Operation *op : members[unit])
      for (Operation *producer : producers(op)) {
        unsigned before = unitOf.lookup(producer);
        if (before != unit && next[before].insert(unit).second)
          ++waiting[unit];
      }
  using Entry = std::pair<unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (unsigned unit = 0; unit < members.size(); ++unit)
    if (!members[unit].empty() && waiting[unit] == 0)
      ready.push({lastOf(unit), unit});
  SmallVector<unsigned> order;
  while (!ready.empty()) {
    unsigned unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (unsigned after : next[unit])
      if (--waiting[after] == 0)
        ready.push({lastOf(after), after});
  }
  return order;
}
