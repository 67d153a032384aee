//===- BuildUpdate.cpp - an optimizer as a program ------------------------===//
//
// What an optimizer computes is a row of a table (optimizers/Optimizers.h);
// here it gets its states and its place in a function. Parameters of f16 and
// bf16 have states in f32. Each parameter counts its own steps, as in PyTorch:
// one whose gradient was undefined is corrected later for the steps that it
// took, not for those that others took.
//
// Where gradients are clipped by their norm, or are of a loss that was scaled,
// an update whose norm is not finite changes nothing but the count of such
// updates, and the scale.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/optimize/Simplify.h"
#include "passes/partition/ClipGradients.h"
#include "passes/partition/LossScaleSpec.h"
#include "passes/partition/OptimizerSpec.h"
#include "passes/partition/optimizers/ParamUpdate.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Collective.h"
#include "ir/Expr.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "ir/ops/Composite.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringSet.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDUPDATE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp forward, func::FuncOp backward, OptimizerSpec spec,
                std::optional<ClipSpec> clip,
                std::optional<LossScaleSpec> scaling, bool accumulates)
      : forward(forward), backward(backward), spec(std::move(spec)), clip(clip),
        scaling(scaling), accumulates(accumulates),
        builder(backward.getContext()),
        loc(NameLoc::get(builder.getStringAttr("update"), backward.getLoc())) {}

  FailureOr<func::FuncOp> run();
  /// Behind run(): @accumulation, which adds gradients to their sums.
  func::FuncOp buildAccumulation();

private:
  /// The type of a state of a param of this type; null if there is none.
  RankedTensorType typeOf(const OptimizerState &state,
                          RankedTensorType param) const;
  std::string stateName(StringRef variable, StringRef param = "") const;

  /// True if it looks at the norm, and an update may be left out.
  bool findsNorm() const {
    return scaling || (clip && clip->kind == ClipSpec::Kind::Norm);
  }

  void collectSlots();
  /// The sum of the gradients of `param`, whose slots are the last ones.
  void addSum(StringRef param, RankedTensorType type, ArrayAttr axes);
  LogicalResult checkNames();
  void addState(std::string name, RankedTensorType type, double init);
  /// The argument that is the param or state `name`.
  Value argument(StringRef name);
  Value meanOf(size_t i, Value gradient);
  /// Finds the gradients that are used, their norm, and what follows from it.
  void checkGradients();
  /// Finds the next scale, and how many updates in a row it has had.
  void updateScale();
  /// The gradient of param `i` as the optimizer sees it.
  Value gradientOf(size_t i);
  /// Makes `value` the new value of the param or state `name`: unless this
  /// update is skipped.
  void update(std::string name, Value value);
  /// The number of the update of `param` that this one is.
  Value createStep(StringRef param);
  /// Updates param `i` and the optimizer's states of it.
  void updateParam(size_t i);
  void setResults();

  func::FuncOp forward, backward;
  OptimizerSpec spec;
  std::optional<ClipSpec> clip;
  std::optional<LossScaleSpec> scaling;
  bool accumulates;
  OpBuilder builder;
  Location loc;
  /// Params, gradients, states: the arguments.
  SmallVector<Slot> params, gradients, states;
  /// Of each gradient that ranks sum up at the end of the backward: the slot of
  /// their parts, one beside the other along a dimension in front.
  SmallVector<std::optional<Slot>> parts;
  func::FuncOp func;
  std::optional<RoleIndex> roles; ///< of `func`
  SmallVector<Value> used; ///< the gradients, with what was added up before
  Value norm;              ///< of the gradients; null if nobody asked for it
  Value isFinite;          ///< else this update is skipped; null if none is
  /// New values, by the name of the param or state, and the gradients without
  /// which there is none, where that does not follow from the value.
  llvm::StringMap<Value> updates;
  llvm::StringMap<ArrayAttr> needs;
};

} // namespace

RankedTensorType UpdateBuilder::typeOf(const OptimizerState &state,
                                       RankedTensorType param) const {
  if (!state.ifOption.empty() && spec.values.lookup(state.ifOption) == 0)
    return {};
  Type element = param.getElementType();
  if (!element.isF64())
    element = Float32Type::get(param.getContext());
  if (!state.shape)
    return param.clone(element);
  auto shape = state.shape(param.getShape());
  return shape ? RankedTensorType::get(*shape, element) : RankedTensorType();
}

