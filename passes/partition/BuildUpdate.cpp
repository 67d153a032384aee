//===- BuildUpdate.cpp - what the module says of its update ---------------===//
#include "passes/Passes.h"
#include "passes/optimize/Simplify.h"
#include "passes/partition/UpdateBuilder.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Pipeline.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDUPDATE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static bool hasParamGradient(func::FuncOp forward, func::FuncOp backward) {
  RoleIndex roles(forward);
  for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(backward, i);
        role.getKind() == RoleKind::Grad &&
        roles.argument(RoleKind::Param, role.getName()))
      return true;
  return false;
}

/// Reads what the module says; reports all that is wrong.
static FailureOr<UpdateSpec> readSpec(ModuleOp module, StringAttr optimizer) {
  UpdateSpec spec;
  std::string error;
  auto of = parseOptimizerSpec(optimizer, error);
  if (!of)
    return module.emitError() << error;
  spec.optimizer = *std::move(of);
  bool isWrong = false;
  auto read = [&](StringRef name, auto parse, auto take) {
    auto text = module->getAttrOfType<StringAttr>(name);
    if (!text)
      return;
    if (auto value = parse(text, error)) {
      take(*std::move(value));
      return;
    }
    module.emitError() << "'" << name << "': " << error;
    isWrong = true;
  };
  auto averages = [&](AverageSpec one) { spec.averages.push_back(one); };
  read(kClipAttr, parseClipSpec, [&](auto value) { spec.clip = value; });
  read(kGradientNoiseAttr, parseNoiseSpec,
       [&](auto value) { spec.noise = value; });
  read(kLossScaleAttr, parseLossScaleSpec,
       [&](auto value) { spec.scaling = value; });
  read(kLrScheduleAttr, parseScheduleSpec,
       [&](auto value) { spec.schedule = std::move(value); });
  read(kEmaAttr, parseEmaSpec, averages);
  read(kSwaAttr, parseSwaSpec, averages);
  if (auto groups = module->getAttrOfType<ArrayAttr>(kGroupsAttr))
    for (auto text : groups.getAsRange<StringAttr>()) {
      auto group = parseGroupSpec(text, spec.optimizer, error);
      if (group) {
        spec.groups.push_back(*std::move(group));
        continue;
      }
      module.emitError() << "'" << kGroupsAttr << "': " << error;
      isWrong = true;
    }
  spec.accumulates = module->hasAttr(kAccumulateAttr);
  spec.centralizes = module->hasAttr(kCentralizeAttr);
  if (spec.noise && Pipeline::of(module)) {
    module.emitError() << "'" << kGradientNoiseAttr
                       << "' is of models that are not cut into stages, which "
                          "would draw the same numbers";
    isWrong = true;
  }
  if (isWrong)
    return failure();
  return spec;
}

namespace {

struct BuildUpdate : tandem::impl::BuildUpdateBase<BuildUpdate> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto optimizer = module->getAttrOfType<StringAttr>(kOptimizerAttr);
    if (failed(checkSignatures(module)))
      return signalPassFailure();
    for (StringRef name :
         {StringRef(kClipAttr), StringRef(kGradientNoiseAttr),
          StringRef(kCentralizeAttr), StringRef(kLossScaleAttr),
          StringRef(kAccumulateAttr), StringRef(kGroupsAttr),
          StringRef(kLrScheduleAttr), StringRef(kEmaAttr), StringRef(kSwaAttr)})
      if (module->hasAttr(name) && !optimizer) {
        module.emitError() << "'" << name << "' needs '" << kOptimizerAttr
                           << "', whose update is meant";
        return signalPassFailure();
      }
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!optimizer || !forward)
      return markAllAnalysesPreserved();
    if (failed(build(optimizer, forward)))
      signalPassFailure();
  }

  /// What the params share (rates, bias corrections) is computed once.
  void simplify(func::FuncOp func) {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
    simplifyOps(func);
  }

  LogicalResult build(StringAttr optimizer, func::FuncOp forward) {
    ModuleOp module = getOperation();
    if (Operation *other = module.lookupSymbol("update"))
      return other->emitError() << "expected no 'update' before an optimizer "
                                   "is made a program";
    auto backward = module.lookupSymbol<func::FuncOp>("backward");
    bool hasGradient = backward && hasParamGradient(forward, backward);
    // A stage may have no param, where others have.
    if (!hasGradient && Pipeline::of(module))
      return success();
    if (!hasGradient)
      return forward.emitError()
             << "optimizer '" << optimizer.getValue()
             << "' has nothing to do: no param has a gradient (in a model in "
                "ONNX, --loss=KIND:OUTPUT,LABELS makes them)";
    auto spec = readSpec(module, optimizer);
    if (failed(spec))
      return failure();
    bool accumulates = spec->accumulates;
    UpdateBuilder builder(forward, backward, *std::move(spec));
    auto update = builder.run();
    if (failed(update))
      return failure();
    for (unsigned i = 0, n = update->getNumArguments(); i < n; ++i)
      params += roleOfArgument(*update, i).getKind() == RoleKind::Param;
    simplify(*update);
    auto norm = builder.buildNorm();
    if (failed(norm))
      return failure();
    if (*norm)
      simplify(*norm);
    if (accumulates)
      builder.buildAccumulation();
    return success();
  }
};

} // namespace
