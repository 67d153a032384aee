//===- UpdateBuilder.cpp - an optimizer as a program ----------------------===//
#include "passes/partition/UpdateBuilder.h"

#include "passes/autodiff/Decompose.h"
#include "passes/partition/ClipGradients.h"
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/Collective.h"
#include "ir/Expr.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Sharding.h"
#include "ir/ops/Composite.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

RankedTensorType UpdateBuilder::typeOf(const OptimizerState &state,
                                       size_t i) const {
  if (!state.ifOption.empty() && specOf(i).values.lookup(state.ifOption) == 0)
    return {};
  auto param = cast<RankedTensorType>(params[i].type);
  Type element = param.getElementType();
  MLIRContext *context = param.getContext();
  switch (state.element) {
  case OptimizerState::Element::Compute:
    if (!element.isF64())
      element = Float32Type::get(context);
    break;
  case OptimizerState::Element::F32:
    element = Float32Type::get(context);
    break;
  case OptimizerState::Element::I8:
    element = IntegerType::get(context, 8);
    break;
  case OptimizerState::Element::U8:
    element = IntegerType::get(context, 8, IntegerType::Unsigned);
    break;
  }
  if (!state.shape)
    return param.clone(element);
  auto shape = state.shape(param.getShape(), specOf(i).values);
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

LogicalResult UpdateBuilder::collectSlots() {
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
    axes.push_back(accumulates ? axesOfSum(backward, i) : ArrayAttr());
  }
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  if (failed(findGroups()))
    return failure();
  addRates();
  if (asked.noise) {
    auto seed = builder.getDictionaryAttr(
        builder.getNamedAttr(key::kKind, builder.getStringAttr("seed")));
    auto role = RoleAttr::get(builder.getContext(), RoleKind::State,
                              stateName("noise"));
    states.push_back({RankedTensorType::get({2}, builder.getI64Type()),
                      role.with(RoleAttr::kInit, seed), loc});
  }
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
      if (RankedTensorType stateType = typeOf(state, i))
        addState(stateName(state.name, name), stateType,
                 state.initOption.empty()
                     ? state.init
                     : specOf(i).values.lookup(state.initOption));
    for (const AverageSpec &average : asked.averages) {
      bool isWide = type.getElementType().isF64();
      addState((average.name + ":" + name).str(),
               isWide ? type : type.clone(builder.getF32Type()), 0);
      addState((average.name + "_count:" + name).str(), scalar, 0);
      if (average.name == "swa")
        addState("swa_updates:" + name.str(), scalar, 0);
    }
  }
  if (isStage)
    leaveParts();
  return success();
}

/// A step takes its part of each sum from inside of the backward. A stage's
/// backward, which is called by itself, gives it.
void UpdateBuilder::leaveParts() {
  llvm::StringMap<size_t> numbers;
  for (auto [i, slot] : llvm::enumerate(gradients))
    if (i < parts.size() && parts[i])
      numbers[slot.role.getName()] = i;
  Operation *end = backward.getBody().front().getTerminator();
  OpBuilder b(end);
  SmallVector<RoleAttr> roles;
  for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(backward, i);
    auto found = numbers.find(role.getName());
    if (role.getKind() == RoleKind::Grad && found != numbers.end()) {
      Slot &slot = gradients[found->second];
      auto sum = end->getOperand(i).getDefiningOp<AllReduceOp>();
      Expr part(b, sum.getLoc(), sum.getX());
      SmallVector<int64_t> shape{1};
      llvm::append_range(shape, part.shape());
      end->setOperand(i, part.reshape(shape));
      if (sum->use_empty())
        sum.erase();
      slot = *parts[found->second];
      role = role.with(RoleAttr::kSharding, slot.role.getSharding());
      if (role.has(kWholeSizes))
        role = role.with(kWholeSizes,
                         b.getDenseI64ArrayAttr(
                             cast<RankedTensorType>(slot.type).getShape()));
    }
    roles.push_back(role);
  }
  backward.setFunctionType(builder.getFunctionType(
      backward.getArgumentTypes(), TypeRange(end->getOperands())));
  setRolesOfResults(backward, roles);
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

