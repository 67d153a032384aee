//===- Regions.cpp - which regions are worth computing again --------------===//
#include "passes/partition/Regions.h"

#include "passes/partition/Tags.h"
#include "passes/plan/StepMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tandem;

namespace {

using Names = llvm::SetVector<StringAttr>;

class RegionChoice {
public:
  RegionChoice(ModuleOp module, MakePrograms makePrograms)
      : module(module), makePrograms(makePrograms) {}
  void run();

private:
  /// The peak with these regions alone; the largest number if there is no plan,
  /// about which the real partition has to say why.
  int64_t peakWith(const Names &regions);
  /// Adds `more` to the regions that are kept, but for those that would raise
  /// the peak.
  void tryToAdd(ArrayRef<StringAttr> more);

  ModuleOp module;
  MakePrograms makePrograms;
  Names kept;
  int64_t peak = 0; ///< with `kept`
  /// What is not kept, with the peak that it would have made.
  llvm::MapVector<StringAttr, int64_t> dropped;
};

} // namespace

/// Calls `visit` with the ops of a joint that are of a region.
static void forEachOfRegion(ModuleOp module,
                            llvm::function_ref<void(Operation *)> visit) {
  for (StringRef name : {"joint", "grad_joint"})
    if (auto joint = module.lookupSymbol<func::FuncOp>(name))
      for (Operation &op : joint.getOps())
        if (checkpointOf(&op))
          visit(&op);
}

int64_t RegionChoice::peakWith(const Names &regions) {
  // Decisions of a trial are nobody's business.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = module.clone();
  forEachOfRegion(*copy, [&](Operation *op) {
    if (!regions.contains(checkpointOf(op)))
      op->removeAttr(kCheckpointAttr);
  });
  if (failed(makePrograms(*copy)))
    return std::numeric_limits<int64_t>::max();
  FailureOr<StepMemory> memory = rehearsePlan(*copy);
  return succeeded(memory) ? memory->peak()
                           : std::numeric_limits<int64_t>::max();
}

void RegionChoice::tryToAdd(ArrayRef<StringAttr> more) {
  Names all = kept;
  all.insert(more.begin(), more.end());
  int64_t with = peakWith(all);
  if (with <= peak) {
    kept = all;
    peak = with;
    return;
  }
  if (more.size() == 1) {
    dropped[more.front()] = with;
    return;
  }
  tryToAdd(more.take_front(more.size() / 2));
  tryToAdd(more.drop_front(more.size() / 2));
}

void RegionChoice::run() {
  llvm::MapVector<StringAttr, Operation *> regions;
  forEachOfRegion(module, [&](Operation *op) {
    regions.insert({checkpointOf(op), op});
  });
  if (regions.empty())
    return;
  peak = peakWith({});
  SmallVector<StringAttr> names(llvm::make_first_range(regions));
  tryToAdd(names);
  for (auto [name, with] : dropped)
    emitRemark(regions.lookup(name)->getLoc())
        << "region '" << name.getValue() << "' is not computed again: the peak "
        << "of a step would be " << with << " bytes, and is " << peak
        << " bytes without it";
  forEachOfRegion(module, [&](Operation *op) {
    if (dropped.contains(checkpointOf(op)))
      op->removeAttr(kCheckpointAttr);
  });
}

void tandem::dropRegionsThatCost(ModuleOp module, MakePrograms makePrograms) {
  RegionChoice(module, makePrograms).run();
}