std::string UpdateBuilder::stateName(StringRef variable,
                                     StringRef param) const {
  std::string name = (spec.kind->name + "." + variable).str();
  return param.empty() ? name : name + ":" + param.str();
}

void UpdateBuilder::addState(std::string name, RankedTensorType type,
                             double init) {
  auto value = builder.getDictionaryAttr(
      {builder.getNamedAttr(key::kKind, builder.getStringAttr("constant")),
       builder.getNamedAttr(key::kValue, builder.getF64FloatAttr(init))});
  auto role = RoleAttr::get(builder.getContext(), RoleKind::State, name);
  states.push_back({type, role.with(RoleAttr::kInit, value), loc});
}

/// Returns the axes over which the last op of the backward sums up result `i`;
/// null if it does not.
static ArrayAttr axesOfSum(func::FuncOp backward, unsigned i) {
  Operation *end = backward.getBody().front().getTerminator();
  auto sum = end->getOperand(i).getDefiningOp<AllReduceOp>();
  return sum && sum.getReduce() == CollectiveReduce::sum ? sum.getAxes()
                                                         : ArrayAttr();
}

/// Puts a dimension in front of a value of `type`: an index for each rank of
/// `axes`, which has what is there.
static Slot forEachRank(func::FuncOp func, RoleAttr role, RankedTensorType type,
                        ArrayAttr axes, Location loc) {
  SmallVector<int64_t> shape{MeshAttr::of(func).groupSize(axes)};
  llvm::append_range(shape, type.getShape());
  SmallVector<Attribute> sharding{axes};
  if (ArrayAttr cut = role.getSharding())
    llvm::append_range(sharding, cut);
  else
    sharding.resize(shape.size(), ArrayAttr::get(func.getContext(), {}));
  return {type.clone(shape),
          role.with(RoleAttr::kSharding,
                    ArrayAttr::get(func.getContext(), sharding)),
          loc};
}

void UpdateBuilder::addSum(StringRef param, RankedTensorType type,
                           ArrayAttr axes) {
  addState(stateName("sum", param), type, 0);
  parts.emplace_back();
  if (!axes)
    return;
  // Ranks reduce sums once, and not each gradient.
  const Slot &gradient = gradients[parts.size() - 1];
  auto gradientType = cast<RankedTensorType>(gradient.type);
  parts.back() = forEachRank(backward, gradient.role, gradientType, axes, loc);
  RoleAttr role = states.back().role;
  if (ArrayAttr cut = gradient.role.getSharding())
    role = role.with(RoleAttr::kSharding, cut);
  states.back() = forEachRank(backward, role, type, axes, loc);
}

void UpdateBuilder::collectSlots() {
  SmallVector<ArrayAttr> axes;
  RoleIndex roles(forward);
  for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(backward, i);
    if (role.getKind() != RoleKind::Grad)
      continue;
    auto index = roles.argument(RoleKind::Param, role.getName());
    if (!index)
      continue;
    // The update is of one process: which pieces of it a rank computes, follows
    // from where its states are.
    RoleAttr paramRole = roleOfArgument(forward, *index);
    params.push_back(
        {wholeType(forward, paramRole, forward.getArgumentTypes()[*index]),
         paramRole.without(kWholeSizes), forward.getArgument(*index).getLoc()});
    gradients.push_back(
        {wholeType(backward, role, backward.getResultTypes()[i]),
         role.without(kWholeSizes), loc});
    axes.push_back(axesOfSum(backward, i));
  }
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  addState(stateName("lr"), scalar, spec.values.lookup("lr"));
  if (scaling)
    addState(stateName("scale"), scalar, scaling->init);
  if (scaling && scaling->isDynamic)
    addState(stateName("good"), scalar, 0);
  if (findsNorm()) {
    addState(stateName("grad_norm"), scalar, 0);
    addState(stateName("skipped"), scalar, 0);
  }
  for (auto [i, param] : llvm::enumerate(params)) {
    StringRef name = param.role.getName();
    auto type = cast<RankedTensorType>(param.type);
    if (spec.kind->counts)
      addState(stateName("step", name), scalar, 0);
    if (accumulates) {
      bool isWide = type.getElementType().isF64();
      addSum(name, isWide ? type : type.clone(builder.getF32Type()), axes[i]);
      addState(stateName("summed", name), scalar, 0);
    }
    for (const OptimizerState &state : spec.kind->states)
      if (RankedTensorType stateType = typeOf(state, type))
        addState(stateName(state.name, name), stateType,
                 state.initOption.empty()
                     ? state.init
                     : spec.values.lookup(state.initOption));
  }
}

