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

} // namespace tandem::reference

#endif
