//===- SavedMarks.cpp - the choice of what is saved, in the IR ------------===//
#include "passes/partition/SavedMarks.h"

#include "passes/common/Phase.h"
#include "passes/partition/Cost.h"
#include "passes/partition/Joints.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Ops.h"
#include "ir/PartitionMarks.h"
#include "ir/Signature.h"
#include "ir/Where.h"

using namespace mlir;
using namespace tandem;

//===----------------------------------------------------------------------===//
// Joints
//===----------------------------------------------------------------------===//

FailureOr<Joints> tandem::findJoints(ModuleOp module) {
  if (failed(checkJoints(module)))
    return failure();
  return Joints{module.lookupSymbol<func::FuncOp>("joint"),
                module.lookupSymbol<func::FuncOp>("grad_joint")};
}

bool tandem::isChosen(func::FuncOp joint) {
  return joint->hasAttr(kSavedByAttr);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void tandem::markSaved(func::FuncOp joint, const SavedValues &saved,
                       StringRef by) {
  Builder b(joint.getContext());
  joint->setAttr(kSavedByAttr, b.getStringAttr(by));
  auto reasonFor = [&](Value value) {
    const auto *found = saved.find(value);
    return found == saved.end() ? StringAttr() : b.getStringAttr(found->second);
  };
  for (BlockArgument argument : joint.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (StringAttr reason = reasonFor(argument))
      joint.setArgAttr(i, kSavedAttr, reason);
    else if (joint.getArgAttr(i, kSavedAttr))
      joint.removeArgAttr(i, kSavedAttr);
  }
  for (Operation &op : joint.getOps()) {
    SmallVector<Attribute> reasons;
    bool isMarked = false;
    for (Value result : op.getResults()) {
      StringAttr reason = reasonFor(result);
      isMarked |= reason != nullptr;
      reasons.push_back(reason ? Attribute(reason) : b.getUnitAttr());
    }
    if (!isMarked)
      op.removeAttr(kSavedAttr);
    else
      op.setAttr(kSavedAttr, reasons.size() == 1 ? reasons.front()
                                                 : b.getArrayAttr(reasons));
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

class MarkReader {
public:
  explicit MarkReader(const JointView &view) : view(view) {}
  FailureOr<SavedValues> read();

private:
  void add(Value value, Attribute reason);
  void checkForced();
  void checkNeeds();
  InFlightDiagnostic error(Value value);

  const JointView &view;
  SavedValues saved;
  bool isWrong = false;
};

} // namespace

/// An error at the value, which it begins with.
InFlightDiagnostic MarkReader::error(Value value) {
  isWrong = true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned i = argument.getArgNumber();
    return mlir::emitError(argument.getLoc())
           << nameOfArgument(roleOfArgument(view.joint, i), i) << " ";
  }
  Operation *op = value.getDefiningOp();
  InFlightDiagnostic diagnostic = op->emitError()
                                  << "'" << op->getName() << "' op ";
  if (op->getNumResults() > 1)
    diagnostic << "result #" << cast<OpResult>(value).getResultNumber() << " ";
  return diagnostic;
}

void MarkReader::add(Value value, Attribute reason) {
  auto text = dyn_cast_or_null<StringAttr>(reason);
  if (!text)
    return;
  if (view.isBackwardOnly(value))
    error(value) << "exists in the backward alone, where '" << kSavedAttr
                 << "' says nothing";
  else if (view.isFree(value))
    error(value) << (isa<BlockArgument>(value)
                         ? "keeps its value for the backward"
                         : "is in both programs")
                 << ", so that '" << kSavedAttr << "' says nothing";
  else if (view.pins.mayNotSave(value))
    error(value) << "has '" << kSavedAttr
                 << "', but may not be saved: " << view.pins.whyUnsaved(value);
  else
    saved.insert({value, text.str()});
}

/// What a tag says is saved.
void MarkReader::checkForced() {
  auto check = [&](Value value) {
    if (view.pins.mustSave(value) && !saved.contains(value))
      error(value) << "has no '" << kSavedAttr
                   << "', but has to be saved: " << view.pins.whyKept(value);
  };
  llvm::for_each(view.joint.getArguments(), check);
  for (Operation &op : view.joint.getOps())
    llvm::for_each(op.getResults(), check);
}

/// What the backward needs and is not saved, it has or can make.
void MarkReader::checkNeeds() {
  SmallVector<Value> work(view.backwardResults);
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (saved.contains(value) || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op) {
      if (view.isLost(value))
        error(value) << "has no '" << kSavedAttr
                     << "', but the backward needs it, and it does not keep "
                        "its value";
      continue;
    }
    // A view moves elements and changes none.
    bool isKept = view.pins.mayNotRepeat(value) && !isa<ViewOpInterface>(op);
    if (passOf(op) == "forward" && (isKept || !JointCosts::isExact(op))) {
      error(value) << "has no '" << kSavedAttr
                   << "', but the backward needs it, and may not compute it "
                      "again: "
                   << (isKept ? StringRef(view.pins.whyKept(value))
                              : StringRef(kWhySumsAreKept));
      continue;
    }
    work.append(op->operand_begin(), op->operand_end());
  }
}

FailureOr<SavedValues> MarkReader::read() {
  func::FuncOp joint = view.joint;
  if (!isChosen(joint))
    return joint.emitError()
           << "expected '" << joint.getName() << "' to say '" << kSavedByAttr
           << "': nobody has chosen what is saved (tandem-choose-saved)";
  for (BlockArgument argument : joint.getArguments())
    add(argument, joint.getArgAttr(argument.getArgNumber(), kSavedAttr));
  for (Operation &op : joint.getOps()) {
    Attribute mark = op.getAttr(kSavedAttr);
    auto list = dyn_cast_or_null<ArrayAttr>(mark);
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      if (mark)
        add(result, list ? list[i] : mark);
  }
  if (!isWrong)
    checkForced();
  if (!isWrong)
    checkNeeds();
  if (isWrong)
    return failure();
  return saved;
}

FailureOr<SavedValues> tandem::markedValues(const JointView &view) {
  return MarkReader(view).read();
}
