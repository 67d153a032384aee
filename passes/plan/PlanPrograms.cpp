//===- PlanPrograms.cpp - phase partition to plan -------------------------===//
//
// For every program: kernels (FormKernels.h), then places (PlanMemory.h). Equal
// constants of all programs share one place among the constants.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/Libraries.h"
#include "passes/plan/PastCaches.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlanProgram.h"
#include "passes/plan/StepMemory.h"

#include "ir/EmptyTensors.h"
#include "ir/Report.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

namespace tandem {
#define GEN_PASS_DEF_PLANPROGRAMS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
class PlanPrograms : public tandem::impl::PlanProgramsBase<PlanPrograms> {
public:
  using PlanProgramsBase::PlanProgramsBase;
  void runOnOperation() override;

private:
  void placeConstants(func::FuncOp func);
  void remark(func::FuncOp func);

  DenseMap<Attribute, int64_t> offsets;
  int64_t constantBytes = 0;
};
} // namespace

void PlanPrograms::placeConstants(func::FuncOp func) {
  for (auto constant : func.getOps<ConstantOp>()) {
    if (isEmptyTensor(constant.getType()))
      continue;
    auto [known, isNew] =
        offsets.try_emplace(constant.getValue(), constantBytes);
    if (isNew)
      constantBytes +=
          llvm::alignTo(byteSize(constant.getType()), kBufferAlignment);
    constant->setAttr(
        kBufferAttr,
        BufferAttr::get(&getContext(), BufferPlace::Constant, known->second));
  }
}

void PlanPrograms::remark(func::FuncOp func) {
  PlanAttr plan = planOf(func);
  func.emitRemark() << llvm::range_size(func.getOps<KernelOp>())
                    << " kernels; arena " << plan.getArenaBytes()
                    << " bytes, at least " << plan.getLowerBoundBytes()
                    << " are live at once";
  for (auto kernel : func.getOps<KernelOp>())
    if (InPlaceAttr pairs = kernel.getInPlaceAttr())
      kernel.emitRemark() << "'" << kernel.getName() << "' overwrites "
                          << pairs.getPairs().size() << " of its inputs";
}

/// Empty tensors are constants, arguments and results, but no operands.
static LogicalResult checkEmptyTensors(func::FuncOp func) {
  bool ok = true;
  auto isEmpty = [](Value value) { return isEmptyTensor(value.getType()); };
  for (Operation &op : func.getBody().front().without_terminator())
    if (!isa<ConstantOp>(op) && (llvm::any_of(op.getOperands(), isEmpty) ||
                                 llvm::any_of(op.getResults(), isEmpty))) {
      op.emitError() << "expected no empty tensor in a kernel, but '"
                     << op.getName() << "' has one";
      ok = false;
    }
  return success(ok);
}

LogicalResult tandem::planProgram(func::FuncOp func) {
  // The optimizer's ops among others, and what was read at this phase.
  foldEmptyTensors(func);
  eraseDeadOps(func);
  if (failed(checkEmptyTensors(func)))
    return failure();
  if (failed(formKernels(func)))
    return failure();
  // Before kernels are ordered: what both read is held until both have run.
  joinAttention(func);
  chooseLibraries(func);
  InPlacePairs pairs;
  orderKernels(func, pairs);
  joinKernels(func, pairs);
  placeHostCopies(func, pairs);
  planMemory(func, pairs);
  chooseNonTemporal(func);
  return checkPlan(func, &pairs);
}

void PlanPrograms::runOnOperation() {
  ModuleOp module = getOperation();
  offsets.clear();
  constantBytes = 0;
  if (failed(expectPhase(module, "partition")) ||
      failed(checkHandedValues(module)))
    return signalPassFailure();
  for (auto func : module.getOps<func::FuncOp>()) {
    if (failed(planProgram(func)))
      return signalPassFailure();
    placeConstants(func);
    if (remarks)
      remark(func);
  }
  module->setAttr(kStepMemoryAttr, describeStepMemory(module));
  if (failed(leavePhase(module, "plan")))
    signalPassFailure();
}
