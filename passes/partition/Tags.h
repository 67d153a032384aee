//===- Tags.h - what tags decide about the values of a joint --------------===//
//
// Pins follow from the tags of a joint's ops (ir/Tags.h):
//
// - `save`: saved, if the backward depends on it. Of a view, what it shows is:
//   the smallest value of the chain of views that leads to it.
// - `offload`: the same, in the host's memory. What lies in an output's storage
//   stays there.
// - `recompute`: never saved.
// - Of a region: what only the region itself and the backward use is never
//   saved, nor what the backward alone computes from that. What another region
//   uses, and what the program gives as an output (where hooks may act on its
//   gradient), is not computed again.
//
// - Of a collective: it is not computed again, in regions neither; one of the
//   backward is not computed in the forward.
//
// Both kinds of pin on one value leave no partition; tandem-check-save-tags
// says why.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_TAGS_H
#define TANDEM_PASSES_PARTITION_TAGS_H

#include "ir/Dialect.h"
#include "ir/Tags.h"

#include "llvm/ADT/DenseMap.h"

#include <string>

namespace tandem {

class JointView;

enum class Tag { None, Save, Recompute };

/// What the op says of itself; its region may say more.
inline Tag tagOf(mlir::Operation *op) {
  return op->hasAttr(kSaveAttr) || op->hasAttr(kOffloadAttr) ? Tag::Save
         : op->hasAttr(kRecomputeAttr)                       ? Tag::Recompute
                                                             : Tag::None;
}

/// The region that the op is of; null: of none.
inline mlir::StringAttr checkpointOf(mlir::Operation *op) {
  return op->getAttrOfType<mlir::StringAttr>(kCheckpointAttr);
}

/// Why the result of an op that is not exact (JointCosts::isExact()) is saved:
/// a mask of its elements would differ from the forward's. See
/// docs/rationale/same-bits-in-every-plan.md.
inline constexpr llvm::StringLiteral kWhySumsAreKept =
    "a floating-point sum that is computed again could have other bits";

/// Why the result of a collective is saved.
inline constexpr llvm::StringLiteral kWhyRanksMeetOnce =
    "what ranks do together is not done again";

/// What the tags of a joint decide, whatever it costs.
class Pins {
public:
  Pins() = default;
  explicit Pins(const JointView &view);

  /// True if every partition saves `value`.
  bool mustSave(mlir::Value value) const { return pinOf(value).isForced; }
  /// True if `value`, where it is saved, is saved in the host's memory.
  bool isOffloaded(mlir::Value value) const { return pinOf(value).isOffloaded; }
  /// True if `value` may not be computed again.
  bool mayNotRepeat(mlir::Value value) const {
    return !pinOf(value).whyKept.empty();
  }
  /// True if `value` may not be saved: what needs it computes it again.
  bool mayNotSave(mlir::Value value) const {
    return !pinOf(value).whyUnsaved.empty();
  }
  /// Why `value` may not be computed again: "'tandem.save' at m.mlir:7:3".
  const std::string &whyKept(mlir::Value value) const {
    return pinOf(value).whyKept;
  }
  const std::string &whyUnsaved(mlir::Value value) const {
    return pinOf(value).whyUnsaved;
  }
  /// The values that every partition saves, in no order.
  llvm::SmallVector<mlir::Value> forced() const;

private:
  struct Pin {
    bool isForced = false, isOffloaded = false;
    std::string whyKept, whyUnsaved;
  };
  const Pin &pinOf(mlir::Value value) const;
  void pinTagged(const JointView &view);
  void pinRegions(const JointView &view);
  void pinCollectives(const JointView &view);
  void pinDerived(const JointView &view);

  llvm::DenseMap<mlir::Value, Pin> pins;
};

} // namespace tandem

#endif
