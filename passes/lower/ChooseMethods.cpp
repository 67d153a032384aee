//===- ChooseMethods.cpp - how each kernel will be computed ---------------===//
//
// A pass of `plan` whose code is here, since the tables of methods are: what
// they say of a kernel is part of the plan
// (docs/rationale/methods-in-the-plan.md).
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ChooseMethods.h"
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"
#include "passes/lower/cpu/ChooseMethod.h"
#include "passes/lower/cuda/ChooseMethod.h"
#include "passes/plan/InPlace.h"
#include "passes/target/Target.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSEMETHODS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct ChooseMethods : tandem::impl::ChooseMethodsBase<ChooseMethods> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    auto choose = isForCuda(func) ? lower::cuda::chooseMethodOf
                                  : lower::cpu::chooseMethodOf;
    FailureOr<int64_t> count = chooseMethods(func, choose);
    if (failed(count))
      return signalPassFailure();
    chosen += *count;
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
