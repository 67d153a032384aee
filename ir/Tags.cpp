//===- Tags.cpp - what a program says about saving and recomputing --------===//
#include "ir/Tags.h"

#include "ir/Collective.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tandem;

static constexpr StringLiteral kTags[] = {kSaveAttr, kRecomputeAttr,
                                          kOffloadAttr, kCheckpointAttr};

bool tandem::isTag(StringRef name) { return llvm::is_contained(kTags, name); }

/// Other ranks take part in it.
static bool hasRanks(Operation *op) {
  auto isOfRanks = [](Operation *inside) {
    return communicates(inside) ? WalkResult::interrupt()
                                : WalkResult::advance();
  };
  return op->walk(isOfRanks).wasInterrupted();
}

bool tandem::isRepeatable(Operation *op) {
  // What its backward writes is not of the forward.
  if (auto custom = dyn_cast<CustomVjpOp>(op))
    return custom.getWrites().empty();
  if (hasRanks(op))
    return false;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return effects && llvm::all_of(*effects, [](const auto &effect) {
           return isa<MemoryEffects::Read, MemoryEffects::Allocate>(
               effect.getEffect());
         });
}

bool tandem::isTaggable(Operation *op) {
  auto isValue = [](Type type) { return isa<RankedTensorType>(type); };
  return op->getNumResults() > 0 &&
         llvm::all_of(op->getResultTypes(), isValue) &&
         (isa<CustomVjpOp>(op) || llvm::all_of(op->getOperandTypes(), isValue));
}

LogicalResult tandem::verifyTag(Operation *op, NamedAttribute tag) {
  StringRef name = tag.getName();
  if (name == kCheckpointAttr) {
    auto region = dyn_cast<StringAttr>(tag.getValue());
    if (region && !region.empty())
      return success();
    return op->emitOpError() << "expected '" << name << "' to be the name of a "
                             << "region, but got " << tag.getValue();
  }
  if (!isa<UnitAttr>(tag.getValue()))
    return op->emitOpError()
           << "expected '" << name << "' to be a unit attribute, but got "
           << tag.getValue();
  if (name == kRecomputeAttr && !isRepeatable(op))
    return op->emitOpError()
           << (hasRanks(op) ? "is of several ranks" : "writes memory")
           << ", and cannot be computed again as '" << name << "' says";
  if (!isTaggable(op))
    return op->emitOpError()
           << "makes no value from values, so '" << name << "' says nothing";
  if (name == kRecomputeAttr)
    for (StringRef other : {kSaveAttr, kOffloadAttr})
      if (op->hasAttr(other))
        return op->emitOpError() << "expected one of '" << other << "' and '"
                                 << kRecomputeAttr << "', but got both";
  return success();
}

void tandem::addTags(Operation *op, Operation *from) {
  bool decides = op->hasAttr(kSaveAttr) || op->hasAttr(kRecomputeAttr) ||
                 op->hasAttr(kOffloadAttr);
  bool hasOwnRegion = op->hasAttr(kCheckpointAttr);
  for (StringRef name : kTags) {
    Attribute tag = from->getAttr(name);
    if (tag && !(name == kCheckpointAttr ? hasOwnRegion : decides))
      op->setAttr(name, tag);
  }
}

void tandem::dropTags(Operation *op) {
  for (StringRef name : kTags)
    op->removeAttr(name);
}
