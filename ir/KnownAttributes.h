//===- KnownAttributes.h - no attribute that nobody reads -----------------===//
//
// An attribute of an op is one of its record, one of those that plan puts on
// kernels, or one of the dialect's (`tandem.save`). MLIR accepts any other that
// has no prefix; here it is an error.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_KNOWNATTRIBUTES_H
#define TANDEM_IR_KNOWNATTRIBUTES_H

#include "ir/Init.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Of a module between two passes of a phase: which one ran, and which are left
/// (compiler/PassSteps.h).
inline constexpr llvm::StringLiteral kWithinAttr = "tandem.within";

/// Fails unless ops called `op` have the attribute `name`, which has no prefix;
/// the error says which ones they have.
mlir::LogicalResult verifyAttributeName(EmitError error, mlir::OperationName op,
                                        llvm::StringRef name);

/// Checks the names of the attributes of a function and of all ops in it. Emits
/// every problem.
mlir::LogicalResult verifyAttributeNames(mlir::func::FuncOp func);

/// Where attributes of the dialect stand. The function of a kernel is one of
/// whatever dialect it is lowered to.
enum class AttributePlace { Module, Function, Op, KernelFunction };

/// Where `name` ("tandem.phase") stands; nothing if the dialect has none
/// called so.
std::optional<AttributePlace> placeOfAttribute(llvm::StringRef name);

/// " (did you mean 'tandem.save'?)", if that is near to `name`.
std::string suggestAttribute(llvm::StringRef name);

} // namespace tandem

#endif