/// A value of the model may have the name of a state that the optimizer makes.
LogicalResult UpdateBuilder::checkNames() {
  llvm::StringSet<> made;
  for (const Slot &state : states)
    made.insert(state.role.getName());
  bool isWrong = false;
  for (unsigned i = 0, n = forward.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(forward, i);
    using K = RoleKind;
    bool isValue = role && llvm::is_contained({K::Input, K::Param, K::State},
                                              role.getKind());
    if (!isValue || !made.contains(role.getName()))
      continue;
    isWrong = true;
    mlir::emitError(forward.getArgument(i).getLoc())
        << "'" << role.str() << "' has the name of a state of optimizer '"
        << spec.kind->name << "': expected another name";
  }
  return failure(isWrong);
}

Value UpdateBuilder::argument(StringRef name) {
  return func.getArgument(*roles->value(name));
}

Value UpdateBuilder::createStep(StringRef param) {
  std::string name = stateName("step", param);
  Value step = Expr(builder, loc, argument(name)) + 1.0;
  update(name, step);
  // It depends on no gradient, and yet rises only where there is one.
  needs[name] = builder.getArrayAttr(builder.getStrArrayAttr({param}));
  return step;
}

void UpdateBuilder::checkGradients() {
  for (auto [i, slot] : llvm::enumerate(params)) {
    Value gradient = func.getArgument(params.size() + i);
    if (accumulates)
      gradient = meanOf(i, gradient);
    if (scaling) {
      // In f32 at least: what f16 cannot hold is why it was scaled.
      Type type = composite::computeType(gradient);
      Expr g = composite::in(builder, loc, gradient, type);
      Expr scale(builder, loc, argument(stateName("scale")));
      gradient = g * (1.0 / scale).cast(type).broadcastTo(g.shape(), {});
    }
    used.push_back(gradient);
  }
  if (!findsNorm())
    return;
  SmallVector<UpdateGradient> all;
  for (auto [gradient, slot] : llvm::zip_equal(used, gradients))
    all.push_back({gradient, slot.role.getSharding()});
  norm = createNorm(builder, loc, all);
  isFinite = createIsFinite(builder, loc, norm);
  updates[stateName("grad_norm")] =
      Expr(builder, loc, norm).cast(builder.getF32Type());
  Expr skipped(builder, loc, argument(stateName("skipped")));
  updates[stateName("skipped")] =
      select({builder, loc, isFinite}, skipped, skipped + 1.0);
  if (scaling && scaling->isDynamic)
    updateScale();
}

/// As torch.amp.GradScaler does, within the scales that f32 can divide by.
void UpdateBuilder::updateScale() {
  Expr scale(builder, loc, argument(stateName("scale")));
  Expr good(builder, loc, argument(stateName("good")));
  Expr isGood(builder, loc, isFinite);
  Expr count = good + 1.0;
  Expr grows =
      compare(ComparePredicate::ge, count, count.like(scaling->interval));
  Expr grown =
      minimum(scale * scaling->growth, scale.like(LossScaleSpec::kMost));
  Expr less =
      maximum(scale * scaling->backoff, scale.like(LossScaleSpec::kLeast));
  updates[stateName("scale")] =
      select(isGood, select(grows, grown, scale), less);
  Expr none = good.like(0.0);
  updates[stateName("good")] = select(isGood, select(grows, none, count), none);
}

