//===- OptimizeJoint.cpp - simplification across forward and backward -----===//
//
// What ops are tagged with would keep equal ones apart. CarryTags carries what
// the program says of them; which pass they are of is taken off first and
// worked out again at the end: forward is what an output or an update needs,
// backward is the rest. Of equal ops the first survives, which is the forward
// one. Signatures stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/Definedness.h"
#include "passes/optimize/CarryTags.h"
#include "passes/optimize/ExpandFlow.h"
#include "passes/optimize/Simplify.h"
#include "passes/target/Target.h"

#include "ir/EmptyTensors.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_OPTIMIZEJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct OptimizeJoint : tandem::impl::OptimizeJointBase<OptimizeJoint> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(expectPhase(module, "joint")) ||
        failed(checkDoor(module, "joint")))
      return signalPassFailure();
    bool ok = true;
    for (auto func : module.getOps<func::FuncOp>())
      ok &= succeeded(expandFlow(func));
    if (!ok)
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>()) {
      // Before other rewrites, which take it that there are elements.
      foldEmptyTensors(func);
      TagCarrier tags(func);
      for (Operation &op : func.getOps())
        op.removeAttr(kPassAttr);
      setPrecision(func);
      ok &= succeeded(simplify(func, tags));
    }
    if (!ok)
      return signalPassFailure();
    for (StringRef name : {"joint", "grad_joint"})
      if (auto joint = module.lookupSymbol<func::FuncOp>(name))
        tag(joint);
    if (failed(leavePhase(module, "optimize")))
      signalPassFailure();
  }

  /// Folding can make ops equal and merging can make them foldable; the second
  /// round finds the rest.
  LogicalResult simplify(func::FuncOp func, TagCarrier &tags) {
    SmallVector<ArrayAttr> conditions = conditionsOf(func);
    for (int round = 0; round < 2; ++round) {
      simplifyOps(func, &tags);
      tags.merge();
    }
    if (failed(tags.restore()))
      return failure();
    keepConditions(func, conditions);
    eraseDeadOps(func);
    hoistConstants(func);
    return success();
  }

  /// What the compilation asks of products stands at each.
  void setPrecision(func::FuncOp func) {
    func.walk([](Operation *op) {
      StringRef precision = productPrecision(op);
      if (!precision.empty() && precision != "f32")
        op->setAttr("precision", StringAttr::get(op->getContext(), precision));
    });
  }

  /// When each result is defined.
  SmallVector<ArrayAttr> conditionsOf(func::FuncOp func) {
    Definedness definedness(func);
    SmallVector<ArrayAttr> conditions;
    for (Value value : func.getBody().front().getTerminator()->getOperands())
      conditions.push_back(definedness.of(value));
    return conditions;
  }

  /// A gradient that folds to a constant is undefined where it was before.
  void keepConditions(func::FuncOp func, ArrayRef<ArrayAttr> before) {
    Operation *terminator = func.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    for (auto [i, after] : llvm::enumerate(conditionsOf(func)))
      if (after != before[i] &&
          isDifferentiableType(terminator->getOperand(i).getType()))
        terminator->setOperand(
            i, OrZeroOp::create(builder, terminator->getOperand(i).getLoc(),
                                terminator->getOperand(i), before[i]));
  }

  void tag(func::FuncOp joint) {
    Operation *terminator = joint.getBody().front().getTerminator();
    DenseSet<Value> needed;
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (!isBackward(roleOfResult(joint, i)))
        needed.insert(value);
    for (Operation &op : llvm::reverse(joint.getBody().front())) {
      if (&op == terminator)
        continue;
      bool forward = llvm::any_of(op.getResults(), [&](Value result) {
        return needed.contains(result);
      });
      if (forward)
        needed.insert(op.operand_begin(), op.operand_end());
      op.setAttr(kPassAttr, StringAttr::get(&getContext(),
                                            forward ? "forward" : "backward"));
    }
  }
};

} // namespace
