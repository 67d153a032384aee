//===- Npy.h - NumPy's array file -----------------------------------------===//
//
// Reads versions 1, 2 and 3, C and Fortran order, both byte orders, and every
// element type that Tandem has; the others are named in an Unsupported. Writes
// version 1, C order. Any bytes give an Array or one Status; nothing is
// allocated that the file's size does not justify.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_NPY_H
#define TANDEM_RUNTIME_IO_NPY_H

#include "runtime/io/Array.h"

namespace tandem::io {

/// Returns the array that the bytes of an .npy file hold.
Result<Array> parseNpy(Bytes file);

/// What stands before the elements of an .npy file.
struct NpyHeader {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  bool isSwapped = false;     ///< elements have their highest byte first
  bool isColumnMajor = false; ///< the first dimension has neighbours
  size_t bytes = 0;           ///< of the header: here the elements begin
};

/// Reads the header of a file of `fileBytes` bytes, of which `begin` are the
/// first, and checks that the elements are as many bytes as it says.
Result<NpyHeader> parseNpyHeader(Bytes begin, uint64_t fileBytes);

/// Returns whether NumPy has the type: it has no bf16 and no float of 8 bits.
constexpr bool npyHas(artifact::DType dtype) {
  return dtype != artifact::DType::BF16 && dtype < artifact::DType::F8E4M3FN;
}

/// Returns the bytes that stand before the elements in an .npy file. `dtype` is
/// one that NumPy has.
Result<std::vector<std::byte>> npyHeader(artifact::DType dtype,
                                         std::span<const int64_t> shape);

/// Reads the file `path`; messages begin with it.
Result<Array> readNpy(const std::string &path);

/// Replaces the file `path`. Floats that NumPy does not have are written as
/// f32, which holds their values exactly.
Status writeNpy(const std::string &path, const ArrayView &array);

} // namespace tandem::io

#endif
