//===- Windows.h - the windows of convolution and pooling in n dimensions -===//
//
// The ops of the dialect have windows over two dimensions; functions make one,
// two and three of them. The attributes are those of the ops: `strides` and
// `dilation` have an entry for each dimension (or one for all), `padding` one
// for each dimension, or two, before and after ([top, bottom, left, right]).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_WINDOWS_H
#define TANDEM_COMPILER_FUNCTIONS_WINDOWS_H

#include "compiler/functions/Call.h"

namespace tandem {

/// The windows along one dimension.
struct WindowLine {
  int64_t input = 1, kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0; ///< padding
  int64_t output = 1;            ///< windows
  /// What the last window sees beyond the padding (ceil_mode).
  int64_t extra = 0;

  int64_t span() const { return (kernel - 1) * dilation + 1; }
  /// Where window `out` sees its tap in the input; may be outside.
  int64_t at(int64_t out, int64_t tap) const {
    return out * stride - before + tap * dilation;
  }
};
using WindowLines = llvm::SmallVector<WindowLine, 3>;

namespace windows {

/// Entries of an attribute for `count` dimensions, each at least `least` and
/// less than 2^31; nothing after a mistake.
std::optional<llvm::SmallVector<int64_t>>
entries(Call &call, llvm::StringRef name, size_t count,
        llvm::ArrayRef<int64_t> otherwise, int64_t least);

/// [before, after] for each of `count` dimensions.
std::optional<llvm::SmallVector<int64_t>> padding(Call &call, size_t count,
                                                  int64_t least = 0);

/// The windows of `kernel` over `input`; `strides` are absent: 1, or, of
/// pooling, the kernel's sizes.
std::optional<WindowLines> lines(Call &call, llvm::ArrayRef<int64_t> input,
                                 llvm::ArrayRef<int64_t> kernel,
                                 bool isPooling);

/// The attributes of an op with windows over two dimensions.
llvm::SmallVector<mlir::NamedAttribute>
attributes(Call &call, const WindowLine &height, const WindowLine &width);

/// `x` with `before` and `after` elements of `fill` around each dimension and
/// `between` between neighbours; null after a mistake.
Expr pad(Call &call, const Expr &x, llvm::ArrayRef<int64_t> before,
         llvm::ArrayRef<int64_t> after, double fill,
         llvm::ArrayRef<int64_t> between = {});
/// Elements starts, starts + strides, ... below limits.
Expr slice(Call &call, const Expr &x, llvm::ArrayRef<int64_t> starts,
           llvm::ArrayRef<int64_t> limits,
           llvm::ArrayRef<int64_t> strides = {});
/// The same along one dimension.
Expr slice(Call &call, const Expr &x, int64_t dim, int64_t start, int64_t limit,
           int64_t stride = 1);

} // namespace windows
} // namespace tandem

#endif
