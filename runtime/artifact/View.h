//===- View.h - views of a storage, and where their elements lie ----------===//
//
// A view chain says how one value lies over the elements of another: the view
// ops of the IR with their attributes, first one first. `applyViews` follows a
// chain over a layout of any strides, as the tensor of a call may have them,
// without touching an element and without allocating. The same function gives
// the type of a chain, so that a manifest and a call cannot disagree on it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_VIEW_H
#define TANDEM_RUNTIME_ARTIFACT_VIEW_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/Status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::artifact {

/// No tensor has more dimensions.
inline constexpr int maxManifestRank = 16;
/// No tensor, arena or scratch is larger than this.
inline constexpr int64_t maxBytes = int64_t(1) << 48;

/// Returns the bytes of a dense tensor, or nothing if there is no such tensor:
/// a size is negative, the rank too large, or there are more than `maxBytes`.
/// What a file says of a type goes through here before anything is computed
/// from it.
std::optional<int64_t> tensorBytes(DType dtype, std::span<const int64_t> shape);

/// Returns "[2, 3]"; of a list that is too long for a shape its beginning.
std::string toText(std::span<const int64_t> sizes);

/// One view op. Each uses only the fields named with it.
struct View {
  enum class Op : uint8_t {
    Reshape,   ///< `shape`
    Permute,   ///< `dims`: result dimension i is operand dimension dims[i]
    Slice,     ///< `starts`, `limits`, `strides`, one for each dimension
    Broadcast, ///< `shape`; `dims`: the result dimension of each operand one
    AsStrided, ///< `shape`, `strides`, `offset` in the row-major operand
    Bitcast,   ///< `dtype`, of the same width
    Detach     ///< nothing: the same elements, not differentiated through
  };
  Op op = Op::Detach;
  std::vector<int64_t> shape, dims, starts, limits, strides;
  int64_t offset = 0;
  DType dtype = DType::F32;

  static View reshape(std::vector<int64_t> shape) {
    View view = make(Op::Reshape);
    view.shape = std::move(shape);
    return view;
  }
  static View permute(std::vector<int64_t> permutation) {
    View view = make(Op::Permute);
    view.dims = std::move(permutation);
    return view;
  }
  static View slice(std::vector<int64_t> starts, std::vector<int64_t> limits,
                    std::vector<int64_t> strides) {
    View view = make(Op::Slice);
    view.starts = std::move(starts);
    view.limits = std::move(limits);
    view.strides = std::move(strides);
    return view;
  }
  static View broadcast(std::vector<int64_t> shape, std::vector<int64_t> dims) {
    View view = make(Op::Broadcast);
    view.shape = std::move(shape);
    view.dims = std::move(dims);
    return view;
  }
  static View asStrided(std::vector<int64_t> sizes,
                        std::vector<int64_t> strides, int64_t offset) {
    View view = make(Op::AsStrided);
    view.shape = std::move(sizes);
    view.strides = std::move(strides);
    view.offset = offset;
    return view;
  }
  static View bitcast(DType dtype) {
    View view = make(Op::Bitcast);
    view.dtype = dtype;
    return view;
  }
  static View detach() { return make(Op::Detach); }

  bool operator==(const View &) const = default;

private:
  static View make(Op op) {
    View view;
    view.op = op;
    return view;
  }
};

/// Returns "reshape", "permute", ...
std::string_view spelling(View::Op op);
std::optional<View::Op> parseViewOp(std::string_view name);

/// Where the elements of a tensor lie: element (i, j, ...) is `offset + i *
/// strides[0] + j * strides[1] + ...` elements after the first byte of the
/// tensor that the layout began with.
struct Layout {
  DType dtype = DType::F32;
  int rank = 0;
  std::array<int64_t, maxManifestRank> sizes{}, steps{};
  int64_t offset = 0;

  /// Returns the layout of a tensor; row-major if `strides` is empty. The type
  /// is one that `tensorBytes` takes, and strides reach at most `maxBytes`.
  static Layout of(DType dtype, std::span<const int64_t> shape,
                   std::span<const int64_t> strides = {});
  std::span<const int64_t> shape() const {
    return {sizes.data(), static_cast<size_t>(rank)};
  }
  std::span<const int64_t> strides() const {
    return {steps.data(), static_cast<size_t>(rank)};
  }
};

/// Moves `layout` through the chain. Fails, naming the op, if a view does not
/// fit the shape before it, makes a type that no tensor has, or cannot be had
/// without a copy over the strides that come in; row-major strides allow every
/// chain of views whose shapes fit. After each view the layout's type is one
/// that `tensorBytes` takes; where it has no elements it is row-major.
Status applyViews(std::span<const View> chain, Layout &layout);

} // namespace tandem::artifact

#endif
