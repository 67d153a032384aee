//===- LibraryCall.h - a launch as one call of a vendor's library ---------===//
//
// What a launch computes, where a library (cuBLASLt, cuDNN) can compute all of
// it: the runtime may call the library in the kernel's place. Positions are in
// the launch's `buffers`, sizes, strides and leading dimensions in elements.
//
// "matmul": y[b, i, j] = sum over k of lhs[b, i, k] rhs[b, k, j], plus bias[j],
// and then max(., 0) with `relu`. Row i of batch b of a matrix begins at
// b * batchStride + i * ld; a transposed matrix is stored with its two
// dimensions exchanged. y's rows are not transposed.
//
// "conv2d", "conv2d_input_grad", "conv2d_filter_grad": the ops of these names
// over dense tensors x [N, C, H, W], w [O, C / groups, KH, KW], y [N, O, OH,
// OW], with as much padding below and right as above and left.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_LIBRARYCALL_H
#define TANDEM_RUNTIME_ARTIFACT_LIBRARYCALL_H

#include "runtime/artifact/DType.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::artifact {

/// No size, stride or leading dimension is larger.
inline constexpr int64_t maxLibrarySize = 0x7fffffff;

struct LibraryCall {
  std::string op;
  DType dtype = DType::F32; ///< of all operands; f16 and bf16 are added in f32
  bool tf32 = false;        ///< factors of f32 may be rounded to tf32
  /// Positions of lhs, rhs, y and, if there is one, bias; or of x, w, y, where
  /// the gradient of one of these is in its place.
  std::vector<int64_t> operands;
  /// batch, m, n, k; or N, C, H, W, O, KH, KW, OH, OW, groups.
  std::vector<int64_t> sizes;
  /// matmul: of lhs, rhs and y; of lhs and rhs 0 or 1.
  std::vector<int64_t> lds = {}, batchStrides = {}, transposes = {};
  bool relu = false;
  /// Convolutions: vertical, horizontal.
  std::vector<int64_t> strides = {}, padding = {}, dilation = {};
  /// Which of the program's buffers the call may use as it likes meanwhile.
  std::optional<int64_t> workspace = std::nullopt;
  bool operator==(const LibraryCall &) const = default;

  bool isMatmul() const { return op == "matmul"; }
};

/// Names of the sizes of a convolution in `LibraryCall::sizes`.
enum ConvolutionSize : size_t { N, C, H, W, O, KH, KW, OH, OW, Groups, Sizes };

} // namespace tandem::artifact

#endif
