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

namespace tandem::reference {

using Inputs = llvm::ArrayRef<const Array *>;
using Outputs = llvm::MutableArrayRef<Array>;

void evaluatePointwise(PointwiseOpInterface op, Inputs in, Outputs out);
void evaluateView(ViewOpInterface op, Inputs in, Outputs out);
void evaluateReduction(ReductionOpInterface op, Inputs in, Outputs out);

/// The number that the bits of `number`, an element of type `from`, are as an
/// element of type `to`, which has the same width.
double bitcastElement(mlir::Type from, mlir::Type to, double number);

} // namespace tandem::reference

#endif
