//===- BuildJoint.cpp - @joint and @evaluate from @graph ------------------===//
//
// @evaluate is the graph in inference mode: the outputs, no updates. @joint is
// the graph and its backward in one function: after the graph's arguments one
// cotangent per differentiable output; after its results one gradient per
// argument that requires grad and reaches such an output.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/Engine.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// An output that gets a cotangent.
struct Target {
  StringRef name;
  Value value;
};

class JointBuilder {
public:
  JointBuilder(ModuleOp module, func::FuncOp graph)
      : module(module), graph(graph),
        terminator(graph.getBody().front().getTerminator()) {}

  LogicalResult run(StringRef loss);

private:
  LogicalResult checkLeaves();
  SmallVector<Value> sources();
  FailureOr<SmallVector<Target>> chooseTargets(const GradientEngine &engine,
                                               StringRef loss);
  LogicalResult errorAtOutputs(StringRef loss, StringRef problem);
  void tag(Operation *from, Operation *to, StringRef pass);

  ModuleOp module;
  func::FuncOp graph;
  Operation *terminator;
};

} // namespace

/// A parameter that requires grad is the end of every gradient: the graph
/// cannot write it and have its gradient too.
LogicalResult JointBuilder::checkLeaves() {
  bool ok = true;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    if (role.getKind() != RoleKind::Update)
      continue;
    auto param = findArgument(graph, RoleKind::Param, role.getName());
    if (!param || !roleOfArgument(graph, *param).has("requires_grad"))
      continue;
    mlir::emitError(graph.getArgument(*param).getLoc())
        << "'" << roleOfArgument(graph, *param).str()
        << "' requires grad, but the graph writes it";
    ok = false;
  }
  return success(ok);
}

SmallVector<Value> JointBuilder::sources() {
  SmallVector<Value> values;
  for (BlockArgument argument : graph.getArguments())
    if (roleOfArgument(graph, argument.getArgNumber()).has("requires_grad"))
      values.push_back(argument);
  return values;
}

LogicalResult JointBuilder::errorAtOutputs(StringRef loss, StringRef problem) {
  auto error = graph.emitError() << "the loss '" << loss << "' " << problem
                                 << "; the outputs are";
  StringRef separator = " ";
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(graph, i);
        role.getKind() == RoleKind::Output) {
      error << separator << "'" << role.getName().getValue() << "' ("
            << graph.getResultTypes()[i] << ")";
      separator = ", ";
    }
  return error;
}

/// The output named by `loss`; without a name the output 'loss', or else every
/// output that depends on an argument that requires grad.
FailureOr<SmallVector<Target>>
JointBuilder::chooseTargets(const GradientEngine &engine, StringRef loss) {
  SmallVector<Target> all;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    Value value = terminator->getOperand(i);
    if (role.getKind() == RoleKind::Output && !role.has("no_grad") &&
        engine.depends(value))
      all.push_back({role.getName().getValue(), value});
  }
  for (const Target &target : all)
    if (target.name == (loss.empty() ? "loss" : loss))
      return SmallVector<Target>{target};
  if (loss.empty())
    return all;
  auto output = findResult(graph, RoleKind::Output, loss);
  if (!output)
    return errorAtOutputs(loss, "is no output");
  if (!isDifferentiableType(graph.getResultTypes()[*output]))
    return errorAtOutputs(loss, "has no floating-point elements");
  return errorAtOutputs(loss, "depends on no argument that requires grad");
}

/// Tags the ops from `from` up to `to`, which is not tagged.
void JointBuilder::tag(Operation *from, Operation *to, StringRef pass) {
  auto attribute = StringAttr::get(module.getContext(), pass);
  for (Operation *op = from; op != to; op = op->getNextNode())
    op->setAttr(kPassAttr, attribute);
}

LogicalResult JointBuilder::run(StringRef loss) {
  if (failed(checkLeaves()))
    return failure();
  GradientEngine engine(graph, sources());
  auto targets = chooseTargets(engine, loss);
  if (failed(targets))
    return failure();
  SmallVector<Value> values;
  for (const Target &target : *targets)
    values.push_back(target.value);
  if (failed(engine.prune(values)))
    return failure();
  if (targets->size() == 1)
    module->setAttr(kLossAttr,
                    StringAttr::get(module.getContext(), (*targets)[0].name));

  Block &block = graph.getBody().front();
  tag(&block.front(), terminator, "forward");
  Operation *lastForward = terminator->getPrevNode();
  MLIRContext *context = module.getContext();
  unsigned numPrimals = graph.getNumArguments();
  auto roles = [&](RoleKind kind, StringRef name) {
    return DictionaryAttr::get(
        context, NamedAttribute(StringAttr::get(context, kRoleAttr),
                                RoleAttr::get(context, kind, name)));
  };
  for (const Target &target : *targets) {
    if (failed(graph.insertArgument(
            graph.getNumArguments(), target.value.getType(),
            roles(RoleKind::Cotangent, target.name), target.value.getLoc())))
      return failure();
    engine.seed(target.value, graph.getArguments().back());
  }
  if (failed(engine.build()))
    return failure();

  SmallVector<Value> results(terminator->getOperands());
  for (unsigned i = 0; i < numPrimals; ++i) {
    RoleAttr role = roleOfArgument(graph, i);
    if (!role.has("requires_grad"))
      continue;
    BlockArgument argument = graph.getArgument(i);
    Value gradient = engine.cotangent(argument);
    if (!gradient) {
      mlir::emitWarning(argument.getLoc())
          << "'" << role.str() << "' requires grad, but no output that has a "
          << "gradient depends on it; it gets none";
      continue;
    }
    results.push_back(gradient);
    if (failed(graph.insertResult(
            graph.getNumResults(), gradient.getType(),
            roles(RoleKind::Grad, role.getName().getValue()))))
      return failure();
  }
  terminator->setOperands(results);
  tag(lastForward ? lastForward->getNextNode() : &block.front(), terminator,
      "backward");
  graph.setName("joint");
  if (failed(decomposeComposites(graph)))
    return failure();
  eraseDeadOps(graph);
  return success();
}

/// A copy of `graph` in inference mode, with its outputs alone.
static LogicalResult buildEvaluate(func::FuncOp graph) {
  func::FuncOp evaluate = graph.clone();
  evaluate.setName("evaluate");
  graph->getBlock()->getOperations().insert(std::next(graph->getIterator()),
                                            evaluate);
  setInference(evaluate);
  Operation *terminator = evaluate.getBody().front().getTerminator();
  llvm::BitVector updates(evaluate.getNumResults());
  for (unsigned i = 0, n = evaluate.getNumResults(); i < n; ++i)
    updates[i] = roleOfResult(evaluate, i).getKind() == RoleKind::Update;
  terminator->eraseOperands(updates);
  if (failed(evaluate.eraseResults(updates)) ||
      failed(decomposeComposites(evaluate)))
    return failure();
  eraseDeadOps(evaluate);
  return success();
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
    if (failed(buildEvaluate(graph)))
      return signalPassFailure();
    if (inference) {
      graph.erase();
    } else if (failed(decomposeComposites(graph)) ||
               failed(JointBuilder(module, graph).run(chosen))) {
      return signalPassFailure();
    }
    if (failed(leavePhase(module, "joint")))
      signalPassFailure();
  }
};

} // namespace
