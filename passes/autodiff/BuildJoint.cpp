//===- BuildJoint.cpp - @joint and @evaluate from @graph ------------------===//
//
// @evaluate is the graph in inference mode: the outputs, no updates; for
// inference alone without the loss, and what only the loss reads. @joint is
// the graph and its backward in one function: after the graph's arguments one
// cotangent per differentiable output; after its results one gradient per
// argument that requires grad and reaches such an output. @grad_joint, of order
// 2, is the joint of that joint.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/CustomVjp.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/JointBuilder.h"

#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The list of what the backward writes of what requires grad: made here, and
/// never changed again.
static void sealMutatedInBackward(ModuleOp module) {
  SmallVector<int64_t> list = mutatedInBackward(module);
  if (!list.empty())
    module->setAttr(kMutatedInBackwardAttr,
                    DenseI64ArrayAttr::get(module.getContext(), list));
}

namespace {

struct BuildJoint : tandem::impl::BuildJointBase<BuildJoint> {
  using BuildJointBase::BuildJointBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(expectPhase(module, "functionalize")) ||
        failed(checkDoor(module, "functionalize")))
      return signalPassFailure();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    StringRef chosen = loss;
    if (auto named = module->getAttrOfType<StringAttr>(kLossAttr);
        named && chosen.empty())
      chosen = named.getValue();
    if (order != 1 && order != 2) {
      module.emitError() << "expected order 1 or 2, but got " << order;
      return signalPassFailure();
    }
    if (failed(buildAll(module, graph, chosen)) ||
        failed(leavePhase(module, "joint")))
      signalPassFailure();
  }

  LogicalResult buildAll(ModuleOp module, func::FuncOp graph,
                         StringRef chosen) {
    func::FuncOp inferred = graph.clone();
    graph->getBlock()->getOperations().insert(std::next(graph->getIterator()),
                                              inferred);
    inferred.setName("evaluate");
    if (inference) {
      graph.erase();
      dropLoss(inferred, chosen);
      return buildEvaluate(inferred);
    }
    if (order == 1)
      fuseComposites(graph);
    if (failed(decomposeComposites(graph)) || failed(expandGrads(graph)) ||
        failed(buildJoint(module, graph, chosen)))
      return failure();
    func::FuncOp second;
    if (order == 2) {
      auto built = buildGradJoint(module, graph);
      if (failed(built))
        return failure();
      second = *built;
    }
    if (failed(finishJoint(graph)) || (second && failed(finishJoint(second))) ||
        failed(buildEvaluate(inferred)))
      return failure();
    sealMutatedInBackward(module);
    return success();
  }
};

} // namespace
