//===- PastCaches.cpp - results that need not be in a cache ---------------===//
#include "passes/plan/PastCaches.h"

#include "passes/Target.h"
#include "passes/plan/FormKernels.h"

#include <limits>

using namespace mlir;
using namespace tandem;

static double bytesOf(Value value) {
  return static_cast<double>(byteSize(cast<RankedTensorType>(value.getType())));
}

double tandem::bytesRead(Value value) {
  double part = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<SliceOp>(user) ||
        (isa<TakeOp>(user) && use.getOperandNumber() == 0))
      part += bytesOf(user->getResult(0));
    else if (auto scatter = dyn_cast<ScatterOp>(user);
             scatter && use.get() == scatter.getTable())
      part += bytesOf(scatter.getUpdates());
    else if (auto view = dyn_cast<ViewOpInterface>(user); view && view.isFree())
      part += bytesRead(user->getResult(0));
    else
      return bytesOf(value);
  }
  return std::min(part, bytesOf(value));
}

/// The results that overwrite an input.
static llvm::SmallDenseSet<int64_t> inPlaceResults(KernelOp kernel) {
  llvm::SmallDenseSet<int64_t> results;
  if (auto pairs = kernel->getAttrOfType<ArrayAttr>("in_place"))
    for (Attribute pair : pairs)
      results.insert(cast<DenseI64ArrayAttr>(pair)[0]);
  return results;
}

//===----------------------------------------------------------------------===//
// Distances
//===----------------------------------------------------------------------===//

bool ReuseDistances::Extent::overlaps(const Extent &other) const {
  return place == other.place && position == other.position &&
         begin < other.end && other.begin < end;
}

ReuseDistances::Extent ReuseDistances::extentOf(BufferAttr buffer,
                                                Value value) const {
  int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
  if (buffer.getPlace() != BufferPlace::Arena)
    return {buffer.getPlace(), buffer.getPosition(), 0, bytes};
  return {BufferPlace::Arena, 0, buffer.getPosition(),
          buffer.getPosition() + bytes};
}

/// Of an argument, a constant or a kernel's result.
ReuseDistances::Extent ReuseDistances::extentOf(Value value) const {
  int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
  if (auto argument = dyn_cast<BlockArgument>(value))
    return {BufferPlace::Argument, argument.getArgNumber(), 0, bytes};
  if (auto kernel = value.getDefiningOp<KernelOp>())
    return extentOf(
        cast<BufferAttr>(
            kernel.getBuffersAttr()[cast<OpResult>(value).getResultNumber()]),
        value);
  return {BufferPlace::Constant, constants.lookup(value), 0, bytes};
}

ReuseDistances::ReuseDistances(func::FuncOp func)
    : kernels(func.getOps<KernelOp>()), until(1, 0.0) {
  DenseSet<Value> seen;
  for (KernelOp kernel : kernels) {
    numbers[kernel] = extents.size();
    auto &own = extents.emplace_back();
    double bytes = 0;
    for (auto [input, argument] : llvm::zip_equal(
             kernel.getInputs(), kernel.getBody().front().getArguments())) {
      Value source = throughFreeViews(input);
      if (source.getDefiningOp<ConstantOp>())
        constants.try_emplace(source, constants.size());
      own.push_back(extentOf(source));
      bytes += bytesRead(argument);
      if (!source.getDefiningOp<KernelOp>() && seen.insert(source).second)
        footprint += bytesRead(argument);
    }
    auto overwriting = inPlaceResults(kernel);
    for (OpResult result : kernel->getResults()) {
      own.push_back(extentOf(result));
      if (!overwriting.contains(result.getResultNumber()))
        bytes += bytesOf(result);
    }
    moved.push_back(bytes);
    until.push_back(until.back() + bytes);
  }
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    returned.insert(throughFreeViews(value));
  for (Value value : returned)
    if (value.getDefiningOp<KernelOp>() &&
        extentOf(value).place == BufferPlace::Result)
      footprint += bytesOf(value);
  auto plan = func->getAttrOfType<DictionaryAttr>(kPlanAttr);
  if (auto arena =
          plan ? plan.getAs<IntegerAttr>("arena_bytes") : IntegerAttr())
    footprint += static_cast<double>(arena.getInt());
}

bool ReuseDistances::touches(size_t kernel, const Extent &extent) const {
  return llvm::any_of(extents[kernel], [&](const Extent &other) {
    return other.overlaps(extent);
  });
}

double ReuseDistances::before(OpResult result) const {
  size_t made = numbers.lookup(result.getOwner()), count = kernels.size();
  Extent extent = extentOf(result);
  if (extent.place == BufferPlace::Result)
    return std::numeric_limits<double>::infinity();
  double bytes = moved[made];
  for (size_t back = 1; back < count && bytes < footprint; ++back) {
    size_t k = (made + count - back) % count;
    if (touches(k, extent))
      return std::min(bytes + std::max(0.0, moved[k] - moved[made]), footprint);
    bytes += moved[k];
  }
  return footprint;
}

double ReuseDistances::after(OpResult result) const {
  size_t made = numbers.lookup(result.getOwner()), next = made + 1;
  Extent extent = extentOf(result);
  while (next < kernels.size() && !touches(next, extent))
    ++next;
  double last = next < kernels.size() ? moved[next] : 0;
  double bytes = until[next] - until[made + 1] + std::max(last, moved[made]);
  return std::min(bytes, footprint);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

void tandem::choosePastCaches(func::FuncOp func) {
  if (isForCuda(func))
    return;
  auto share = static_cast<double>(cacheShare(func));
  Builder b(func.getContext());
  std::optional<ReuseDistances> distances;
  for (auto kernel : func.getOps<KernelOp>()) {
    kernel->removeAttr(kPastCachesAttr);
    auto overwriting = inPlaceResults(kernel);
    SmallVector<int64_t> past;
    for (OpResult result : kernel->getResults()) {
      // What it overwrites was read.
      if (bytesOf(result) < kPastCachesBytes ||
          overwriting.contains(result.getResultNumber()))
        continue;
      if (!distances)
        distances.emplace(func);
      if (std::max(distances->before(result), distances->after(result)) > share)
        past.push_back(result.getResultNumber());
    }
    if (!past.empty())
      kernel->setAttr(kPastCachesAttr, b.getDenseI64ArrayAttr(past));
  }
}
