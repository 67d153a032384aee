//===- InPlace.cpp - results that can be computed where an input lies -----===//
#include "passes/plan/InPlace.h"

#include "passes/plan/Collectives.h"
#include "passes/plan/LoopNest.h"

using namespace mlir;
using namespace tandem;

SmallVector<int64_t> tandem::inPlaceInputs(KernelOp kernel) {
  SmallVector<int64_t> inputs(kernel.getNumResults(), -1);
  if (InPlaceAttr pairs = kernel.getInPlaceAttr())
    for (auto [result, input] : pairs.getPairs())
      inputs[result] = input;
  return inputs;
}

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The arguments of the kernel's region that `values` are computed from.
static llvm::BitVector readFrom(ArrayRef<Value> values, Block &body) {
  llvm::BitVector read(body.getNumArguments());
  SmallVector<Value> work(values);
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value))
      read.set(argument.getArgNumber());
    else if (Operation *op = value.getDefiningOp())
      llvm::append_range(work, op->getOperands());
  }
  return read;
}

static SmallVector<Operation *> anchorsOf(Block &body) {
  SmallVector<Operation *> anchors;
  for (Operation &op : body)
    if (auto cost = dyn_cast<CostOpInterface>(op)) {
      OpClass opClass = cost.getOpClass();
      if (opClass == OpClass::Contraction || opClass == OpClass::Window ||
          opClass == OpClass::Indexed || opClass == OpClass::Flow)
        anchors.push_back(&op);
    }
  return anchors;
}

namespace {
class InPlaceSearch {
public:
  explicit InPlaceSearch(KernelOp kernel)
      : kernel(kernel), body(kernel.getBody().front()),
        anchors(anchorsOf(body)) {}
  SmallVector<InPlacePair, 4> find();

private:
  bool hasCandidate(size_t first, size_t count);
  bool looksAlike(size_t result, size_t input);
  bool isReadWhereWritten(const LoopNest &nest, const LoopNest::Root &root,
                          BlockArgument argument);

  KernelOp kernel;
  Block &body;
  SmallVector<Operation *> anchors;
};
} // namespace

/// True if both are as many elements of one type.
bool InPlaceSearch::looksAlike(size_t result, size_t input) {
  auto made = typeOf(kernel.getResult(result));
  auto given = typeOf(kernel.getInputs()[input]);
  return made.getElementType() == given.getElementType() &&
         made.getNumElements() == given.getNumElements();
}

bool InPlaceSearch::hasCandidate(size_t first, size_t count) {
  for (size_t r = first; r < first + count; ++r)
    for (size_t i = 0; i < kernel.getInputs().size(); ++i)
      if (looksAlike(r, i))
        return true;
  return false;
}

bool InPlaceSearch::isReadWhereWritten(const LoopNest &nest,
                                       const LoopNest::Root &root,
                                       BlockArgument argument) {
  // Loops of a later level would read what this one has overwritten.
  if (root.isPartial || (root.isFull && root.level != nest.levels))
    return false;
  auto position = [&](ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape) {
    return simplifyIndex(linearize(index, shape, kernel.getContext()),
                         nest.sizes);
  };
  AffineExpr own = position(root.index, root.stored);
  return llvm::all_of(nest.reads, [&](const LoopNest::Access &read) {
    return read.value != argument ||
           (position(read.place.index, typeOf(argument).getShape()) == own &&
            read.place.guards.empty());
  });
}

SmallVector<InPlacePair, 4> InPlaceSearch::find() {
  SmallVector<InPlacePair, 4> pairs;
  if (standsAlone(kernel))
    return pairs;
  SmallVector<SmallVector<Value>> parts = partsOf(kernel);
  SmallVector<llvm::BitVector> reads;
  if (parts.size() > 1)
    for (const SmallVector<Value> &part : parts)
      reads.push_back(readFrom(part, body));
  // An anchor reads its operands at any time.
  llvm::BitVector early(body.getNumArguments());
  for (Operation *anchor : anchors)
    early |= readFrom(llvm::to_vector(anchor->getOperands()), body);
  size_t first = 0;
  for (auto [p, part] : llvm::enumerate(parts)) {
    size_t begin = first;
    first += part.size();
    if (!hasCandidate(begin, part.size()))
      continue;
    // Sums of an anchor's elements: these elements, nowhere stored.
    SmallVector<Value> made(part);
    if (!anchors.empty())
      for (Value &value : made)
        if (Value summed = summedInTiles(value, anchors.front()))
          value = summed;
    auto nest = findLoopNest(
        made,
        [&](Operation *op) {
          return op->getBlock() == &body && !llvm::is_contained(anchors, op);
        },
        kernel.getContext());
    if (!nest)
      continue;
    // So do other parts of the kernel.
    llvm::BitVector others = early;
    for (size_t other = 0; other < reads.size(); ++other)
      if (other != p)
        others |= reads[other];
    for (auto [r, root] : llvm::enumerate(nest->roots))
      for (unsigned i = 0; i < body.getNumArguments(); ++i)
        if (looksAlike(begin + r, i) && !others.test(i) &&
            isReadWhereWritten(*nest, root, body.getArgument(i)))
          pairs.push_back({begin + r, i});
  }
  return pairs;
}

ArrayRef<InPlacePair> InPlacePairs::of(KernelOp kernel) {
  auto [entry, isNew] = known.try_emplace(kernel);
  if (isNew)
    entry->second = InPlaceSearch(kernel).find();
  return entry->second;
}
