//===- Elements.h - reading and converting elements of any type -----------===//
//
// Elements as doubles for summaries and metrics, and the one conversion between
// element types: exact, or an error that names the element. Labels saved as
// i64 become i32 and bytes become f32 by it; a value that the other type cannot
// hold is never rounded silently.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_ELEMENTS_H
#define TANDEM_RUNTIME_IO_ELEMENTS_H

#include "runtime/io/Array.h"

namespace tandem::io {

/// Returns element `index` as a double: exact for all types but i64 and
/// u64, whose values beyond 2^53 are rounded.
double elementAsDouble(artifact::DType dtype, const std::byte *data,
                       int64_t index);

/// Returns element `index` of an integer or bool array; the largest int64_t for
/// what is larger.
int64_t elementAsInteger(artifact::DType dtype, const std::byte *data,
                         int64_t index);

/// Returns the digits of element `index` of an integer or bool array.
std::string integerText(artifact::DType dtype, const std::byte *data,
                        int64_t index);

using artifact::isInteger;

/// Returns the index of the first element of a floating-point array that is NaN
/// or infinite.
std::optional<int64_t> firstNonFinite(const ArrayView &array);
/// The same of NaN alone.
std::optional<int64_t> firstNaN(const ArrayView &array);

/// Returns the index of the first element that `to` cannot hold exactly. NaN is
/// held by all floating-point types.
std::optional<int64_t> firstInexact(const ArrayView &array, artifact::DType to);

/// Returns the shortest text that reads back as the element, in its own type.
std::string elementText(const ArrayView &array, int64_t index);
/// Returns the position of element `index` as "[i, j]".
std::string positionText(std::span<const int64_t> shape, int64_t index);

/// Returns `array` with elements of type `to`. NaNs convert to NaN. Fails with
/// Usage, naming the first element that `to` cannot hold exactly.
Result<Array> convertExactly(const ArrayView &array, artifact::DType to);

/// Returns the scalar written as `text` ("3", "-0.5", "1e-3", "nan", "true")
/// as one element of type `dtype` with the shape []. Floating-point types round
/// to nearest; integer types accept only integers that they can hold.
Result<Array> parseScalar(std::string_view text, artifact::DType dtype);

} // namespace tandem::io

#endif
