//===- JointBuilder.cpp - a graph and its backward in one function --------===//
#include "passes/autodiff/JointBuilder.h"

#include "passes/autodiff/CustomVjp.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/Engine.h"
#include "passes/autodiff/Specialize.h"
#include "passes/common/EraseDeadOps.h"

#include "ir/Ops.h"
#include "ir/Pipeline.h"
#include "ir/Signature.h"
#include "ir/Where.h"

using namespace mlir;
using namespace tandem;

namespace {

/// A result that gets a cotangent.
struct Target {
  std::string name;
  Value value;
  bool isOutput;
};

class JointBuilder {
public:
  /// `isFirst`: of the graph itself, about which there is something to say.
  JointBuilder(ModuleOp module, func::FuncOp graph, bool isFirst)
      : module(module), graph(graph), isFirst(isFirst),
        terminator(graph.getBody().front().getTerminator()),
        numPrimals(graph.getNumArguments()) {}

  LogicalResult run(StringRef loss);

private:
  LogicalResult checkLeaves();
  SmallVector<Value> sources();
  FailureOr<SmallVector<Target>> chooseTargets(const GradientEngine &engine,
                                               StringRef loss);
  LogicalResult errorAtOutputs(StringRef loss, StringRef problem);
  LogicalResult addCotangents(GradientEngine &engine, ArrayRef<Target> targets);
  void addResult(Value value, RoleAttr role);
  void addGradients(const GradientEngine &engine);
  void addWrites(const GradientEngine &engine);
  /// What only custom backwards read, which leave it unchecked.
  void markUnchecked(Operation *lastForward);
  void tag(Operation *from, StringRef pass);

  RoleAttr role(RoleKind kind, StringRef name) {
    return RoleAttr::get(module.getContext(), kind, name);
  }
  DictionaryAttr asAttributes(RoleAttr role) {
    return DictionaryAttr::get(
        module.getContext(),
        NamedAttribute(StringAttr::get(module.getContext(), kRoleAttr), role));
  }

  ModuleOp module;
  func::FuncOp graph;
  bool isFirst;
  Operation *terminator;
  unsigned numPrimals;
};

} // namespace

/// A parameter that requires grad is the end of every gradient: the graph
/// cannot write it so that gradients flow, and have its gradient too.
LogicalResult JointBuilder::checkLeaves() {
  bool ok = true;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    if (role.getKind() != RoleKind::Update || !role.has(RoleAttr::kVisible))
      continue;
    auto param = findArgument(graph, RoleKind::Param, role.getName());
    if (!param || !roleOfArgument(graph, *param).has(RoleAttr::kRequiresGrad))
      continue;
    auto error = mlir::emitError(graph.getArgument(*param).getLoc())
                 << nameOfArgument(roleOfArgument(graph, *param), *param)
                 << " requires grad, but the graph writes it";
    if (auto where = role.getProperty<StringAttr>(RoleAttr::kWhere))
      error << ": " << where.getValue();
    ok = false;
  }
  return success(ok);
}

SmallVector<Value> JointBuilder::sources() {
  SmallVector<Value> values;
  for (BlockArgument argument : graph.getArguments())
    if (roleOfArgument(graph, argument.getArgNumber())
            .has(RoleAttr::kRequiresGrad))
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

/// The chosen output or all, and what later programs see of the inputs.
FailureOr<SmallVector<Target>>
JointBuilder::chooseTargets(const GradientEngine &engine, StringRef loss) {
  SmallVector<Target> outputs, updates;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    Value value = terminator->getOperand(i);
    if (!engine.depends(value))
      continue;
    StringRef name = role.getName();
    if (role.getKind() == RoleKind::Output && !role.has(RoleAttr::kNoGrad))
      outputs.push_back({name.str(), value, true});
    if (role.getKind() == RoleKind::Update && role.has(RoleAttr::kVisible) &&
        findArgument(graph, RoleKind::Input, name))
      updates.push_back({("update of " + name).str(), value, false});
  }
  if (isFirst) {
    auto *chosen = llvm::find_if(outputs, [&](const Target &target) {
      return target.name == (loss.empty() ? "loss" : loss);
    });
    if (chosen != outputs.end()) {
      outputs = SmallVector<Target>{*chosen};
    } else if (!loss.empty()) {
      auto output = findResult(graph, RoleKind::Output, loss);
      if (!output)
        return errorAtOutputs(loss, "is no output");
      if (!isDifferentiableType(graph.getResultTypes()[*output]))
        return errorAtOutputs(loss, "has no floating-point elements");
      return errorAtOutputs(loss, "depends on no argument that requires grad");
    }
    // Of a stage in front of others no output is the loss.
    auto pipeline = Pipeline::of(module);
    if (outputs.size() == 1 && (!pipeline || pipeline->isLast()))
      module->setAttr(kLossAttr,
                      StringAttr::get(module.getContext(), outputs[0].name));
  }
  outputs.append(updates);
  return outputs;
}