/// The mean of the gradients that were added up and this one, all of which are
/// used up. In the type of the sum: it is rounded once.
Value UpdateBuilder::meanOf(size_t i, Value gradient) {
  StringRef param = params[i].role.getName();
  Expr sum(builder, loc, argument(stateName("sum", param)));
  Expr summed(builder, loc, argument(stateName("summed", param)));
  Expr count = summed + 1.0;
  // A constant would be one value for all parameters, written where any of them
  // has a gradient. A count is above 0.
  Expr isUsed = compare(ComparePredicate::gt, count, count.like(0.0));
  auto clear = [&](StringRef variable, const Expr &old) {
    std::string name = stateName(variable, param);
    updates[name] =
        select(isUsed.broadcastTo(old.shape(), {}), old.like(0.0), old);
    // It follows from no gradient, and yet is kept where there is none.
    needs[name] = builder.getArrayAttr(builder.getStrArrayAttr({param}));
  };
  clear("sum", sum);
  clear("summed", summed);
  if (parts[i])
    sum = sum.reduceSum({0});
  Type type = sum.type().getElementType();
  Expr part = (1.0 / count).cast(type).broadcastTo(sum.shape(), {});
  return (sum + sum.wrap(gradient).cast(type)) * part;
}

Value UpdateBuilder::gradientOf(size_t i) {
  Value gradient = used[i];
  return clip ? createClipped(builder, loc, *clip, gradient, norm) : gradient;
}

void UpdateBuilder::update(std::string name, Value value) {
  if (isFinite) {
    Expr old(builder, loc, argument(name));
    Expr condition(builder, loc, isFinite);
    value =
        select(condition.broadcastTo(old.shape(), {}), old.wrap(value), old);
  }
  updates[name] = value;
}

void UpdateBuilder::updateParam(size_t i) {
  StringRef param = params[i].role.getName();
  Value gradient = gradientOf(i);
  Value old = argument(param), rate = argument(stateName("lr"));
  // A gradient may have been asked for in another type.
  if (gradient.getType() != old.getType())
    gradient = CastOp::create(builder, loc, old.getType(), gradient);
  auto type = cast<RankedTensorType>(old.getType());
  llvm::StringMap<Value> own;
  for (const OptimizerState &state : spec.kind->states)
    if (typeOf(state, type))
      own[state.name] = argument(stateName(state.name, param));
  Value step = spec.kind->counts ? createStep(param) : Value();
  ParamUpdate made(builder, loc, spec, old, gradient, rate, step,
                   std::move(own));
  spec.kind->update(made);
  update(param.str(), made.newParam);
  for (const OptimizerState &state : spec.kind->states)
    if (Value value = made.newStates.lookup(state.name)) {
      std::string name = stateName(state.name, param);
      update(name, value);
      // What follows from the count alone rises as that does.
      if (state.shape)
        needs[name] = builder.getArrayAttr(builder.getStrArrayAttr({param}));
    }
}

/// The updates in the order of the arguments. Nothing updates the rate.
void UpdateBuilder::setResults() {
  SmallVector<Value> values;
  SmallVector<RoleAttr> roles;
  for (const auto &slots : {params, states})
    for (const Slot &slot : slots)
      if (Value value = updates.lookup(slot.role.getName())) {
        StringAttr name = slot.role.getName();
        auto role = RoleAttr::get(builder.getContext(), RoleKind::Update,
                                  name.getValue());
        if (ArrayAttr condition = needs.lookup(name))
          role = role.with(RoleAttr::kNeeds, condition);
        values.push_back(value);
        roles.push_back(role);
      }
  func::ReturnOp::create(builder, loc, values);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(),
                                               TypeRange(ValueRange(values))));
  setRolesOfResults(func, roles);
}

FailureOr<func::FuncOp> UpdateBuilder::run() {
  collectSlots();
  if (failed(checkNames()))
    return failure();
  SmallVector<Slot> arguments(params);
  arguments.append(gradients);
  arguments.append(states);
  // The results follow from the body, so the function has none yet.
  builder.setInsertionPointAfter(backward);
  func =
      createGraphFunction(builder, backward.getLoc(), "update", arguments, {});
  roles.emplace(func);
  builder.setInsertionPointToStart(&func.getBody().front());
  checkGradients();
  for (size_t i = 0; i < params.size(); ++i)
    updateParam(i);
  setResults();
  if (failed(decomposeComposites(func)))
    return failure();
  return func;
}

