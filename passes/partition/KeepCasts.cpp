//===- KeepCasts.cpp - low copies of params live across steps -------------===//
//
// With mixed precision products read a param as a narrower float. A step that
// made such a copy anew would read the whole param for it each time, although
// its update has just had the new value in registers. So copies are prepared
// (docs/rationale/frozen-parameters.md): @step takes them, and gives those of
// the params that it updates. Who writes params otherwise makes them out of
// date, which the runtime finds by versions, and runs @prepare.
//
// On a processor the update is a part of the product that makes the gradient,
// and stores of a further result cost this as much as the cast did (measured:
// docs/rationale/mixed-precision.md). There no step gives copies, so that they
// are made anew by @prepare where an update was; and those are kept that serve
// more than one call: of params that no step updates, and of all where batches
// are accumulated.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/target/Target.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Collective.h"
#include "ir/Ops.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace tandem {
#define GEN_PASS_DEF_KEEPCASTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// A param in a narrower type.
struct Copy {
  RoleAttr param;
  RankedTensorType type; ///< of the copy
  std::string name;      ///< of the prepared value
};

class Keeper {
public:
  explicit Keeper(func::FuncOp step)
      : step(step), isGivenByUpdates(isForCuda(step)) {
    programs.push_back(step);
    auto module = step->getParentOfType<ModuleOp>();
    if (auto sums = module.lookupSymbol<func::FuncOp>("accumulate"))
      programs.push_back(sums);
  }
  /// Returns how many copies are kept.
  unsigned run();

private:
  using Key = std::pair<StringAttr, Type>;

  bool servesOneCall(StringAttr param);
  void find(func::FuncOp program);
  void name();
  void buildPrepare();
  void rewrite(func::FuncOp program);

  func::FuncOp step;
  bool isGivenByUpdates; ///< what @prepare gave before
  SmallVector<func::FuncOp> programs;
  llvm::MapVector<Key, Copy> copies; ///< by param and element type
};

} // namespace

/// What shows the elements of its operand, each once, or those of all ranks:
/// a cast in front of it makes the same numbers as one behind it.
static bool movesElements(Operation *op) {
  return isa<PermuteOp, ReshapeOp, AllGatherOp>(op);
}

static bool isCast(Operation *op) { return isa<CastOp>(op); }

/// The argument that `value` shows; null where ranks would gather it twice.
static BlockArgument shownBy(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!movesElements(op) ||
        (isa<AllGatherOp>(op) && !llvm::all_of(value.getUsers(), isCast)))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

/// True if an op reads `value` that no cast in front of it joins in one kernel.
static bool isReadByAnchor(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<ViewOpInterface>(user))
      return isReadByAnchor(user->getResult(0));
    auto cost = dyn_cast<CostOpInterface>(user);
    return cost && llvm::is_contained({OpClass::Contraction, OpClass::Window,
                                       OpClass::Indexed, OpClass::Collective},
                                      cost.getOpClass());
  });
}

/// The param of which `op` makes a copy that is worth keeping; null if it makes
/// none.
static BlockArgument paramOf(func::FuncOp program, CastOp op) {
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op.getY()));
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op.getX()));
  if (!to || !from || to.getWidth() >= from.getWidth())
    return {};
  BlockArgument argument = shownBy(op.getX());
  if (!argument)
    return {};
  RoleAttr role = roleOfArgument(program, argument.getArgNumber());
  bool isOwn = role.getKind() == RoleKind::Param &&
               !role.has(RoleAttr::kAlias) && !role.has(RoleAttr::kPass) &&
               !role.has(RoleAttr::kFreed);
  return isOwn && isReadByAnchor(op.getY()) ? argument : BlockArgument();
}

/// True if a copy would be out of date after the step that it was made for.
bool Keeper::servesOneCall(StringAttr param) {
  return !isGivenByUpdates && programs.size() == 1 &&
         findResult(step, RoleKind::Update, param);
}

void Keeper::find(func::FuncOp program) {
  for (auto op : program.getOps<CastOp>())
    if (BlockArgument param = paramOf(program, op)) {
      RoleAttr role = roleOfArgument(program, param.getArgNumber());
      if (servesOneCall(role.getName()))
        continue;
      Type element = getElementTypeOrSelf(op.getY());
      auto type = cast<RankedTensorType>(param.getType()).clone(element);
      copies.insert({{role.getName(), element}, {role, type, {}}});
    }
}

/// "w.bf16", unless a value of the model has that name.
void Keeper::name() {
  llvm::StringSet<> taken;
  for (unsigned i = 0, n = step.getNumArguments(); i < n; ++i)
    taken.insert(roleOfArgument(step, i).getName().getValue());
  for (auto &[key, copy] : copies) {
    llvm::raw_string_ostream(copy.name)
        << key.first.getValue() << "." << key.second;
    while (!taken.insert(copy.name).second)
      copy.name += ".cast";
  }
}

