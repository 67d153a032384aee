//===- BuildStep.cpp - a whole training step as one program ---------------===//
//
// Forward, backward and update one after the other. What one gives, the next
// takes by role and name; what one writes, the next finds. Ops of the forward
// and of the backward say so (`tandem.pass`): what the backward makes again
// must not be made beside the first time.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/Specialize.h"
#include "passes/optimize/Simplify.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Collective.h"
#include "ir/Expr.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Pipeline.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "ir/Where.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDSTEP
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

bool isValue(RoleKind kind) {
  return kind == RoleKind::Input || kind == RoleKind::Param ||
         kind == RoleKind::State;
}

class Inliner {
public:
  explicit Inliner(OpBuilder &builder) : builder(builder) {}

  void define(RoleAttr role, Value value) { values[key(role)] = value; }
  Value lookup(RoleAttr role) const { return values.lookup(key(role)); }
  /// What the argument `name` holds now: its last update, or its value.
  Value now(RoleAttr role) const {
    if (Value update = updates.lookup(role.getName()))
      return update;
    return values.lookup(key(role.without(RoleAttr::kPass)));
  }
  /// Where `program` has a dimension more for a gradient, one part for each
  /// rank: defines it as this rank's part of the sum that ends its computation.
  void takeParts(func::FuncOp program);
  /// Copies the ops of `program`, with `pass` as their tag; without one they
  /// are of an update, and their locations say so. An argument that is not
  /// known is undefined, and all that depends on it is left out. With
  /// `findsWrites` the program finds in all arguments what was written before
  /// it, else only in those that say so.
  void inlineBody(func::FuncOp program, bool findsWrites, StringRef pass = {});

  /// New values by name, and their roles, in the order of the first writes.
  llvm::MapVector<StringAttr, RoleAttr> written;
  llvm::DenseMap<StringAttr, Value> updates;

private:
  static std::string key(RoleAttr role) {
    return stringifyRoleKind(role.getKind()).str() + " " + role.getName().str();
  }
  /// True if the gradients are known without which an update does nothing.
  bool holds(ArrayAttr needs) const;

  OpBuilder &builder;
  llvm::StringMap<Value> values;
};

} // namespace

bool Inliner::holds(ArrayAttr needs) const {
  if (!needs)
    return true;
  return llvm::all_of(needs.getAsRange<ArrayAttr>(), [&](ArrayAttr group) {
    return llvm::any_of(group.getAsRange<StringAttr>(), [&](StringAttr name) {
      return values.contains("grad " + name.str());
    });
  });
}

void Inliner::inlineBody(func::FuncOp program, bool findsWrites,
                         StringRef pass) {
  IRMapping map;
  for (BlockArgument argument : program.getArguments()) {
    RoleAttr role = roleOfArgument(program, argument.getArgNumber());
    bool finds =
        isValue(role.getKind()) && (findsWrites || role.has(RoleAttr::kPass));
    if (Value value = finds ? now(role) : lookup(role))
      map.map(argument, value);
  }
  Block &body = program.getBody().front();
  for (Operation &op : body.without_terminator()) {
    // The sum of what is defined.
    if (auto sum = dyn_cast<AccumulateOp>(op))
      if (Value lhs = map.lookupOrNull(sum.getLhs()),
          rhs = map.lookupOrNull(sum.getRhs());
          !lhs != !rhs) {
        map.map(sum.getY(), lhs ? lhs : rhs);
        continue;
      }
    if (llvm::all_of(op.getOperands(),
                     [&](Value operand) { return map.contains(operand); })) {
      Operation *made = builder.clone(op, map);
      if (!pass.empty())
        made->setAttr(kPassAttr, builder.getStringAttr(pass));
      else
        made->setLoc(updateBy(program.getName(), op.getLoc()));
    }
  }
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    RoleAttr role = roleOfResult(program, i);
    Value made = map.lookupOrNull(value);
    if (!made || !holds(role.getProperty<ArrayAttr>(RoleAttr::kNeeds)))
      continue;
    if (role.getKind() == RoleKind::Update) {
      updates[role.getName()] = made;
      written.insert({role.getName(),
                      role.without(RoleAttr::kPass).without(RoleAttr::kNeeds)});
    } else {
      define(role, made);
    }
  }
}

