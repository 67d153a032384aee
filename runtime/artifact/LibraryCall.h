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

// The members are the rows of Manifest.def.
#define FIELD(type, member, initial, ...) type member = initial;
#define FLAT(type, member, meaning)
#define MANIFEST_HAS(name) MANIFEST_HAS_##name
struct LibraryCall {
#define MANIFEST_HAS_LibraryCall 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_LibraryCall
  bool operator==(const LibraryCall &) const = default;

  bool isMatmul() const { return op == "matmul"; }
};
#undef FIELD
#undef FLAT
#undef MANIFEST_HAS

/// Names of the sizes of a convolution in `LibraryCall::sizes`.
enum ConvolutionSize : size_t { N, C, H, W, O, KH, KW, OH, OW, Groups, Sizes };

} // namespace tandem::artifact

#endif
