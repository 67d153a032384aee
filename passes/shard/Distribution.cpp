//===- Distribution.cpp - where the elements of a value are ---------------===//
#include "passes/shard/Distribution.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

MeshAxes::MeshAxes(MeshAttr mesh) {
  for (auto [name, size] : mesh.getAxes()) {
    names.push_back(name.getValue());
    sizes.push_back(size);
  }
}

std::optional<unsigned> MeshAxes::find(StringRef name) const {
  for (auto [i, known] : llvm::enumerate(names))
    if (known == name)
      return static_cast<unsigned>(i);
  return std::nullopt;
}

std::string MeshAxes::str() const {
  SmallVector<std::string> texts;
  for (auto [name, size] : llvm::zip_equal(names, sizes))
    texts.push_back((name + "=" + Twine(size)).str());
  return llvm::join(texts, ", ");
}

bool Distribution::isWhole() const {
  return llvm::all_of(placements,
                      [](const Placement &p) { return p.isWhole(); });
}

bool Distribution::hasPartial() const {
  return llvm::any_of(placements,
                      [](const Placement &p) { return p.isPartial(); });
}

SmallVector<unsigned> Distribution::axesOf(int64_t dim) const {
  SmallVector<unsigned> axes;
  for (auto [axis, placement] : llvm::enumerate(placements))
    if (placement.isCut() && placement.dim == dim)
      axes.push_back(static_cast<unsigned>(axis));
  return axes;
}

int64_t Distribution::pieces(const MeshAxes &mesh, int64_t dim) const {
  int64_t pieces = 1;
  for (unsigned axis : axesOf(dim))
    pieces *= mesh.ranksOf(axis);
  return pieces;
}

/// How many neighbours of `dim` stay together; 0 where axes do not agree.
static int64_t unitOf(const Distribution &where, int64_t dim) {
  int64_t unit = 1;
  for (auto [i, axis] : llvm::enumerate(where.axesOf(dim)))
    if (i == 0)
      unit = where[axis].unit;
    else if (where[axis].unit != unit)
      return 0;
  return unit;
}

RankedTensorType Distribution::local(const MeshAxes &mesh,
                                     RankedTensorType type) const {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t n = pieces(mesh, static_cast<int64_t>(dim));
    int64_t unit = unitOf(*this, static_cast<int64_t>(dim));
    if (unit == 0 || size % unit != 0)
      return {};
    size = (size / unit + n - 1) / n * unit;
  }
  return type.clone(shape);
}

bool Distribution::isPadded(const MeshAxes &mesh, RankedTensorType type,
                            int64_t dim) const {
  RankedTensorType piece = local(mesh, type);
  return piece && piece.getDimSize(unsigned(dim)) * pieces(mesh, dim) !=
                      type.getDimSize(unsigned(dim));
}

Distribution Distribution::normal(const MeshAxes &mesh,
                                  RankedTensorType type) const {
  Distribution result = *this;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t unit = unitOf(*this, dim), size = type.getDimSize(unsigned(dim));
    if (unit < 2 || size % unit != 0)
      continue;
    int64_t n = pieces(mesh, dim);
    if ((size / unit + n - 1) / n * unit == (size + n - 1) / n)
      for (unsigned axis : axesOf(dim))
        result[axis].unit = 1;
  }
  return result;
}

ArrayAttr Distribution::toAttr(const MeshAxes &mesh, MLIRContext *context,
                               int64_t rank) const {
  Builder b(context);
  bool isCut = false;
  SmallVector<Attribute> dims;
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<StringRef> names;
    for (unsigned axis : axesOf(dim))
      names.push_back(mesh.nameOf(axis));
    isCut |= !names.empty();
    dims.push_back(b.getStrArrayAttr(names));
  }
  return isCut ? b.getArrayAttr(dims) : ArrayAttr();
}

std::string Distribution::str(const MeshAxes &mesh, int64_t rank) const {
  SmallVector<std::string> texts;
  bool isCut = false;
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<StringRef> names;
    for (unsigned axis : axesOf(dim))
      names.push_back(mesh.nameOf(axis));
    isCut |= !names.empty();
    texts.push_back("[" + llvm::join(names, ", ") + "]");
  }
  if (!isCut)
    texts.clear();
  for (auto [axis, placement] : llvm::enumerate(placements))
    if (placement.isPartial())
      texts.push_back(("partial " +
                       stringifyCollectiveReduce(placement.reduce) + " over " +
                       mesh.nameOf(unsigned(axis)))
                          .str());
  return texts.empty() ? "whole" : llvm::join(texts, ", ");
}

std::optional<Distribution> tandem::readSharding(const MeshAxes &mesh,
                                                 ArrayAttr sharding,
                                                 RankedTensorType type,
                                                 std::string &error) {
  Distribution result(mesh.size());
  if (!sharding)
    return result;
  auto fail = [&](const Twine &text) {
    error = text.str();
    return std::nullopt;
  };
  if (static_cast<int64_t>(sharding.size()) != type.getRank())
    return fail("expected a sharding of " + Twine(type.getRank()) +
                " dimensions, but got " + Twine(sharding.size()));
  for (auto [dim, entry] : llvm::enumerate(sharding)) {
    auto axes = dyn_cast<ArrayAttr>(entry);
    if (!axes)
      return fail("expected a list of axes for dimension " + Twine(dim));
    std::optional<unsigned> last;
    for (Attribute name : axes) {
      auto text = dyn_cast<StringAttr>(name);
      auto axis = text ? mesh.find(text.getValue()) : std::nullopt;
      if (!axis)
        return fail("expected dimension " + Twine(dim) +
                    " to be cut over axes of the mesh (" + mesh.str() +
                    "), but got '" + (text ? text.getValue() : "") + "'");
      if (!result[*axis].isWhole())
        return fail("expected the axis '" + text.getValue() +
                    "' to cut one dimension, but it cuts two");
      if (last && *last > *axis)
        return fail("expected the axes of dimension " + Twine(dim) +
                    " in the order of the mesh (" + mesh.str() + ")");
      last = axis;
      result[*axis] = Placement::cut(static_cast<int64_t>(dim));
    }
  }
  return result;
}

Distribution tandem::shardingOfLocal(const MeshAxes &mesh, RoleAttr role) {
  Distribution result(mesh.size());
  if (ArrayAttr sharding = role.getSharding())
    for (auto [dim, axes] : llvm::enumerate(sharding.getAsRange<ArrayAttr>()))
      for (StringAttr name : axes.getAsRange<StringAttr>())
        if (auto axis = mesh.find(name.getValue()))
          result[*axis] = Placement::cut(static_cast<int64_t>(dim));
  return result;
}