LogicalResult JointBuilder::addCotangents(GradientEngine &engine,
                                          ArrayRef<Target> targets) {
  for (const Target &target : targets)
    if (failed(graph.insertArgument(
            graph.getNumArguments(), target.value.getType(),
            asAttributes(role(RoleKind::Cotangent, target.name)),
            target.value.getLoc())))
      return failure();
  for (auto [i, target] : llvm::enumerate(targets))
    engine.seed(target.value, graph.getArgument(numPrimals + i));
  return success();
}

void JointBuilder::addResult(Value value, RoleAttr role) {
  terminator->insertOperands(terminator->getNumOperands(), value);
  (void)graph.insertResult(graph.getNumResults(), value.getType(),
                           asAttributes(role));
}

void JointBuilder::addGradients(const GradientEngine &engine) {
  OpBuilder builder(terminator);
  for (unsigned i = 0; i < numPrimals; ++i) {
    RoleAttr primal = roleOfArgument(graph, i);
    if (!primal.has(RoleAttr::kRequiresGrad))
      continue;
    BlockArgument argument = graph.getArgument(i);
    Value gradient = engine.cotangent(argument);
    // What the verifiers of later phases expect.
    if (gradient && primal.has(RoleAttr::kNoGrad))
      setRoleOfArgument(graph, i, primal.without(RoleAttr::kNoGrad));
    else if (!gradient && !primal.has(RoleAttr::kNoGrad))
      setRoleOfArgument(graph, i, primal.withUnit(RoleAttr::kNoGrad));
    if (!gradient) {
      if (isFirst && !engine.depends(argument))
        mlir::emitWarning(argument.getLoc())
            << "'" << primal.str() << "' requires grad, but no output that has "
            << "a gradient depends on it; it gets none";
      continue;
    }
    if (auto wanted = primal.getProperty<TypeAttr>(RoleAttr::kGradType)) {
      auto type = cast<RankedTensorType>(gradient.getType());
      if (type.getElementType() != wanted.getValue())
        gradient = CastOp::create(
            builder,
            NameLoc::get(builder.getStringAttr("grad type"), argument.getLoc()),
            type.clone(wanted.getValue()), gradient);
    }
    addResult(gradient, role(RoleKind::Grad, primal.getName()));
  }
}

void JointBuilder::addWrites(const GradientEngine &engine) {
  auto backward = StringAttr::get(module.getContext(), "backward");
  for (const auto &[name, write] : engine.writes())
    addResult(write.value,
              role(RoleKind::Update, name)
                  .with(RoleAttr::kPass, backward)
                  .with(RoleAttr::kWhere, StringAttr::get(module.getContext(),
                                                          whereIs(write.by))));
}

void JointBuilder::markUnchecked(Operation *lastForward) {
  DenseSet<Value> unchecked = resolveSavedValues(graph, lastForward);
  for (BlockArgument argument : graph.getArguments().take_front(numPrimals))
    if (unchecked.contains(argument))
      setRoleOfArgument(graph, argument.getArgNumber(),
                        roleOfArgument(graph, argument.getArgNumber())
                            .withUnit(RoleAttr::kUnchecked));
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(graph, i);
        role.getKind() == RoleKind::Output &&
        unchecked.contains(terminator->getOperand(i)))
      setRoleOfResult(graph, i, role.withUnit(RoleAttr::kUnchecked));
}

/// Tags the ops from `from` on.
void JointBuilder::tag(Operation *from, StringRef pass) {
  auto attribute = StringAttr::get(module.getContext(), pass);
  for (Operation *op = from; op != terminator; op = op->getNextNode())
    op->setAttr(kPassAttr, attribute);
}

LogicalResult JointBuilder::run(StringRef loss) {
  if (failed(checkLeaves()))
    return failure();
  GradientEngine engine(graph, terminator, sources());
  auto targets = chooseTargets(engine, loss);
  if (failed(targets))
    return failure();
  SmallVector<Value> values;
  for (const Target &target : *targets)
    values.push_back(target.value);
  auto wanter = [&](Value source) {
    unsigned index = cast<BlockArgument>(source).getArgNumber();
    return nameOfArgument(roleOfArgument(graph, index), index);
  };
  if (failed(engine.prune(values, wanter)))
    return failure();

  Block &block = graph.getBody().front();
  tag(&block.front(), "forward");
  Operation *lastForward = terminator->getPrevNode();
  if (failed(addCotangents(engine, *targets)) ||
      failed(engine.build(/*allowsEffects=*/true)))
    return failure();
  addGradients(engine);
  addWrites(engine);
  tag(lastForward ? lastForward->getNextNode() : &block.front(), "backward");
  markUnchecked(lastForward);
  return decomposeComposites(graph);
}

