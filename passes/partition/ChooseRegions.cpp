//===- ChooseRegions.cpp - which regions are worth computing again --------===//
//
// What a region keeps can be more than what it need not save. Copies of the
// module are partitioned and planned: two where no region is too much, else a
// number that grows with the logarithm of the number of regions for each that
// is.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/partition/DividePasses.h"
#include "passes/partition/Joints.h"
#include "passes/partition/SavedValues.h"
#include "passes/plan/StepMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSEREGIONS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

using Names = llvm::SetVector<StringAttr>;

class RegionChoice {
public:
  RegionChoice(ModuleOp module, StringRef kind) : module(module), kind(kind) {}
  /// Takes the regions out with which the planned peak of a step would be above
  /// that without them, and says so at each. Returns how many.
  unsigned run();

private:
  /// The peak with these regions alone; the largest number if there is no plan,
  /// about which the real partition has to say why.
  int64_t peakWith(const Names &regions);
  /// Adds `more` to the regions that are kept, but for those that would raise
  /// the peak.
  void tryToAdd(ArrayRef<StringAttr> more);

  ModuleOp module;
  StringRef kind;
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
  if (failed(rehearsePartition(*copy, kind)))
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

unsigned RegionChoice::run() {
  llvm::MapVector<StringAttr, Operation *> regions;
  forEachOfRegion(module, [&](Operation *op) {
    regions.insert({checkpointOf(op), op});
  });
  if (regions.empty())
    return 0;
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
  return dropped.size();
}

namespace {

struct ChooseRegions : tandem::impl::ChooseRegionsBase<ChooseRegions> {
  using ChooseRegionsBase::ChooseRegionsBase;

  void runOnOperation() final {
    FailureOr<Joints> joints = findJoints(getOperation());
    if (failed(checkPartitionKind(getOperation(), kind)) || failed(joints))
      return signalPassFailure();
    // What was chosen before was chosen with the regions as they are.
    if (!joints->joint || isChosen(joints->joint))
      return markAllAnalysesPreserved();
    dropped += RegionChoice(getOperation(), kind).run();
  }
};

} // namespace
