//===- ReportPartition.cpp - why values are saved or made again -----------===//
//
// Before the joint is divided: costs and places are those of its ops.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/partition/Cost.h"
#include "passes/partition/Joints.h"
#include "passes/partition/Programs.h"
#include "passes/partition/SavedMarks.h"

#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Report.h"
#include "ir/Where.h"

#include "llvm/Support/FormatVariadic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem {
#define GEN_PASS_DEF_REPORTPARTITION
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += byteSize(cast<RankedTensorType>(value.getType()));
  return bytes;
}

/// The place of an op without its name; empty if it has none.
static std::string placeWithoutName(Operation *op) {
  std::string text = whereIs(op);
  return StringRef(text).split("' at ").second.str();
}

static std::string pathInOneLine(Operation *op) {
  return inOneLine(pathOf(op).str());
}

static double secondsOf(const JointCosts &costs, Operation *op) {
  return op->getNumResults() ? costs.repeating(op->getResult(0)) : 0;
}

namespace {
/// What the backward has or can make, and what each costs there.
struct Made {
  Made(const JointView &view, const SavedValues &saved,
       ArrayRef<Operation *> repeated)
      : costs(view), saved(saved), repeated(repeated.begin(), repeated.end()) {}

  /// What it would take to make `value` in the backward if it were not saved:
  /// its op, and those that it follows from and whose results are not there.
  /// Nothing for an argument.
  double seconds(Value value) const {
    double sum = 0;
    SmallVector<Operation *> work = {value.getDefiningOp()};
    DenseSet<Operation *> seen;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!op || !seen.insert(op).second)
        continue;
      sum += secondsOf(costs, op);
      for (Value operand : op->getOperands())
        if (!saved.contains(operand) &&
            !repeated.contains(operand.getDefiningOp()))
          work.push_back(operand.getDefiningOp());
    }
    return sum;
  }

  JointCosts costs;

private:
  const SavedValues &saved;
  DenseSet<Operation *> repeated;
};
} // namespace

/// Why the backward runs `op` again.
static std::string reasonFor(const JointView &view, const JointCosts &costs,
                             Operation *op) {
  Value result = op->getResult(0);
  if (view.pins.mayNotSave(result))
    return view.pins.whyUnsaved(result);
  if (isa<ViewOpInterface>(op))
    return "it moves elements of what is there";
  if (costs.isLight(result))
    return "it needs nothing large from memory";
  if (JointCosts::isWhole(op) || !JointCosts::isExact(op))
    return "its result takes memory that the budget has not";
  return "a kernel of the backward is expected to take it in";
}

/// Says in the module what is saved and which ops the backward repeats, with
/// predicted times and, of what is repeated, the reasons
/// (ir/Report.h). What the module says of a budget stays.
static void report(ModuleOp module, const JointView &view,
                   const SavedValues &saved, const SavedNames &names,
                   ArrayRef<Operation *> repeated) {
  Made made(view, saved, repeated);
  Builder b(module.getContext());
  auto text = [&](StringRef name, const Twine &value) {
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  auto seconds = [&](double value) {
    return b.getNamedAttr(key::kSeconds, b.getF64FloatAttr(value));
  };
  SmallVector<Attribute> kept, again;
  for (const auto &[value, reason] : saved) {
    Operation *op = value.getDefiningOp();
    kept.push_back(b.getDictionaryAttr(
        {text(key::kName, names.of(value)),
         text(key::kOp, op ? op->getName().getStringRef() : ""),
         text(key::kPath, op ? pathInOneLine(op) : ""),
         text(key::kWhere, op ? placeWithoutName(op) : ""),
         seconds(made.seconds(value))}));
  }
  for (Operation *op : repeated)
    again.push_back(b.getDictionaryAttr(
        {text(key::kOp, op->getName().getStringRef()),
         text(key::kPath, pathInOneLine(op)),
         text(key::kWhere, placeWithoutName(op)),
         text(key::kReason, reasonFor(view, made.costs, op)),
         seconds(secondsOf(made.costs, op)),
         b.getNamedAttr(key::kBytes,
                        b.getI64IntegerAttr(bytesOf(op->getResults())))}));
  NamedAttrList entries(
      module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr));
  entries.set(key::kSaved, b.getArrayAttr(kept));
  entries.set(key::kRepeated, b.getArrayAttr(again));
  module->setAttr(kPartitionReportAttr,
                  entries.getDictionary(module.getContext()));
}

/// Says the same in remarks.
static void remarkPartition(const JointView &view, const SavedValues &saved,
                            ArrayRef<Operation *> repeated) {
  Made made(view, saved, repeated);
  auto micros = [](double seconds) {
    return llvm::formatv("{0:f1} us", seconds * 1e6).str();
  };
  for (const auto &[value, reason] : saved) {
    auto type = cast<RankedTensorType>(value.getType());
    InFlightDiagnostic text = emitRemark(value.getLoc()) << "saved ";
    Operation *op = value.getDefiningOp();
    if (op)
      text << "the result of '" << op->getName() << "'";
    else
      text << "an argument";
    text << " (" << type << ", " << byteSize(type) << " bytes"
         << (view.isOnHost(value) ? ", in the host's memory" : "")
         << "): " << reason;
    if (op)
      text << "; making it again would take " << micros(made.seconds(value));
  }
  for (Operation *op : repeated)
    emitRemark(op->getLoc())
        << "'" << op->getName() << "' is computed again in the backward, in "
        << micros(secondsOf(made.costs, op)) << ": "
        << reasonFor(view, made.costs, op);
}

/// Says which values that are to be offloaded stay on the device.
static void remarkNotOffloaded(const JointView &view,
                               const SavedValues &saved) {
  for (const auto &[value, reason] : saved)
    if (view.pins.isOffloaded(value) && !view.isOnHost(value))
      emitRemark(value.getLoc())
          << reason << " does not bring it to the host: the device has it as "
          << "output " << view.outputOf(value);
}

namespace {

struct ReportPartition : tandem::impl::ReportPartitionBase<ReportPartition> {
  using ReportPartitionBase::ReportPartitionBase;

  void runOnOperation() final {
    FailureOr<Joints> joints = findJoints(getOperation());
    if (failed(joints))
      return signalPassFailure();
    if (!joints->joint)
      return markAllAnalysesPreserved();
    JointView view(joints->joint);
    FailureOr<SavedValues> saved = markedValues(view);
    if (failed(saved))
      return signalPassFailure();
    SmallVector<Operation *> again = backwardOps(view, *saved);
    llvm::erase_if(again, [](Operation *op) { return !isRepeated(op); });
    repeated += again.size();
    report(getOperation(), view, *saved, SavedNames(view.joint, *saved), again);
    remarkNotOffloaded(view, *saved);
    if (remarks)
      remarkPartition(view, *saved, again);
  }
};

} // namespace
