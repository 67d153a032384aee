//===- SplitFrozen.cpp - what inference computes once ---------------------===//
//
// Frozen is what depends on params, states and constants alone. Of the frozen
// values, those at the frontier are prepared: an op that is not frozen reads
// them, perhaps through views, and reading them takes no longer than computing
// them in each call. Where a value is not worth it, what it is made of may be.
// What says `tandem.prepared` is always worth it.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/partition/Frozen.h"
#include "passes/partition/Programs.h"
#include "passes/plan/KernelBytes.h"
#include "passes/target/Rates.h"

#include "ir/Ops.h"
#include "ir/PartitionMarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITFROZEN
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class Preparer {
public:
  explicit Preparer(func::FuncOp evaluate)
      : evaluate(evaluate), rates(Rates::of(evaluate)), frozen(evaluate) {}

  /// Moves what is worth it into the function @prepare in front of @evaluate.
  /// Returns how many values that are.
  unsigned run();
  LogicalResult checkMarks();

private:
  void findReturned();
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
  FrozenValues frozen;
  DenseSet<Operation *> returned; ///< they make what is given out
  DenseSet<Value> visited;
  SetVector<Value> prepared;
};

} // namespace

/// The name under which `value` is to be prepared; null if no mark says so.
static StringAttr markOf(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? op->getAttrOfType<StringAttr>(kPreparedAttr) : StringAttr();
}

/// What is marked can be computed once, and is not given out.
LogicalResult Preparer::checkMarks() {
  bool isRight = true;
  findReturned();
  for (Operation &op : evaluate.getOps()) {
    if (!op.hasAttr(kPreparedAttr))
      continue;
    bool isReturned = returned.contains(&op);
    if (frozen.dependsOnVariables(op.getResult(0)) && !isReturned)
      continue;
    op.emitOpError() << "has '" << kPreparedAttr << "', but "
                     << (isReturned ? "is given out by every call"
                                    : "does not follow from params and states "
                                      "alone");
    isRight = false;
  }
  return success(isRight);
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

SetVector<Value> Preparer::coneOf(Value value) {
  SetVector<Value> cone;
  cone.insert(value);
  for (size_t i = 0; i < cone.size(); ++i)
    if (Operation *op = cone[i].getDefiningOp())
      cone.insert(op->operand_begin(), op->operand_end());
  return cone;
}

bool Preparer::isWorthIt(Value value) {
  if (markOf(value))
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
    if (frozen.dependsOnVariables(operand))
      demand(operand);
}

/// Whether reading it as a view is a copy all the same: convolutions read
/// weights that lie one after the other.
static bool isCopied(Value value) {
  return value.getDefiningOp<SliceOp>() &&
         llvm::any_of(value.getUses(), [](OpOperand &use) {
           return isa<Conv2dOp>(use.getOwner()) && use.getOperandNumber() == 1;
         });
}

void Preparer::demand(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !visited.insert(value).second)
    return;
  bool isView = isa<ViewOpInterface>(op) && !markOf(value) && !isCopied(value);
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
  StringAttr mark = markOf(value);
  std::string name =
      mark ? mark.str() : value.getDefiningOp()->getName().stripDialect().str();
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

unsigned Preparer::run() {
  for (Operation &op : evaluate.getOps())
    if (op.getNumResults() == 0 || !frozen.contains(op.getResult(0)) ||
        returned.contains(&op))
      demandOperands(&op);
  if (prepared.empty())
    return 0;
  SmallVector<Value> sources;
  SmallVector<Slot> arguments = argumentSlots(sources), results = resultSlots();
  copyProgram(evaluate, "prepare", arguments, sources, results,
              prepared.getArrayRef());
  takePrepared(results);
  return prepared.size();
}

namespace {

struct SplitFrozen : tandem::impl::SplitFrozenBase<SplitFrozen> {
  void runOnOperation() final {
    FailureOr<func::FuncOp> evaluate = findFrozenProgram(getOperation());
    if (failed(evaluate))
      return signalPassFailure();
    if (!*evaluate)
      return markAllAnalysesPreserved();
    if (Operation *other = getOperation().lookupSymbol("prepare")) {
      other->emitError() << "expected no 'prepare' before it is made";
      return signalPassFailure();
    }
    Preparer preparer(*evaluate);
    if (failed(preparer.checkMarks()))
      return signalPassFailure();
    split += preparer.run();
  }
};

} // namespace
