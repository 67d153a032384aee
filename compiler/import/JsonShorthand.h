//===- JsonShorthand.h - attributes that say less than they mean ----------===//
#ifndef TANDEM_COMPILER_IMPORT_JSONSHORTHAND_H
#define TANDEM_COMPILER_IMPORT_JSONSHORTHAND_H

#include "compiler/import/JsonReader.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/ValueRange.h"

#include <optional>

namespace tandem {

/// The list that the attribute `name` of the op `op` says in short, if it does:
/// of a `reshape` to a shape, -1 is the size that is left; of windows over two
/// dimensions, one number is that of both, and two numbers of `padding` are
/// those of the rows and the columns, at either end.
std::optional<std::vector<int64_t>> writtenOut(const JsonPlace &place,
                                               mlir::RegisteredOperationName op,
                                               llvm::StringRef name,
                                               mlir::ValueRange operands);

/// Ops that do something else in training must say whether they do: `training`
/// has no value that all who leave it out expect.
void expectTraining(const JsonPlace &node, mlir::RegisteredOperationName op);

} // namespace tandem

#endif