void Inliner::takeParts(func::FuncOp program) {
  for (BlockArgument argument : program.getArguments()) {
    RoleAttr role = roleOfArgument(program, argument.getArgNumber());
    Value gradient = role.getKind() == RoleKind::Grad ? lookup(role) : Value();
    auto type = cast<RankedTensorType>(argument.getType());
    if (!gradient || gradient.getType() == type)
      continue;
    auto sum = gradient.getDefiningOp<AllReduceOp>();
    if (!sum)
      continue;
    define(role,
           Expr(builder, sum.getLoc(), sum.getX()).reshape(type.getShape()));
    if (sum->use_empty())
      sum.erase();
  }
}

/// Makes one sum over ranks of two that are added up: of gradients, and of
/// those of the batches before.
static void joinSums(func::FuncOp step) {
  step.walk([](AddOp add) {
    auto cast = add.getRhs().getDefiningOp<CastOp>();
    Value other = cast ? cast.getX() : add.getRhs();
    auto lhs = add.getLhs().getDefiningOp<AllReduceOp>();
    auto rhs = other.getDefiningOp<AllReduceOp>();
    auto isUsedOnce = [](Operation *op) { return !op || op->hasOneUse(); };
    if (!lhs || !rhs || lhs.getAxes() != rhs.getAxes() ||
        lhs.getReduce() != CollectiveReduce::sum ||
        rhs.getReduce() != CollectiveReduce::sum || !isUsedOnce(lhs) ||
        !isUsedOnce(rhs) || !isUsedOnce(cast))
      return;
    OpBuilder builder(add);
    Expr sum(builder, add.getLoc(), lhs.getX());
    Expr part(builder, add.getLoc(), rhs.getX());
    Value own = sum + part.cast(sum.type().getElementType());
    add.getResult().replaceAllUsesWith(AllReduceOp::create(
        builder, rhs.getLoc(), own.getType(), CollectiveReduce::sum, own,
        lhs.getAxes(), IntegerAttr(), BufferAttr(), ArrayAttr()));
    for (Operation *op : {add.getOperation(), lhs.getOperation(),
                          cast.getOperation(), rhs.getOperation()})
      if (op)
        op->erase();
  });
}

/// Builds the program `name` behind `update`: forward, backward with a
/// cotangent of 1 (of the state `scale`, if there is one) for `loss` and no
/// other, update of the params that then have a gradient. Its arguments are
/// forward's and the states that only update has; its results the outputs and
/// all updates.
static func::FuncOp buildStep(StringRef name, StringRef scale,
                              func::FuncOp forward, func::FuncOp backward,
                              func::FuncOp update, StringRef loss) {
  SmallVector<Slot> arguments;
  auto addArguments = [&](func::FuncOp func, bool statesOnly) {
    for (BlockArgument argument : func.getArguments()) {
      RoleAttr role = roleOfArgument(func, argument.getArgNumber());
      if (!statesOnly || role.getKind() == RoleKind::State)
        arguments.push_back({argument.getType(), role, argument.getLoc()});
    }
  };
  addArguments(forward, /*statesOnly=*/false);
  addArguments(update, /*statesOnly=*/true);
  OpBuilder builder(update->getContext());
  builder.setInsertionPointAfter(update);
  // The results follow from the body.
  func::FuncOp step =
      createGraphFunction(builder, forward.getLoc(), name, arguments, {});
  setLocalAs(step, forward);
  builder.setInsertionPointToStart(&step.getBody().front());
  Inliner inliner(builder);
  for (auto [slot, value] : llvm::zip_equal(arguments, step.getArguments()))
    inliner.define(slot.role, value);
  inliner.inlineBody(forward, /*findsWrites=*/false, "forward");

  auto cotangent = [&](RoleAttr role, BlockArgument argument) -> Value {
    auto type = cast<RankedTensorType>(argument.getType());
    auto of = findValue(step, scale);
    if (!of || role.getName() != loss)
      return ConstantOp::splat(builder, argument.getLoc(), type, 1.0);
    return Expr(builder, argument.getLoc(), step.getArgument(*of))
        .cast(type.getElementType())
        .reshape(type.getShape());
  };
  OwningOpRef<func::FuncOp> one = backward.clone();
  specializeCotangents(*one, {loss});
  for (BlockArgument argument : one->getArguments())
    if (RoleAttr role = roleOfArgument(*one, argument.getArgNumber());
        role.getKind() == RoleKind::Cotangent)
      inliner.define(role, cotangent(role, argument));
  inliner.inlineBody(*one, /*findsWrites=*/false, "backward");
  inliner.takeParts(update);
  inliner.inlineBody(update, /*findsWrites=*/true);

  SmallVector<RoleAttr> roles;
  SmallVector<Value> returned;
  for (unsigned i = 0, n = forward.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(forward, i);
        role.getKind() == RoleKind::Output) {
      roles.push_back(role);
      returned.push_back(inliner.lookup(role));
    }
  // The cotangent is the step's own.
  for (const auto &[name, role] : inliner.written)
    if (!name.getValue().starts_with("cotangent of ")) {
      roles.push_back(role);
      returned.push_back(inliner.updates.lookup(name));
    }
  func::ReturnOp::create(builder, forward.getLoc(), returned);
  step.setFunctionType(builder.getFunctionType(
      step.getArgumentTypes(), TypeRange(ValueRange(returned))));
  setRolesOfResults(step, roles);
  joinSums(step);
  if (Attribute aliases = forward->getAttr(kAliasesAttr))
    step->setAttr(kAliasesAttr, aliases);
  return step;
}

