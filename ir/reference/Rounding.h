//===- Rounding.h - what the reference rounds, and how not to -------------===//
//
// The reference computes in double. A value of f16 or bf16 is rounded when it
// is made, as by every kernel that makes one, and arguments of programs too.
// Other floats keep the digits of double, but for those of 8 bits, which have
// too few numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_ROUNDING_H
#define TANDEM_IR_REFERENCE_ROUNDING_H

#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::reference {

/// `number` rounded to a float type: to the nearest, ties to even.
double roundedTo(const llvm::fltSemantics &type, double number);
/// Rounds the elements of a value of type f16 or bf16; leaves those of others.
void roundToType(mlir::Type element, Array &array);

/// As evaluate() (Evaluator.h), but f16 and bf16 have all digits: for
/// differences, which need functions without steps. `computed` as in Call.
mlir::FailureOr<llvm::SmallVector<Array>> evaluateUnrounded(
    mlir::func::FuncOp func, llvm::ArrayRef<Array> arguments,
    std::function<void(mlir::Operation *, llvm::MutableArrayRef<Array>)>
        computed = {});

} // namespace tandem::reference

#endif
