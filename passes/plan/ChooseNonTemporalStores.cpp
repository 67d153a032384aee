//===- ChooseNonTemporalStores.cpp - results that need not be in a cache --===//
#include "passes/plan/ChooseNonTemporalStores.h"
#include "passes/Passes.h"

#include "ir/Signature.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/InPlace.h"
#include "passes/plan/KernelBytes.h"
#include "passes/target/Target.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSENONTEMPORALSTORES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

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
    : kernels(func.getOps<KernelOp>()), until(1, 0) {
  DenseSet<Value> seen;
  for (KernelOp kernel : kernels) {
    numbers[kernel] = extents.size();
    auto &own = extents.emplace_back();
    int64_t bytes = 0;
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
    SmallVector<int64_t> overwrites = inPlaceInputs(kernel);
    for (OpResult result : kernel->getResults()) {
      own.push_back(extentOf(result));
      if (overwrites[result.getResultNumber()] < 0)
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
  if (PlanAttr plan = planOf(func))
    footprint += plan.getArenaBytes();
}

bool ReuseDistances::touches(size_t kernel, const Extent &extent) const {
  return llvm::any_of(extents[kernel], [&](const Extent &other) {
    return other.overlaps(extent);
  });
}

int64_t ReuseDistances::before(OpResult result) const {
  size_t made = numbers.lookup(result.getOwner()), count = kernels.size();
  Extent extent = extentOf(result);
  if (extent.place == BufferPlace::Result)
    return std::min(until[made + 1], footprint) + bytesOf(result);
  int64_t bytes = moved[made];
  for (size_t back = 1; back < count && bytes < footprint; ++back) {
    size_t k = (made + count - back) % count;
    if (touches(k, extent))
      return std::min(bytes + std::max<int64_t>(0, moved[k] - moved[made]),
                      footprint);
    bytes += moved[k];
  }
  return footprint;
}

int64_t ReuseDistances::after(OpResult result) const {
  size_t made = numbers.lookup(result.getOwner()), count = kernels.size();
  Extent extent = extentOf(result);
  // The caller reads its results, and in its arguments the next run reads.
  bool staysInside = extent.place == BufferPlace::Argument;
  int64_t bytes = 0;
  for (size_t ahead = 1; ahead <= count && bytes < footprint; ++ahead) {
    size_t next = (made + ahead) % count;
    if (next == 0 && !staysInside)
      break;
    if (touches(next, extent))
      return std::min(bytes + std::max(moved[next], moved[made]), footprint);
    bytes += moved[next];
  }
  return std::min(bytes + moved[made], footprint);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Returns how many results are stored past the caches.
static unsigned chooseNonTemporal(func::FuncOp func) {
  if (isForCuda(func))
    return 0;
  unsigned count = 0;
  int64_t share = cacheShare(func);
  std::optional<ReuseDistances> distances;
  for (auto kernel : func.getOps<KernelOp>()) {
    kernel.removeNonTemporalAttr();
    SmallVector<int64_t> overwrites = inPlaceInputs(kernel), past;
    for (OpResult result : kernel->getResults()) {
      // What it overwrites was read.
      if (bytesOf(result) < kNonTemporalBytes ||
          overwrites[result.getResultNumber()] >= 0)
        continue;
      if (!distances)
        distances.emplace(func);
      if (std::max(distances->before(result), distances->after(result)) > share)
        past.push_back(result.getResultNumber());
    }
    if (!past.empty())
      kernel.setNonTemporal(past);
    count += past.size();
  }
  return count;
}

namespace {
struct ChooseNonTemporalStores
    : tandem::impl::ChooseNonTemporalStoresBase<ChooseNonTemporalStores> {
  void runOnOperation() final {
    chosen += chooseNonTemporal(getOperation());
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
