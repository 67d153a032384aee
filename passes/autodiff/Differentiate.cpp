//===- Differentiate.cpp - @joint from @graph -----------------------------===//
//
// @joint is the graph and its backward in one function: after the graph's
// arguments one cotangent per differentiable output; after its results one
// gradient per argument that requires grad and reaches such an output.
// @grad_joint, of order 2, is the joint of that joint.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/CustomVjp.h"
#include "passes/autodiff/JointBuilder.h"

#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_DIFFERENTIATE
#define GEN_PASS_DEF_INLINECUSTOMVJPS
#define GEN_PASS_DEF_SEALMUTATIONS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct Differentiate : tandem::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (order != 1 && order != 2) {
      module.emitError() << "expected order 1 or 2, but got " << order;
      return signalPassFailure();
    }
    StringRef chosen = loss;
    if (auto named = module->getAttrOfType<StringAttr>(kLossAttr);
        named && chosen.empty())
      chosen = named.getValue();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (failed(buildJoint(module, graph, chosen)) ||
        (order == 2 && failed(buildGradJoint(module, graph))))
      signalPassFailure();
  }
};

/// Of functions that nobody differentiates any more.
struct InlineCustomVjps : tandem::impl::InlineCustomVjpsBase<InlineCustomVjps> {
  void runOnOperation() final {
    inlineCustomVjps(getOperation());
    for (Operation &op : getOperation().getOps())
      op.removeAttr(kFirstOrderAttr);
  }
};

struct SealMutations : tandem::impl::SealMutationsBase<SealMutations> {
  void runOnOperation() final {
    SmallVector<int64_t> list = mutatedInBackward(getOperation());
    if (!list.empty())
      getOperation()->setAttr(kMutatedInBackwardAttr,
                              DenseI64ArrayAttr::get(&getContext(), list));
  }
};

} // namespace