void Keeper::buildPrepare() {
  OpBuilder builder(step->getParentOfType<ModuleOp>().getBodyRegion());
  builder.setInsertionPoint(step);
  SmallVector<Slot> params, results;
  llvm::StringMap<unsigned> numbers;
  for (BlockArgument argument : step.getArguments()) {
    RoleAttr role = roleOfArgument(step, argument.getArgNumber());
    if (llvm::none_of(copies, [&](auto &entry) {
          return entry.second.param.getName() == role.getName() &&
                 role.getKind() == RoleKind::Param;
        }))
      continue;
    numbers[role.getName()] = params.size();
    params.push_back({argument.getType(), role, argument.getLoc()});
  }
  for (auto &[key, copy] : copies)
    results.push_back(
        {copy.type,
         RoleAttr::get(step.getContext(), RoleKind::Prepared, copy.name),
         params[numbers[key.first]].loc});
  func::FuncOp prepare =
      createGraphFunction(builder, step.getLoc(), "prepare", params, results);
  setLocalAs(prepare, step);
  builder.setInsertionPointToStart(&prepare.getBody().front());
  SmallVector<Value> made;
  for (auto &[key, copy] : copies) {
    BlockArgument param = prepare.getArgument(numbers[key.first]);
    made.push_back(CastOp::create(builder, param.getLoc(), copy.type, param));
  }
  func::ReturnOp::create(builder, step.getLoc(), made);
}

/// Shows `copy` as `value` shows the param that it is a copy of. `shown`: what
/// was made before.
static Value showAlike(Value value, Value copy,
                       llvm::DenseMap<std::pair<Value, Value>, Value> &shown) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return copy;
  if (Value before = shown.lookup({value, copy}))
    return before;
  IRMapping map;
  map.map(op->getOperand(0), showAlike(op->getOperand(0), copy, shown));
  Value made = OpBuilder(op).clone(*op, map)->getResult(0);
  auto type = cast<RankedTensorType>(value.getType());
  made.setType(type.clone(getElementTypeOrSelf(copy.getType())));
  return shown[{value, copy}] = made;
}

void Keeper::rewrite(func::FuncOp program) {
  OpBuilder builder(program.getContext());
  Operation *end = program.getBody().front().getTerminator();
  llvm::DenseMap<Key, Value> taken;
  auto take = [&](const Key &key, Location loc) {
    Value &value = taken[key];
    if (!value) {
      const Copy &copy = copies.find(key)->second;
      unsigned index = program.getNumArguments();
      auto role =
          RoleAttr::get(program.getContext(), RoleKind::Prepared, copy.name);
      (void)program.insertArgument(
          index, copy.type,
          builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)),
          loc);
      value = program.getArgument(index);
    }
    return value;
  };
  llvm::DenseMap<std::pair<Value, Value>, Value> shown;
  for (auto op : llvm::to_vector(program.getOps<CastOp>())) {
    BlockArgument param = paramOf(program, op);
    if (!param)
      continue;
    Key key{roleOfArgument(program, param.getArgNumber()).getName(),
            getElementTypeOrSelf(op.getY())};
    if (!copies.contains(key))
      continue;
    Value copy = take(key, param.getLoc());
    op.getY().replaceAllUsesWith(showAlike(op.getX(), copy, shown));
  }
  eraseDeadOps(program);
  if (!isGivenByUpdates)
    return;

  RoleIndex index(program);
  for (auto &[key, copy] : copies) {
    auto update = index.result(RoleKind::Update, key.first.getValue());
    Value fresh = update ? end->getOperand(*update) : Value();
    if (!fresh || isa<BlockArgument>(fresh))
      continue;
    // All of them, also those that this program does not read: there is one
    // version of a param for all of its copies.
    take(key, end->getLoc());
    builder.setInsertionPointAfterValue(fresh);
    Value renewed = CastOp::create(builder, fresh.getLoc(), copy.type, fresh);
    end->insertOperands(end->getNumOperands(), renewed);
    auto role =
        RoleAttr::get(program.getContext(), RoleKind::Update, copy.name);
    (void)program.insertResult(
        program.getNumResults(), copy.type,
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)));
  }
}

unsigned Keeper::run() {
  for (func::FuncOp program : programs)
    find(program);
  if (copies.empty())
    return 0;
  name();
  buildPrepare();
  for (func::FuncOp program : programs)
    rewrite(program);
  return copies.size();
}

namespace {

struct KeepCasts : tandem::impl::KeepCastsBase<KeepCasts> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(checkSignatures(module)))
      return signalPassFailure();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || module.lookupSymbol("prepare"))
      return markAllAnalysesPreserved();
    kept += Keeper(step).run();
  }
};

} // namespace
