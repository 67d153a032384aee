//===- Prepare.cpp - what inference computes once -------------------------===//
//
// Frozen is what depends on params, states and constants alone. Of the frozen
// values, those at the frontier are prepared: an op that is not frozen reads
// them, perhaps through views, and reading them takes no longer than computing
// them in each call. Where a value is not worth it, what it is made of may be.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/Prepare.h"

#include "passes/common/EraseDeadOps.h"
#include "passes/partition/Cost.h"
#include "passes/partition/PackWeights.h"
#include "passes/partition/Programs.h"
#include "passes/plan/KernelBytes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

namespace {

class Preparer {
public:
  explicit Preparer(func::FuncOp evaluate)
      : evaluate(evaluate), rates(Rates::of(evaluate)) {}

  func::FuncOp run();

private:
  void findFrozen();
  void findReturned();
  void packWeights();
  void demandOperands(Operation *op);
  void demand(Value value);
  bool isWorthIt(Value value);
  /// The ops that make `value`, and the arguments and constants at its origin.
  SetVector<Value> coneOf(Value value);
  SmallVector<Slot> argumentSlots(SmallVectorImpl<Value> &sources);
  SmallVector<Slot> resultSlots();
  std::string nameOf(Value value);
  void takePrepared(ArrayRef<Slot> slots);

  RoleAttr role(BlockArgument argument) {
    return roleOfArgument(evaluate, argument.getArgNumber());
  }

  func::FuncOp evaluate;
  Rates rates;
  /// What never changes; those that depend on an argument.
  DenseSet<Value> frozen, ofVariables;
  DenseSet<Operation *> returned; ///< they make what is given out
  DenseSet<Value> panels;         ///< of right factors, to be prepared
  DenseSet<Value> visited;
  SetVector<Value> prepared;
};

} // namespace

void Preparer::findFrozen() {
  for (BlockArgument argument : evaluate.getArguments())
    if (RoleKind kind = role(argument).getKind();
        kind == RoleKind::Param || kind == RoleKind::State) {
      frozen.insert(argument);
      ofVariables.insert(argument);
    }
  for (Operation &op : evaluate.getOps()) {
    if (op.getNumRegions() || !isMemoryEffectFree(&op) ||
        !llvm::all_of(op.getOperands(),
                      [&](Value operand) { return frozen.contains(operand); }))
      continue;
    frozen.insert(op.result_begin(), op.result_end());
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return ofVariables.contains(operand);
        }))
      ofVariables.insert(op.result_begin(), op.result_end());
  }
}

/// What is an output is written by a kernel of each call.
void Preparer::findReturned() {
  for (Value value : evaluate.getBody().front().getTerminator()->getOperands())
    while (Operation *op = value.getDefiningOp()) {
      returned.insert(op);
      if (!isa<ViewOpInterface>(op))
        break;
      value = op->getOperand(0);
    }
}

/// Products that gain by it read frozen right factors from panels.
void Preparer::packWeights() {
  DenseMap<std::pair<Value, unsigned>, Value> made;
  for (auto product : llvm::to_vector(evaluate.getOps<MatmulOp>())) {
    Value weights = product.getRhs();
    if (!ofVariables.contains(weights) || frozen.contains(product.getLhs()) ||
        !gainsByPanels(product))
      continue;
    Value &known = made[{weights, product.getTransposeRhs()}];
    if (!known) {
      known = buildPanels(product);
      panels.insert(known);
    }
    readPanels(product, known);
  }
}

SetVector<Value> Preparer::coneOf(Value value) {
  SetVector<Value> cone;
  cone.insert(value);
  for (size_t i = 0; i < cone.size(); ++i)
    if (Operation *op = cone[i].getDefiningOp())
      cone.insert(op->operand_begin(), op->operand_end());
  return cone;
}

