//===- Tags.cpp - what tags decide about the values of a joint ------------===//
#include "passes/partition/Tags.h"

#include "passes/common/Phase.h"
#include "passes/partition/Cost.h"
#include "passes/partition/SavedValues.h"
#include "passes/plan/KernelBytes.h"

#include "ir/Collective.h"
#include "ir/Signature.h"
#include "ir/Where.h"

using namespace mlir;
using namespace tandem;

/// What `value` is a view of; null if it is none.
static Value viewedBy(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<ViewOpInterface>(op) ? op->getOperand(0) : Value();
}

/// True if both passes compute `op`, or one of them for the other.
static bool isPrimal(const JointView &view, Operation *op) {
  return op->getNumResults() > 0 && !view.isBackwardOnly(op->getResult(0));
}

/// The values that the backward depends on.
static DenseSet<Value> neededByBackward(const JointView &view) {
  DenseSet<Value> needed;
  for (Operation &op : llvm::reverse(view.joint.getBody().front())) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      for (Value operand : op.getOperands())
        if (view.isGiven(operand))
          needed.insert(operand);
      continue;
    }
    if (!isPrimal(view, &op) ||
        llvm::any_of(op.getResults(),
                     [&](Value result) { return needed.contains(result); }))
      needed.insert(op.operand_begin(), op.operand_end());
  }
  return needed;
}

const Pins::Pin &Pins::pinOf(Value value) const {
  static const Pin none;
  auto it = pins.find(value);
  return it == pins.end() ? none : it->second;
}

SmallVector<Value> Pins::forced() const {
  SmallVector<Value> values;
  for (const auto &[value, pin] : pins)
    if (pin.isForced)
      values.push_back(value);
  return values;
}

Pins::Pins(const JointView &view) {
  pinTagged(view);
  pinRegions(view);
  pinCollectives(view);
  pinDerived(view);
}

/// What ranks do together they do as often as the program says, whatever the
/// region says: one of the backward is no other one's result either.
void Pins::pinCollectives(const JointView &view) {
  for (Operation &op : view.joint.getOps()) {
    if (!communicates(&op) || !isPrimal(view, &op))
      continue;
    for (Value result : op.getResults()) {
      Pin &pin = pins[result];
      bool isLate = passOf(&op) == "backward";
      if (isLate && !pin.isForced) {
        pin.whyKept.clear();
        pin.whyUnsaved = "the ranks make it in the backward";
      } else {
        pin.whyUnsaved.clear();
        if (pin.whyKept.empty())
          pin.whyKept = kWhyRanksMeetOnce.str();
      }
    }
  }
}

void Pins::pinTagged(const JointView &view) {
  DenseSet<Value> needed = neededByBackward(view);
  for (Operation &op : view.joint.getOps()) {
    Tag tag = tagOf(&op);
    if (tag == Tag::None || !isPrimal(view, &op))
      continue;
    for (Value result : op.getResults()) {
      if (view.isFree(result))
        continue;
      if (tag == Tag::Recompute) {
        if (!JointCosts::isExact(&op)) {
          pins[result].whyKept = kWhySumsAreKept.str();
          continue;
        }
        pins[result].whyUnsaved =
            ("'" + kRecomputeAttr + "' on " + whereIs(&op)).str();
        continue;
      }
      // Views are made again, so it is what they show that is saved.
      Value smallest = result;
      bool isFree = false;
      for (Value link = result; link; link = viewedBy(link)) {
        isFree |= view.isFree(link);
        if (bytesOf(link) <= bytesOf(smallest))
          smallest = link;
      }
      if (isFree || !needed.contains(smallest))
        continue;
      Pin &pin = pins[smallest];
      bool isOffload = op.hasAttr(kOffloadAttr);
      pin.isForced = true;
      pin.isOffloaded |= isOffload;
      pin.whyKept = ("'" + (isOffload ? kOffloadAttr : kSaveAttr) + "' on " +
                     whereIs(&op))
                        .str();
    }
  }
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

namespace {

/// Who uses a value of a region outside of it.
struct Leaving {
  bool isUsed = false; ///< somebody in the forward
  std::string whyKept; ///< another region, or whoever gets the output
};

} // namespace

/// Looks at the users of `value` but for views of its own region.
static void findUsers(const JointView &view, Value value, StringAttr region,
                      Leaving &leaving) {
  std::string from = "region '" + region.str() + "' gives it ";
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (user->hasTrait<OpTrait::IsTerminator>()) {
      RoleAttr role = roleOfResult(view.joint, use.getOperandNumber());
      if (isBackward(role))
        continue;
      leaving.isUsed = true;
      if (role.getKind() == RoleKind::Output)
        leaving.whyKept = from + "as output '" + role.getName().str() + "'";
      continue;
    }
    StringAttr other = checkpointOf(user);
    if (!isPrimal(view, user) || other == region ||
        (!other && passOf(user) == "backward"))
      continue;
    leaving.isUsed = true;
    if (other)
      leaving.whyKept = from + "to region '" + other.str() + "'";
  }
}

void Pins::pinRegions(const JointView &view) {
  auto regionOf = [&](Operation *op) {
    return op && tagOf(op) == Tag::None && isPrimal(view, op) ? checkpointOf(op)
                                                              : StringAttr();
  };
  DenseMap<Value, Leaving> leaving;
  for (Operation &op : view.joint.getOps())
    if (StringAttr region = regionOf(&op))
      for (Value result : op.getResults()) {
        Leaving out;
        findUsers(view, result, region, out);
        // Of views of one value in the region, the smallest leaves it.
        Value smallest = result;
        for (Value link = result;
             link && regionOf(link.getDefiningOp()) == region;
             link = viewedBy(link))
          if (bytesOf(link) <= bytesOf(smallest))
            smallest = link;
        Leaving &all = leaving[smallest];
        all.isUsed |= out.isUsed;
        if (!out.whyKept.empty())
          all.whyKept = out.whyKept;
      }
  for (Operation &op : view.joint.getOps())
    if (StringAttr region = regionOf(&op))
      for (Value result : op.getResults()) {
        if (view.isFree(result))
          continue;
        const Leaving &out = leaving[result];
        // A view of what enters the region is made again from that.
        bool isMade = !viewedBy(result) ||
                      regionOf(viewedBy(result).getDefiningOp()) == region;
        if (!JointCosts::isExact(&op))
          pins[result].whyKept = kWhySumsAreKept.str();
        else if (!out.isUsed)
          pins[result].whyUnsaved =
              "it is inside of region '" + region.str() + "'";
        else if (!out.whyKept.empty() && isMade)
          pins[result].whyKept = out.whyKept;
      }
}

/// What gradient rules compute from values that may not be saved would save
/// these by another name.
void Pins::pinDerived(const JointView &view) {
  for (Operation &op : view.joint.getOps()) {
    if (!isPrimal(view, &op) || passOf(&op) != "backward" ||
        tagOf(&op) != Tag::None || checkpointOf(&op))
      continue;
    for (Value operand : op.getOperands()) {
      while (viewedBy(operand) && !mayNotRepeat(operand))
        operand = viewedBy(operand);
      if (!mayNotSave(operand) || mayNotRepeat(operand))
        continue;
      for (Value result : op.getResults())
        pins[result].whyUnsaved = "it follows from " +
                                  whereIs(operand.getDefiningOp()) + ": " +
                                  whyUnsaved(operand);
      break;
    }
  }
}
