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
#include <string_view>
#include <vector>

namespace tandem::artifact {

/// No tensor has more dimensions.
inline constexpr int maxManifestRank = 16;

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

  /// Returns the layout of a tensor; row-major if `strides` is empty. Both have
  /// at most `maxManifestRank` entries.
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
/// fit the shape before it, or cannot be had without a copy over the strides
/// that come in; row-major strides allow every chain of views whose shapes fit.
Status applyViews(std::span<const View> chain, Layout &layout);

} // namespace tandem::artifact

#endif
