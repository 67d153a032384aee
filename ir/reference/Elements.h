//===- Elements.h - the reference's numbers in memory ---------------------===//
#ifndef TANDEM_IR_REFERENCE_ELEMENTS_H
#define TANDEM_IR_REFERENCE_ELEMENTS_H

#include "ir/reference/Array.h"

namespace tandem::reference {

/// The bits of `number`, an element of type `type`. The integer that was
/// rounded up to 2^64, or 2^63 with a sign, is the largest.
llvm::APInt bitsOf(mlir::Type type, double number);
/// The number whose bits these are as an element of type `type`.
double numberOfBits(mlir::Type type, const llvm::APInt &bits);

/// Writes the numbers to `to`, dense, as elements of `type`, in as many bytes
/// each as elementBytes() says.
void encode(const Array &array, mlir::Type type, void *to);
/// The tensor of `type` that lies dense at `from`.
Array decode(const void *from, mlir::RankedTensorType type);

} // namespace tandem::reference

#endif
