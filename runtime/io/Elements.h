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

/// Returns whether an element of a floating-point array is NaN or infinite.
bool hasNonFinite(const ArrayView &array);

/// Returns `array` with elements of type `to`. NaNs convert to NaN. Fails with
/// Usage, naming the first element that `to` cannot hold exactly.
Result<Array> convertExactly(const ArrayView &array, artifact::DType to);

/// Returns the scalar written as `text` ("3", "-0.5", "1e-3", "nan", "true")
/// as one element of type `dtype` with the shape []. Floating-point types round
/// to nearest; integer types accept only integers that they can hold.
Result<Array> parseScalar(std::string_view text, artifact::DType dtype);

} // namespace tandem::io

#endif
