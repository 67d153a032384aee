//===- Report.cpp - why values are saved or made again --------------------===//
#include "passes/partition/Report.h"

#include "passes/partition/Cost.h"

#include "ir/Ops.h"
#include "ir/Report.h"
#include "ir/Where.h"

#include "llvm/Support/FormatVariadic.h"

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

/// What making a value again takes in the backward; 0 for an argument.
static double secondsOf(const JointCosts &costs, Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result ? costs.repeating(result) : 0;
}

static double secondsOf(const JointCosts &costs, Operation *op) {
  return op->getNumResults() ? secondsOf(costs, op->getResult(0)) : 0;
}

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
  return "a kernel of the backward takes it in";
}

void tandem::reportPartition(ModuleOp module, const JointView &view,
                             const SavedValues &saved, const SavedNames &names,
                             ArrayRef<Operation *> repeated) {
  JointCosts costs(view);
  Builder b(module.getContext());
  auto text = [&](StringRef name, const Twine &value) {
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  auto seconds = [&](double value) {
    return b.getNamedAttr("seconds", b.getF64FloatAttr(value));
  };
  SmallVector<Attribute> kept, again;
  for (const auto &[value, reason] : saved) {
    Operation *op = value.getDefiningOp();
    kept.push_back(
        b.getDictionaryAttr({text("name", names.of(value)),
                             text("op", op ? op->getName().getStringRef() : ""),
                             text("where", op ? placeWithoutName(op) : ""),
                             seconds(secondsOf(costs, value))}));
  }
  for (Operation *op : repeated)
    again.push_back(b.getDictionaryAttr(
        {text("op", op->getName().getStringRef()),
         text("where", placeWithoutName(op)),
         text("reason", reasonFor(view, costs, op)),
         seconds(secondsOf(costs, op)),
         b.getNamedAttr("bytes",
                        b.getI64IntegerAttr(bytesOf(op->getResults())))}));
  NamedAttrList report(
      module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr));
  report.set("saved", b.getArrayAttr(kept));
  report.set("repeated", b.getArrayAttr(again));
  module->setAttr(kPartitionReportAttr,
                  report.getDictionary(module.getContext()));
}

void tandem::remarkPartition(const JointView &view, const SavedValues &saved,
                             ArrayRef<Operation *> repeated) {
  JointCosts costs(view);
  auto micros = [](double seconds) {
    return llvm::formatv("{0:f1} us", seconds * 1e6).str();
  };
  for (const auto &[value, reason] : saved) {
    auto type = cast<RankedTensorType>(value.getType());
    auto remark = emitRemark(value.getLoc()) << "saved ";
    Operation *op = value.getDefiningOp();
    if (op)
      remark << "the result of '" << op->getName() << "'";
    else
      remark << "an argument";
    remark << " (" << type << ", " << byteSize(type) << " bytes"
           << (view.isOnHost(value) ? ", in the host's memory" : "")
           << "): " << reason;
    if (op)
      remark << "; making it again would take "
             << micros(secondsOf(costs, value));
  }
  for (Operation *op : repeated)
    emitRemark(op->getLoc())
        << "'" << op->getName() << "' is computed again in the backward, in "
        << micros(secondsOf(costs, op)) << ": " << reasonFor(view, costs, op);
}

void tandem::remarkNotOffloaded(const JointView &view,
                                const SavedValues &saved) {
  for (const auto &[value, reason] : saved)
    if (view.pins.isOffloaded(value) && !view.isOnHost(value))
      emitRemark(value.getLoc())
          << reason << " does not bring it to the host: the device has it as "
          << "output " << view.outputOf(value);
}
