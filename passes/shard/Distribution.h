//===- Distribution.h - where the elements of a value are -----------------===//
//
// A mesh is an array of ranks with named axes. The distribution of a value says
// for each axis what the ranks along it have: all of them the whole value, each
// its piece of one dimension, or each a part of a sum (or of a maximum, or of a
// minimum) that nobody has made yet. A dimension that several axes cut is cut
// by the first of the mesh first.
//
// All ranks have pieces of one size, whatever the size of the dimension: of 5
// rows over 4 ranks, 2, 2, 1 and none. What a piece has behind the end of the
// value is padding, whose elements can be anything. Where a dimension was made
// of several, elements that belong to one row stay together, as a `unit`: of 5
// rows of 3, joined to 15, ranks have 6, 6, 3 and none, not 4, 4, 4 and 3.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_DISTRIBUTION_H
#define TANDEM_PASSES_SHARD_DISTRIBUTION_H

#include "ir/Collective.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace tandem {

/// The axes of a mesh, in order.
class MeshAxes {
public:
  explicit MeshAxes(MeshAttr mesh);

  unsigned size() const { return static_cast<unsigned>(names.size()); }
  int64_t ranksOf(unsigned axis) const { return sizes[axis]; }
  llvm::StringRef nameOf(unsigned axis) const { return names[axis]; }
  std::optional<unsigned> find(llvm::StringRef name) const;
  /// "data=2, tensor=4".
  std::string str() const;

private:
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> sizes;
};

/// What the ranks along one axis have of a value.
struct Placement {
  enum class Kind { Whole, Cut, Partial };
  Kind kind = Kind::Whole;
  int64_t dim = 0;  ///< of Cut
  int64_t unit = 1; ///< of Cut: how many neighbours stay together
  CollectiveReduce reduce = CollectiveReduce::sum; ///< of Partial

  static Placement whole() { return {}; }
  static Placement cut(int64_t dim, int64_t unit = 1) {
    return {Kind::Cut, dim, unit};
  }
  static Placement partial(CollectiveReduce reduce = CollectiveReduce::sum) {
    return {Kind::Partial, 0, 1, reduce};
  }
  bool isWhole() const { return kind == Kind::Whole; }
  bool isCut() const { return kind == Kind::Cut; }
  bool isPartial() const { return kind == Kind::Partial; }
  bool operator==(const Placement &other) const = default;
};

/// A placement for each axis of the mesh.
class Distribution {
public:
  Distribution() = default;
  explicit Distribution(unsigned axes) : placements(axes) {}

  unsigned size() const { return static_cast<unsigned>(placements.size()); }
  Placement &operator[](unsigned axis) { return placements[axis]; }
  const Placement &operator[](unsigned axis) const { return placements[axis]; }
  bool operator==(const Distribution &other) const = default;
  bool isWhole() const;
  bool hasPartial() const;
  /// The axes that cut `dim`, outermost first.
  llvm::SmallVector<unsigned> axesOf(int64_t dim) const;
  /// How many pieces `dim` is in.
  int64_t pieces(const MeshAxes &mesh, int64_t dim) const;

  /// The type of a rank's piece of a value of `type`; null if the axes of a
  /// dimension have different units, or units that do not divide it.
  mlir::RankedTensorType local(const MeshAxes &mesh,
                               mlir::RankedTensorType type) const;
  /// True if pieces of dimension `dim` have padding.
  bool isPadded(const MeshAxes &mesh, mlir::RankedTensorType type,
                int64_t dim) const;
  /// The same pieces of a value of `type`, with units only where they make a
  /// difference.
  Distribution normal(const MeshAxes &mesh, mlir::RankedTensorType type) const;

  /// The property `sharding` of a role: a list of axes for each dimension. Null
  /// if nothing is cut.
  mlir::ArrayAttr toAttr(const MeshAxes &mesh, mlir::MLIRContext *context,
                         int64_t rank) const;
  /// "[data], [], partial sum over tensor" or "whole".
  std::string str(const MeshAxes &mesh, int64_t rank) const;

private:
  llvm::SmallVector<Placement, 4> placements;
};

/// Reads the property `sharding` of a value of `type`, the whole one's; a null
/// `sharding` is whole. The error names what is wrong: axes that the mesh does
/// not have, or that cut twice or in another order than the mesh's, dimensions
/// that are not there.
std::optional<Distribution> readSharding(const MeshAxes &mesh,
                                         mlir::ArrayAttr sharding,
                                         mlir::RankedTensorType type,
                                         std::string &error);

/// The sharding that a role of a rank's value (of `type`) says.
Distribution shardingOfLocal(const MeshAxes &mesh, RoleAttr role);

} // namespace tandem

#endif