void UpdateBuilder::findUsed(bool clears) {
  used.clear();
  for (auto [i, slot] : llvm::enumerate(params)) {
    Value gradient = func.getArgument(params.size() + i);
    if (accumulates && clears)
      clearSum(i);
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
}

Value UpdateBuilder::normOfUsed() {
  SmallVector<UpdateGradient> all;
  for (auto [i, slot] : llvm::enumerate(gradients)) {
    ArrayAttr sharding = slot.role.getSharding();
    if (isStage && i < parts.size() && parts[i]) // these are summed up
      sharding = builder.getArrayAttr(sharding.getValue().drop_front());
    all.push_back({used[i], sharding});
  }
  return createNorm(builder, loc, all);
}

void UpdateBuilder::checkGradients() {
  findUsed(/*clears=*/true);
  if (!findsNorm())
    return;
  if (isStage) {
    norm = argument(stateName("grad_norm"));
  } else {
    norm = normOfUsed();
    updates[stateName("grad_norm")] =
        Expr(builder, loc, norm).cast(builder.getF32Type());
  }
  isFinite = createIsFinite(builder, loc, norm);
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

void UpdateBuilder::clearSum(size_t i) {
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
}

/// The mean of the gradients that were added up and this one. In the type of
/// the sum: it is rounded once.
Value UpdateBuilder::meanOf(size_t i, Value gradient) {
  StringRef param = params[i].role.getName();
  Expr sum(builder, loc, argument(stateName("sum", param)));
  Expr summed(builder, loc, argument(stateName("summed", param)));
  Expr count = summed + 1.0;
  bool givesParts = parts[i] && isStage;
  if (parts[i] && !isStage)
    sum = sum.reduceSum({0});
  Type type = sum.type().getElementType();
  Expr part = (1.0 / count)
                  .cast(type)
                  .broadcastTo(sum.shape().drop_front(givesParts), {});
  sum = sum + sum.wrap(gradient).cast(type);
  return (givesParts ? sum.reduceSum({0}) : sum) * part;
}

Value UpdateBuilder::gradientOf(size_t i) {
  Value gradient = used[i];
  if (clip)
    gradient = createClipped(builder, loc, *clip, gradient, norm);
  if (asked.noise) {
    Expr state(builder, loc, argument(stateName("noise")));
    gradient = asked.noise->added(state.wrap(gradient), state, i);
  }
  return asked.centralizes ? createCentralized(builder, loc, gradient)
                           : gradient;
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
  const OptimizerSpec &own = specOf(i);
  Value old = argument(param);
  // A gradient may have been asked for in another type.
  if (gradient.getType() != old.getType())
    gradient = CastOp::create(builder, loc, old.getType(), gradient);
  llvm::StringMap<Value> before;
  for (const OptimizerState &state : spec.kind->states)
    if (typeOf(state, i))
      before[state.name] = argument(stateName(state.name, param));
  Value step = spec.kind->counts ? createStep(param) : Value();
  ParamUpdate made(builder, loc, own, old, gradient, rates[groupOf[i]], step,
                   std::move(before));
  spec.kind->update(made);
  for (const OptimizerState &state : spec.kind->states)
    if (!state.initOption.empty() && typeOf(state, i))
      made.use(state.initOption);
  usedOptions.resize(asked.groups.size() + 1);
  for (const auto &option : made.usedOptions)
    usedOptions[groupOf[i]].insert(option.getKey());
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
  if (failed(collectSlots()) || failed(checkNames()))
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
  findRates();
  updateNoise();
  for (size_t i = 0; i < params.size(); ++i) {
    updateParam(i);
    average(i);
  }
  if (failed(checkEffects()))
    return failure();
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

FailureOr<func::FuncOp> UpdateBuilder::buildNorm() {
  if (!isStage || !findsNorm())
    return func::FuncOp();
  std::string name = stateName("grad_norm");
  SmallVector<Slot> arguments(params);
  arguments.append(gradients);
  for (const Slot &state : states)
    if (StringRef other = state.role.getName();
        other.starts_with(stateName("sum")) || other == stateName("scale") ||
        other == name)
      arguments.push_back(state);
  builder.setInsertionPointAfter(func);
  func = createGraphFunction(builder, backward.getLoc(), "norm", arguments, {});
  roles.emplace(func);
  updates.clear();
  needs.clear();
  builder.setInsertionPointToStart(&func.getBody().front());
  findUsed(/*clears=*/false);
  updates[name] = Expr(builder, loc, normOfUsed()).cast(builder.getF32Type());
  setResults();
  if (failed(decomposeComposites(func)))
    return failure();
  return func;
}