LogicalResult tandem::buildJoint(ModuleOp module, func::FuncOp graph,
                                 StringRef loss) {
  if (failed(JointBuilder(module, graph, /*isFirst=*/true).run(loss)))
    return failure();
  graph.setName("joint");
  return success();
}

//===----------------------------------------------------------------------===//
// The second joint
//===----------------------------------------------------------------------===//

/// The joint's arguments as those of a graph.
static RoleAttr asGraphArgument(RoleAttr role) {
  MLIRContext *context = role.getContext();
  if (role.getKind() == RoleKind::Cotangent)
    return RoleAttr::get(context, RoleKind::Input,
                         "cotangent of " + role.getName().str())
        .withUnit(RoleAttr::kRequiresGrad);
  if (role.has(RoleAttr::kPass))
    return RoleAttr::get(context, role.getKind(),
                         "backward of " + role.getName().str());
  return role.without(RoleAttr::kUnchecked);
}

/// The joint's results as those of a graph; null for what the second joint has
/// nothing to do with.
static RoleAttr asGraphResult(RoleAttr role) {
  MLIRContext *context = role.getContext();
  if (role.getKind() == RoleKind::Grad)
    return RoleAttr::get(context, RoleKind::Output,
                         "grad of " + role.getName().str());
  if (role.getKind() != RoleKind::Update || !role.has(RoleAttr::kPass))
    return {};
  if (role.getName().getValue().starts_with("cotangent of "))
    return role.without(RoleAttr::kPass);
  return RoleAttr::get(
      context, RoleKind::Update,
      StringAttr::get(context, "backward of " + role.getName().str()),
      role.without(RoleAttr::kPass).getProperties());
}

/// An argument that requires grad and that the backward writes has no gradient
/// of its gradient.
static LogicalResult checkSecondOrder(func::FuncOp joint) {
  bool ok = true;
  auto refuse = [&](RoleAttr role) {
    joint.emitError() << "expected no '" << role.str()
                      << "' with order 2, which names what it adds like that";
    ok = false;
  };
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (RoleAttr::belongs(role.getKind()))
      continue;
    for (StringRef taken : {"cotangent of ", "backward of "})
      if (role.getName().getValue().starts_with(taken))
        refuse(role);
  }
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(joint, i);
    if (role.getKind() != RoleKind::Update || !role.has(RoleAttr::kPass))
      continue;
    auto index = findValue(joint, role.getName());
    if (!index || !roleOfArgument(joint, *index).has(RoleAttr::kRequiresGrad))
      continue;
    auto error = mlir::emitError(joint.getArgument(*index).getLoc())
                 << nameOfArgument(roleOfArgument(joint, *index), *index)
                 << " requires grad and is written by the backward, which "
                    "cannot be differentiated again";
    if (auto where = role.getProperty<StringAttr>(RoleAttr::kWhere))
      error << ": " << where.getValue();
    ok = false;
  }
  return success(ok);
}

FailureOr<func::FuncOp> tandem::buildGradJoint(ModuleOp module,
                                               func::FuncOp joint) {
  if (failed(checkSecondOrder(joint)))
    return failure();
  func::FuncOp graph = joint.clone();
  joint->getBlock()->getOperations().insert(std::next(joint->getIterator()),
                                            graph);
  graph.setName("grad_joint");
  specializeCotangents(graph);
  for (unsigned i = 0, n = graph.getNumArguments(); i < n; ++i)
    setRoleOfArgument(graph, i, asGraphArgument(roleOfArgument(graph, i)));
  Operation *terminator = graph.getBody().front().getTerminator();
  llvm::BitVector dropped(graph.getNumResults());
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    if (RoleAttr role = asGraphResult(roleOfResult(graph, i)))
      setRoleOfResult(graph, i, role);
    else
      dropped.set(i);
  }
  terminator->eraseOperands(dropped);
  if (failed(graph.eraseResults(dropped)))
    return failure();
  eraseDeadOps(graph);
  if (failed(JointBuilder(module, graph, /*isFirst=*/false).run("")))
    return failure();
  return graph;
}
