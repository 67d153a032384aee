//===- FitMemoryBudget.cpp - the fastest step within a memory budget ------===//
#include "passes/Passes.h"
#include "passes/partition/BudgetSpec.h"
#include "passes/partition/Joints.h"
#include "passes/partition/MemoryBudget.h"
#include "passes/partition/SavedMarks.h"

#include "ir/Keys.h"
#include "ir/Report.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem {
#define GEN_PASS_DEF_FITMEMORYBUDGET
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct FitMemoryBudget : tandem::impl::FitMemoryBudgetBase<FitMemoryBudget> {
  using FitMemoryBudgetBase::FitMemoryBudgetBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    std::string error;
    std::optional<BudgetSpec> budget = parseBudgetSpec(memoryBudget, error);
    if (!budget) {
      module.emitError(error);
      return signalPassFailure();
    }
    FailureOr<Joints> joints = findJoints(module);
    if (failed(joints))
      return signalPassFailure();
    if (!joints->joint)
      return markAllAnalysesPreserved();
    JointView view(joints->joint);
    FailureOr<SavedValues> fastest = markedValues(view);
    if (failed(fastest) || failed(fit(*budget, view, *fastest)))
      signalPassFailure();
  }

  /// Marks what is saved within the budget; `fastest` is what is saved for the
  /// fastest step.
  LogicalResult fit(const BudgetSpec &budget, const JointView &view,
                    const SavedValues &fastest) {
    ModuleOp module = getOperation();
    auto chain = findBudgetChain(module, view, fastest);
    if (failed(chain))
      return failure();
    points += chain->size();
    int64_t least = chain->front().peak;
    int64_t limit = budget.limit(least, chain->back().peak);
    if (least > limit)
      return module.emitError()
             << "unsupported --memory-budget=" << memoryBudget.getValue()
             << ": a step needs at least " << least << " bytes ("
             << readableBytes(least) << "), but the budget is " << limit
             << " bytes (" << readableBytes(limit) << ")";
    const BudgetPoint *best = &chain->front();
    for (const BudgetPoint &point : *chain)
      if (point.peak <= limit)
        best = &point;
    markSaved(view.joint, best->saved, kByBudget);
    report(*chain, *best);
    return success();
  }

  /// Says in the module what there was to choose from.
  void report(ArrayRef<BudgetPoint> chain, const BudgetPoint &chosen) {
    ModuleOp module = getOperation();
    Builder b(&getContext());
    SmallVector<Attribute> described;
    for (const BudgetPoint &point : chain)
      described.push_back(b.getDictionaryAttr(
          {b.getNamedAttr(key::kFlops, b.getF64FloatAttr(point.flops)),
           b.getNamedAttr(key::kPeak, b.getI64IntegerAttr(point.peak)),
           b.getNamedAttr(key::kSaved, b.getI64IntegerAttr(point.savedBytes)),
           b.getNamedAttr(key::kSeconds, b.getF64FloatAttr(point.seconds))}));
    NamedAttrList entries(
        module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr));
    entries.set(key::kChain, b.getArrayAttr(described));
    entries.set(key::kSeconds, b.getF64FloatAttr(chosen.seconds));
    module->setAttr(kPartitionReportAttr, entries.getDictionary(&getContext()));
  }
};

} // namespace