func::FuncOp UpdateBuilder::buildAccumulation() {
  SmallVector<Slot> arguments(params);
  for (auto [part, gradient] : llvm::zip_equal(parts, gradients))
    arguments.push_back(part.value_or(gradient));
  for (const Slot &state : states)
    if (StringRef name = state.role.getName();
        name.starts_with(stateName("sum")) || name == stateName("scale"))
      arguments.push_back(state);
  builder.setInsertionPointAfter(func);
  func = createGraphFunction(builder, backward.getLoc(), "accumulation",
                             arguments, {});
  roles.emplace(func);
  updates.clear();
  needs.clear();
  builder.setInsertionPointToStart(&func.getBody().front());
  for (auto [i, slot] : llvm::enumerate(params)) {
    StringRef param = slot.role.getName();
    std::string sum = stateName("sum", param);
    std::string summed = stateName("summed", param);
    Expr old(builder, loc, argument(sum));
    Expr gradient(builder, loc, func.getArgument(params.size() + i));
    updates[sum] = old + gradient.cast(old.type().getElementType());
    updates[summed] = Expr(builder, loc, argument(summed)) + 1.0;
    needs[summed] = builder.getArrayAttr(builder.getStrArrayAttr({param}));
  }
  setResults();
  return func;
}

static bool hasParamGradient(func::FuncOp forward, func::FuncOp backward) {
  RoleIndex roles(forward);
  for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(backward, i);
        role.getKind() == RoleKind::Grad &&
        roles.argument(RoleKind::Param, role.getName()))
      return true;
  return false;
}

namespace {

struct BuildUpdate : tandem::impl::BuildUpdateBase<BuildUpdate> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto optimizer = module->getAttrOfType<StringAttr>(kOptimizerAttr);
    if (failed(checkSignatures(module)))
      return signalPassFailure();
    for (StringRef name : {StringRef(kClipAttr), StringRef(kLossScaleAttr),
                           StringRef(kAccumulateAttr)})
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

  LogicalResult build(StringAttr optimizer, func::FuncOp forward) {
    ModuleOp module = getOperation();
    if (Operation *other = module.lookupSymbol("update"))
      return other->emitError() << "expected no 'update' before an optimizer "
                                   "is made a program";
    auto backward = module.lookupSymbol<func::FuncOp>("backward");
    if (!backward || !hasParamGradient(forward, backward))
      return forward.emitError()
             << "optimizer '" << optimizer.getValue()
             << "' has nothing to do: no param has a gradient (in a model in "
                "ONNX, --loss=KIND:OUTPUT,LABELS makes them)";
    std::string error;
    auto spec = parseOptimizerSpec(optimizer, error);
    if (!spec)
      return module.emitError() << error;
    std::optional<ClipSpec> clip;
    if (auto text = module->getAttrOfType<StringAttr>(kClipAttr)) {
      clip = parseClipSpec(text, error);
      if (!clip)
        return module.emitError() << "'" << kClipAttr << "': " << error;
    }
    std::optional<LossScaleSpec> scaling;
    if (auto text = module->getAttrOfType<StringAttr>(kLossScaleAttr)) {
      scaling = parseLossScaleSpec(text, error);
      if (!scaling)
        return module.emitError() << "'" << kLossScaleAttr << "': " << error;
    }
    bool accumulates = module->hasAttr(kAccumulateAttr);
    UpdateBuilder builder(forward, backward, std::move(*spec), clip, scaling,
                          accumulates);
    auto update = builder.run();
    if (failed(update))
      return failure();
    for (unsigned i = 0, n = update->getNumArguments(); i < n; ++i)
      params += roleOfArgument(*update, i).getKind() == RoleKind::Param;
    // What the params share (rates, bias corrections) is computed once.
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(*update);
    eliminateCommonSubExpressions(rewriter, dominance, *update);
    simplifyOps(*update);
    if (accumulates)
      builder.buildAccumulation();
    return success();
  }
};

} // namespace
