//===- BuiltinKernels.h - the layer's own kernels -------------------------===//
//
// What the device layer needs beside the driver's copies and fills: sums of two
// arrays, fills of 8-byte elements, and copies between strided elements. They
// are PTX for sm_80 and later, written by hand; the driver compiles them when a
// device is opened. All walk a grid-stride loop, so any grid does.
//
// A driver that stands in for the real one knows this text by `builtinMark`,
// its first line, and has functions of the same names and parameters.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_BUILTINKERNELS_H
#define TANDEM_CUDA_BUILTINKERNELS_H

#include "runtime/artifact/DType.h"

#include <cstdint>
#include <string>

namespace tandem::cuda {

/// The first line of the text.
inline constexpr char builtinMark[] = "// tandem built-in kernels";

/// Parameters of `tandem_add_f64`, `_f32`, `_f16`, `_bf16`:
/// to[i] = x[i] + y[i], rounded once to nearest even. `to` may be x or y.
struct AddParameters {
  uint64_t to = 0, x = 0, y = 0; ///< device addresses
  uint64_t elements = 0;
};

/// Parameters of `tandem_fill_b64`: to[i] = bits.
struct FillParameters {
  uint64_t to = 0, bits = 0, elements = 0;
};

/// The largest rank of one strided copy.
inline constexpr int stridedRank = 8;

/// Sizes in elements, strides in bytes, innermost dimension first; what is
/// beyond the rank has size 1 and strides 0.
struct StridedLayout {
  int64_t sizes[stridedRank] = {1, 1, 1, 1, 1, 1, 1, 1};
  int64_t toStrides[stridedRank] = {}, fromStrides[stridedRank] = {};
};

/// Parameters of `tandem_copy_b8`, `_b16`, `_b32`, `_b64`; each of the four is
/// one kernel parameter, the layout by value.
struct CopyParameters {
  uint64_t to = 0, from = 0;
  uint64_t elements = 0; ///< the product of the sizes
  StridedLayout layout;
};

/// The threads of a block of each of them.
inline constexpr unsigned builtinBlock = 256;

/// Returns the text, zero-terminated as the driver wants it.
const std::string &builtinKernels();

/// Returns the name of the kernel that adds elements of `dtype`, or null if
/// there is none: integers.
const char *addKernelName(artifact::DType dtype);

} // namespace tandem::cuda

#endif
