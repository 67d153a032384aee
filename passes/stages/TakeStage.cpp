//===- TakeStage.cpp - the graph of one stage -----------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/Engine.h"
#include "passes/stages/StageFlow.h"

#include "ir/Ops.h"
#include "ir/Pipeline.h"
#include "ir/UpdateAttributes.h"

#include "mlir/IR/IRMapping.h"

namespace tandem {
#define GEN_PASS_DEF_TAKESTAGE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class Taker {
public:
  Taker(ModuleOp module, func::FuncOp graph, Pipeline pipeline)
      : module(module), graph(graph), pipeline(pipeline), own(*pipeline.stage),
        flow(graph), terminator(graph.getBody().front().getTerminator()) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult findLoss();
  void findStages();
  void findActive();
  /// The values that go from stage `stage` to the next one.
  SmallVector<std::pair<unsigned, Value>> crossing(int64_t stage);
  bool isOwnResult(unsigned index);
  void findKept();
  void build();
  void setAttributes(StringRef lossName);

  int64_t stageOf(Operation *op) {
    return op->getAttrOfType<IntegerAttr>(kStageAttr).getInt();
  }
  static std::string nameOf(unsigned number) {
    return kCrossingPrefix.str() + std::to_string(number);
  }
  RoleAttr crossingRole(RoleKind kind, unsigned number, Value value);

  ModuleOp module;
  func::FuncOp graph;
  Pipeline pipeline;
  int64_t own;
  StageFlow flow;
  Operation *terminator;
  std::string loss;
  /// Of each value that may cross, the stages that make it and that need it.
  struct Stages {
    int64_t from, last;
  };
  llvm::MapVector<Value, Stages> stages;
  /// What has a gradient that the loss needs.
  llvm::DenseSet<Value> active;
  llvm::DenseSet<Operation *> kept;
  llvm::DenseSet<Value> arguments; ///< of the graph, that are kept
  SmallVector<std::pair<unsigned, Value>> takes, gives;
};

} // namespace

/// What the runtime cannot do for several stages.
LogicalResult Taker::check() {
  bool isWrong = false;
  for (Operation *op : flow.ops())
    if (!op->hasAttr(kStageAttr)) {
      op->emitError() << "expected '" << kStageAttr
                      << "', the number of its stage (tandem-assign-stages)";
      isWrong = true;
    }
  for (BlockArgument argument : graph.getArguments()) {
    RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
    auto refuse = [&](const Twine &what) {
      mlir::emitError(argument.getLoc())
          << "'" << role.str() << "' " << what << ", which is not compiled for "
          << "a pipeline yet";
      isWrong = true;
    };
    if (role.getKind() == RoleKind::Input && role.has(RoleAttr::kRequiresGrad))
      refuse("has a gradient");
    if (role.has(RoleAttr::kMetadata) || role.has(RoleAttr::kStorage) ||
        role.has(RoleAttr::kResize))
      refuse("is given another shape or storage");
    if (role.getName().getValue().starts_with(kCrossingPrefix))
      refuse("is called as values between stages are");
  }
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    if (role.getKind() == RoleKind::Update &&
        findArgument(graph, RoleKind::Input, role.getName())) {
      graph.emitError() << "'" << role.str() << "' overwrites an input, which "
                        << "is not compiled for a pipeline yet";
      isWrong = true;
    }
  }
  return failure(isWrong);
}

LogicalResult Taker::findLoss() {
  auto named = module->getAttrOfType<StringAttr>(kLossAttr);
  loss = named ? named.str() : "loss";
  auto index = findResult(graph, RoleKind::Output, loss);
  if (!index)
    return graph.emitError()
           << "expected --loss=NAME: a pipeline needs one "
           << "output to differentiate, and there is no '" << loss << "'";
  Value value = terminator->getOperand(*index);
  auto *maker = value.getDefiningOp();
  Type element = getElementTypeOrSelf(value);
  if (module->hasAttr(kLossScaleAttr) && !element.isF32() && !element.isF64())
    return mlir::emitError(value.getLoc())
           << "'" << kLossScaleAttr << "' needs a loss of f32 or f64, but '"
           << loss << "' has type " << value.getType();
  if (maker && !flow.isFloating(maker) && stageOf(maker) == pipeline.stages - 1)
    return success();
  return mlir::emitError(value.getLoc())
         << "expected the loss '" << loss << "' to be made in the last stage, "
         << pipeline.stages - 1;
}

