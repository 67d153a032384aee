//===- Generic.h - evaluation that follows from an op's interfaces --------===//
//
// Pointwise, view and reduction ops need no evaluation of their own: what their
// interfaces say is enough.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_GENERIC_H
#define TANDEM_IR_REFERENCE_GENERIC_H

#include "ir/Dialect.h"
#include "ir/reference/Array.h"

#include <cstdint>

namespace tandem::reference {

using Inputs = llvm::ArrayRef<const Array *>;
using Outputs = llvm::MutableArrayRef<Array>;

void evaluatePointwise(PointwiseOpInterface op, Inputs in, Outputs out);
void evaluateView(ViewOpInterface op, Inputs in, Outputs out);
void evaluateReduction(ReductionOpInterface op, Inputs in, Outputs out);

/// `number`, an element of type `from`, as one of type `to`: what tandem.cast
/// means.
double convert(mlir::Type from, mlir::Type to, double number);
/// An integer modulo 2^bits, as `type` has it; a number of any other type is as
/// it is. Of 64 bits exact up to 2^53.
double wrapped(mlir::Type type, double number);
/// x + y and x * y as elements of `type`.
double sum(mlir::Type type, double x, double y);
double product(mlir::Type type, double x, double y);
/// The low 64 bits of the integer `number`, which may be negative.
uint64_t bitsOfInteger(double number);

/// The number that the bits of `number`, an element of type `from`, are as an
/// element of type `to`, which has the same width.
double bitcastElement(mlir::Type from, mlir::Type to, double number);

} // namespace tandem::reference

#endif