/// The type of the output `name`, which can be a view of another one; null if
/// there is none.
static Type typeOfOutput(func::FuncOp forward, StringRef name) {
  if (auto i = findResult(forward, RoleKind::Output, name))
    return forward.getResultTypes()[*i];
  auto aliases = forward->getAttrOfType<ArrayAttr>(kAliasesAttr);
  if (!aliases)
    return {};
  for (auto alias : aliases.getAsRange<DictionaryAttr>())
    if (auto own = alias.getAs<StringAttr>(key::kName); own && own == name)
      if (auto type = alias.getAs<TypeAttr>(key::kType))
        return type.getValue();
  return {};
}

namespace {

struct BuildStep : tandem::impl::BuildStepBase<BuildStep> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(checkSignatures(module)))
      return signalPassFailure();
    auto optimizer = module->getAttrOfType<StringAttr>(kOptimizerAttr);
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    // A stage of a pipeline has no whole step: others work between its forward
    // and its backward.
    if (!optimizer || !forward || Pipeline::of(module))
      return markAllAnalysesPreserved();
    if (failed(build(optimizer, forward)))
      signalPassFailure();
  }

  /// "'a', 'b'", or "none".
  static std::string outputsOf(func::FuncOp forward) {
    std::string names;
    for (unsigned i = 0, n = forward.getNumResults(); i < n; ++i)
      if (RoleAttr role = roleOfResult(forward, i);
          role && role.getKind() == RoleKind::Output)
        names += (names.empty() ? "'" : ", '") + role.getName().str() + "'";
    return names.empty() ? "none" : names;
  }

  LogicalResult build(StringAttr optimizer, func::FuncOp forward) {
    ModuleOp module = getOperation();
    if (Operation *other = module.lookupSymbol("step"))
      return other->emitError() << "expected no 'step' before one is made";
    auto backward = module.lookupSymbol<func::FuncOp>("backward"),
         update = module.lookupSymbol<func::FuncOp>("update");
    if (!backward || !update)
      return module.emitError()
             << "expected functions 'backward' and 'update' beside 'forward', "
                "of which a step with optimizer '"
             << optimizer.getValue() << "' is made (tandem-build-update)";
    auto loss = module->getAttrOfType<StringAttr>(kLossAttr);
    auto type = dyn_cast_or_null<RankedTensorType>(
        loss ? typeOfOutput(forward, loss) : Type());
    if (!type)
      return forward.emitError()
             << "expected --loss=NAME, since optimizer '"
             << optimizer.getValue()
             << "' needs one output as the loss, and the outputs are "
             << outputsOf(forward);
    if (type.getNumElements() != 1)
      return forward.emitError()
             << "--loss: optimizer '" << optimizer.getValue()
             << "' needs a loss of one element, but '" << loss.getValue()
             << "' has type " << type;
    std::string scale;
    if (module->hasAttr(kLossScaleAttr)) {
      scale = optimizer.getValue().split(':').first.str() + ".scale";
      Type element = type.getElementType();
      if (!element.isF32() && !element.isF64())
        return forward.emitError()
               << "'" << kLossScaleAttr << "' needs a loss of f32 or f64, but '"
               << loss.getValue() << "' has type " << type;
    }
    func::FuncOp step =
        buildStep("step", scale, forward, backward, update, loss);
    // The cotangent of 1 leaves much to fold.
    simplifyOps(step);
    // The same with sums in place of an update.
    if (auto accumulation = module.lookupSymbol<func::FuncOp>("accumulation")) {
      simplifyOps(buildStep("accumulate", scale, forward, backward,
                            accumulation, loss));
      accumulation.erase();
    }
    ops += llvm::range_size(step.getBody().front().without_terminator());
    return success();
  }
};

} // namespace