void Taker::findStages() {
  for (const auto &[value, range] : flow.carried())
    stages[value] = {stageOf(flow.ops()[range.first]),
                     stageOf(flow.ops()[range.last])};
}

void Taker::findActive() {
  SmallVector<Value> sources;
  for (BlockArgument argument : graph.getArguments())
    if (roleOfArgument(graph, argument.getArgNumber())
            .has(RoleAttr::kRequiresGrad))
      sources.push_back(argument);
  GradientEngine engine(graph, terminator, sources);
  llvm::DenseSet<Value> useful;
  useful.insert(
      terminator->getOperand(*findResult(graph, RoleKind::Output, loss)));
  for (Operation *op : llvm::reverse(flow.ops()))
    if (llvm::any_of(op->getResults(), [&](Value result) {
          return useful.contains(result) && engine.depends(result);
        }))
      for (Value operand : StageFlow::operandsOf(op))
        useful.insert(operand);
  for (const auto &[value, unused] : stages)
    if (useful.contains(value) && engine.depends(value))
      active.insert(value);
}

SmallVector<std::pair<unsigned, Value>> Taker::crossing(int64_t stage) {
  SmallVector<std::pair<unsigned, Value>> found;
  unsigned number = 0;
  for (const auto &[value, range] : stages) {
    if (range.from == range.last)
      continue;
    if (range.from <= stage && stage < range.last)
      found.push_back({number, value});
    ++number;
  }
  return found;
}

/// What nobody makes is a result of the last stage; a new value that every
/// stage can make is one of each stage that uses the old one.
bool Taker::isOwnResult(unsigned index) {
  RoleAttr role = roleOfResult(graph, index);
  Value value = terminator->getOperand(index);
  bool isLast = own == pipeline.stages - 1;
  if (role.getKind() == RoleKind::Update && flow.isFree(value))
    return isLast || arguments.contains(
                         graph.getArgument(*findValue(graph, role.getName())));
  if (auto *maker = value.getDefiningOp(); maker && !flow.isFloating(maker))
    return stageOf(maker) == own;
  if (auto found = stages.find(value); found != stages.end())
    return found->second.from == own;
  return isLast;
}

/// The ops and arguments of the stage.
void Taker::findKept() {
  SmallVector<Value> wanted;
  auto want = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      arguments.insert(argument);
    else if (flow.isFree(value))
      wanted.push_back(value);
  };
  auto follow = [&] {
    while (!wanted.empty()) {
      Operation *op = wanted.pop_back_val().getDefiningOp();
      if (!kept.insert(op).second)
        continue;
      for (Value operand : op->getOperands())
        want(operand);
    }
  };
  for (Operation *op : flow.ops()) {
    if (flow.isFloating(op) || stageOf(op) != own)
      continue;
    kept.insert(op);
    for (Value operand : StageFlow::operandsOf(op))
      want(operand);
  }
  follow();
  // What a stage updates can need no state that it has not.
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
    if (isOwnResult(i))
      want(terminator->getOperand(i));
  follow();
  // What nobody reads is kept where the model begins.
  if (own == 0)
    for (BlockArgument argument : graph.getArguments())
      if (argument.use_empty())
        arguments.insert(argument);
  // A param of an earlier stage comes as a value.
  for (auto [number, value] : takes)
    arguments.erase(value);
}

RoleAttr Taker::crossingRole(RoleKind kind, unsigned number, Value value) {
  auto role = RoleAttr::get(module.getContext(), kind, nameOf(number));
  if (kind == RoleKind::Input && active.contains(value))
    role = role.withUnit(RoleAttr::kRequiresGrad);
  if (kind == RoleKind::Output && !active.contains(value))
    role = role.withUnit(RoleAttr::kNoGrad);
  return role;
}

