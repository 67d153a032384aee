//===- Narrow.h - types of few bits, whose numbers wider ones hold --------===//
//
// The dialect has no integers of 4 and 2 bits, no floats of 4 bits, and of the
// floats of 8 bits not those without a negative zero. Their numbers are all
// numbers of another type, the carrier: i8, ui8 or f32. A value of such a type
// is one of its carrier, of which Datum::kind says what it stands for; inputs
// and outputs of programs have the carrier's type. The operators that convert
// know them, and those that move elements; no others do.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_NARROW_H
#define TANDEM_COMPILER_IMPORT_ONNX_NARROW_H

#include "compiler/import/onnx/Translator.h"

namespace tandem::onnx {

/// The same numbers as elements of the carrier; others as they are.
TensorPtr carried(const TensorPtr &data);
/// What data of the file stands for: of narrow types the carrier's, and kind.
Datum datumOf(const TensorPtr &data);

/// `x`, of a type of the dialect or a carrier, converted to a narrow type: a
/// value of its carrier. Integers keep their low bits; floats round to nearest,
/// ties to even, and what is too large is the largest number, or NaN. Null
/// after a mistake.
Expr narrowed(Node &node, const Expr &x, ElementKind kind, bool saturates);
/// `x` of a carrier within what a narrow integer type holds.
Expr clampedTo(const Expr &x, ElementKind kind);

} // namespace tandem::onnx

#endif
