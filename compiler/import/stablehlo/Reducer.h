//===- Reducer.h - what the region of a reduction computes ----------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_REDUCER_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_REDUCER_H

#include "compiler/import/stablehlo/Node.h"

namespace tandem::stablehlo {

enum class Reducer { Add, Mul, Max, Min, And, Or, Xor, Second, None };

/// What a region makes of its two arguments, if that is one op of them, or the
/// second one; None otherwise.
Reducer reducerOf(mlir::Region &region);

/// `op(a, b)` of the dialect: null, and an error was given, if there is none.
mlir::Value combine(Node &node, Reducer reducer, mlir::Value a, mlir::Value b);

/// True if `value` is a constant that changes nothing.
bool isNeutral(Node &node, Reducer reducer, mlir::Value value);

} // namespace tandem::stablehlo

#endif