void Taker::build() {
  SmallVector<Slot> slots, results;
  SmallVector<Value> old;
  for (BlockArgument argument : graph.getArguments())
    if (arguments.contains(argument)) {
      slots.push_back({argument.getType(),
                       roleOfArgument(graph, argument.getArgNumber()),
                       argument.getLoc()});
      old.push_back(argument);
    }
  for (auto [number, value] : takes) {
    slots.push_back({value.getType(),
                     crossingRole(RoleKind::Input, number, value),
                     value.getLoc()});
    old.push_back(value);
  }
  SmallVector<Value> returned;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (!isOwnResult(i))
      continue;
    // Its storage is its own: what it would share may be in another stage.
    RoleAttr role = roleOfResult(graph, i).without(RoleAttr::kAlias);
    bool isLast = own == pipeline.stages - 1;
    if (role.getKind() == RoleKind::Output && !isLast &&
        !role.has(RoleAttr::kNoGrad))
      role = role.withUnit(RoleAttr::kNoGrad);
    results.push_back({value.getType(), role, value.getLoc()});
    returned.push_back(value);
  }
  for (auto [number, value] : gives) {
    results.push_back({value.getType(),
                       crossingRole(RoleKind::Output, number, value),
                       value.getLoc()});
    returned.push_back(value);
  }
  OpBuilder builder(graph);
  func::FuncOp made =
      createGraphFunction(builder, graph.getLoc(), "graph", slots, results);
  builder.setInsertionPointToStart(&made.getBody().front());
  IRMapping map;
  for (auto [value, argument] : llvm::zip_equal(old, made.getArguments()))
    map.map(value, argument);
  for (Operation *op : flow.ops())
    if (kept.contains(op))
      builder.clone(*op, map)->removeAttr(kStageAttr);
  for (Value &value : returned)
    value = map.lookup(value);
  func::ReturnOp::create(builder, terminator->getLoc(), returned);
  graph.erase();
}

void Taker::setAttributes(StringRef lossName) {
  Builder b(module.getContext());
  auto namesOf = [&](ArrayRef<std::pair<unsigned, Value>> values) {
    SmallVector<std::string> names;
    for (auto [number, value] : values)
      names.push_back(nameOf(number));
    SmallVector<StringRef> refs(names.begin(), names.end());
    return b.getStrArrayAttr(refs);
  };
  SmallVector<Attribute> inputs;
  for (BlockArgument argument : graph.getArguments())
    if (RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
        role.getKind() == RoleKind::Input)
      inputs.push_back(b.getDictionaryAttr(
          {b.getNamedAttr(pipeline::kRole, role),
           b.getNamedAttr(pipeline::kType,
                          TypeAttr::get(argument.getType()))}));
  NamedAttrList params;
  for (const auto &values : {takes, gives})
    for (auto [number, value] : values)
      if (auto param = dyn_cast<BlockArgument>(value))
        params.set(nameOf(number),
                   roleOfArgument(graph, param.getArgNumber()).getName());
  NamedAttrList fields(module->getAttrOfType<DictionaryAttr>(kPipelineAttr));
  if (!params.empty())
    fields.set(pipeline::kParams, params.getDictionary(module.getContext()));
  fields.set(pipeline::kTakes, namesOf(takes));
  fields.set(pipeline::kGives, namesOf(gives));
  fields.set(pipeline::kInputs, b.getArrayAttr(inputs));
  module->setAttr(kPipelineAttr, fields.getDictionary(module.getContext()));
  if (own == pipeline.stages - 1)
    module->setAttr(kLossAttr, b.getStringAttr(lossName));
  else
    module->removeAttr(kLossAttr);
}

LogicalResult Taker::run() {
  if (failed(check()) || failed(findLoss()))
    return failure();
  findStages();
  findActive();
  if (own > 0)
    takes = crossing(own - 1);
  gives = crossing(own);
  findKept();
  setAttributes(loss);
  build();
  return success();
}

namespace {

struct TakeStage : tandem::impl::TakeStageBase<TakeStage> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto pipeline = Pipeline::of(module);
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!pipeline || !graph)
      return markAllAnalysesPreserved();
    if (!pipeline->stage) {
      module.emitError() << "expected '" << kPipelineAttr
                         << "' to say which stage is taken ('stage')";
      return signalPassFailure();
    }
    if (failed(Taker(module, graph, *pipeline).run()))
      signalPassFailure();
  }
};

} // namespace
