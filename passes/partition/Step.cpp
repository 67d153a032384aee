//===- Step.cpp - a whole training step as one program --------------------===//
//
// Forward, backward and update one after the other. What one gives, the next
// takes by role and name; what one writes, the next finds. Ops of the forward
// and of the backward say so (`tandem.pass`): what the backward makes again
// must not be made beside the first time.
//
//===----------------------------------------------------------------------===//
#include "passes/autodiff/Specialize.h"
#include "passes/partition/Programs.h"

#include "ir/Ops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

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
    return values.lookup(key(role.without("pass")));
  }
  /// Copies the ops of `program`, with `pass` as their tag. An argument that is
  /// not known is undefined, and all that depends on it is left out. With
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
    bool finds = isValue(role.getKind()) && (findsWrites || role.has("pass"));
    if (Value value = finds ? now(role) : lookup(role))
      map.map(argument, value);
  }
  Block &body = program.getBody().front();
  for (Operation &op : body.without_terminator())
    if (llvm::all_of(op.getOperands(),
                     [&](Value operand) { return map.contains(operand); })) {
      Operation *made = builder.clone(op, map);
      if (!pass.empty())
        made->setAttr(kPassAttr, builder.getStringAttr(pass));
    }
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    RoleAttr role = roleOfResult(program, i);
    Value made = map.lookupOrNull(value);
    if (!made || !holds(role.getProperties().getAs<ArrayAttr>("needs")))
      continue;
    if (role.getKind() == RoleKind::Update) {
      updates[role.getName()] = made;
      written.insert({role.getName(), role.without("pass").without("needs")});
    } else {
      define(role, made);
    }
  }
}

func::FuncOp tandem::buildStep(func::FuncOp forward, func::FuncOp backward,
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
      createGraphFunction(builder, forward.getLoc(), "step", arguments, {});
  builder.setInsertionPointToStart(&step.getBody().front());
  Inliner inliner(builder);
  for (auto [slot, value] : llvm::zip_equal(arguments, step.getArguments()))
    inliner.define(slot.role, value);
  inliner.inlineBody(forward, /*findsWrites=*/false, "forward");

  OwningOpRef<func::FuncOp> one = backward.clone();
  specializeCotangents(*one, {loss});
  for (BlockArgument argument : one->getArguments())
    if (RoleAttr role = roleOfArgument(*one, argument.getArgNumber());
        role.getKind() == RoleKind::Cotangent)
      inliner.define(
          role,
          ConstantOp::splat(builder, argument.getLoc(),
                            cast<RankedTensorType>(argument.getType()), 1.0));
  inliner.inlineBody(*one, /*findsWrites=*/false, "backward");
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
  if (Attribute aliases = forward->getAttr(kAliasesAttr))
    step->setAttr(kAliasesAttr, aliases);
  return step;
}