bool Preparer::isWorthIt(Value value) {
  if (panels.contains(value))
    return true;
  auto moving = [&](Value moved) {
    return rates.moving(static_cast<double>(bytesOf(moved)));
  };
  double computing = 0;
  DenseSet<Operation *> ops;
  for (Value made : coneOf(value)) {
    Operation *op = made.getDefiningOp();
    if (!op)
      computing += moving(made);
    else if (ops.insert(op).second)
      computing += rates.arithmetic(op);
  }
  return bytesOf(value) > 0 && computing >= moving(value);
}

void Preparer::demandOperands(Operation *op) {
  for (Value operand : op->getOperands())
    if (frozen.contains(operand) && ofVariables.contains(operand))
      demand(operand);
}

void Preparer::demand(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !visited.insert(value).second)
    return;
  bool isView = isa<ViewOpInterface>(op) && !panels.contains(value);
  if (returned.contains(op) || isView || !isWorthIt(value))
    demandOperands(op);
  else
    prepared.insert(value);
}

SmallVector<Slot> Preparer::argumentSlots(SmallVectorImpl<Value> &sources) {
  DenseSet<Value> wanted;
  for (Value value : prepared)
    for (Value made : coneOf(value))
      wanted.insert(made);
  SmallVector<Slot> slots;
  for (BlockArgument argument : evaluate.getArguments())
    if (wanted.contains(argument)) {
      sources.push_back(argument);
      slots.push_back({argument.getType(), role(argument), argument.getLoc()});
    }
  return slots;
}

/// "w.cast" or "w.panels", where all comes from one argument; else "add".
std::string Preparer::nameOf(Value value) {
  std::string name =
      panels.contains(value)
          ? "panels"
          : value.getDefiningOp()->getName().stripDialect().str();
  BlockArgument only;
  unsigned arguments = 0;
  for (Value made : coneOf(value))
    if (auto argument = dyn_cast<BlockArgument>(made)) {
      only = argument;
      ++arguments;
    }
  return arguments == 1 ? role(only).getName().str() + "." + name : name;
}

SmallVector<Slot> Preparer::resultSlots() {
  SmallVector<Slot> slots;
  llvm::StringSet<> taken;
  for (Value value : prepared) {
    std::string base = nameOf(value), name = base;
    for (unsigned i = 1; !taken.insert(name).second; ++i)
      name = base + "." + std::to_string(i);
    slots.push_back(
        {value.getType(),
         RoleAttr::get(evaluate.getContext(), RoleKind::Prepared, name),
         value.getLoc()});
  }
  return slots;
}

/// Makes the prepared values arguments of `evaluate`.
void Preparer::takePrepared(ArrayRef<Slot> slots) {
  Builder b(evaluate.getContext());
  for (auto [value, slot] : llvm::zip_equal(prepared.getArrayRef(), slots)) {
    unsigned index = evaluate.getNumArguments();
    (void)evaluate.insertArgument(
        index, slot.type,
        b.getDictionaryAttr(b.getNamedAttr(kRoleAttr, slot.role)), slot.loc);
    Value(value).replaceAllUsesWith(evaluate.getArgument(index));
  }
  eraseDeadOps(evaluate);
}

func::FuncOp Preparer::run() {
  findFrozen();
  packWeights();
  findFrozen(); // the panels too
  findReturned();
  for (Operation &op : evaluate.getOps())
    if (op.getNumResults() == 0 || !frozen.contains(op.getResult(0)) ||
        returned.contains(&op))
      demandOperands(&op);
  if (prepared.empty())
    return {};
  SmallVector<Value> sources;
  SmallVector<Slot> arguments = argumentSlots(sources), results = resultSlots();
  func::FuncOp prepare = copyProgram(evaluate, "prepare", arguments, sources,
                                     results, prepared.getArrayRef());
  takePrepared(results);
  return prepare;
}

func::FuncOp tandem::buildPrepare(func::FuncOp evaluate) {
  return Preparer(evaluate).run();
}
