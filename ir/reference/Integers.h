//===- Integers.h - what depends on the type of the numbers ---------------===//
//
// Elements of a type (or of a tensor type's elements) as doubles. Results are
// what an integer type holds: modulo 2^bits. Integers beyond 2^53 have lost
// their last bits.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_INTEGERS_H
#define TANDEM_IR_REFERENCE_INTEGERS_H

#include "mlir/IR/Types.h"

namespace tandem::reference {

double quotient(mlir::Type type, double x, double y);
double remainder(mlir::Type type, double x, double y);
double power(mlir::Type type, double x, double y);
double bitAnd(mlir::Type type, double x, double y);
double bitOr(mlir::Type type, double x, double y);
double bitXor(mlir::Type type, double x, double y);
double bitNot(mlir::Type type, double x);
double shiftLeft(mlir::Type type, double x, double y);
double shiftRight(mlir::Type type, double x, double y);

} // namespace tandem::reference

#endif
