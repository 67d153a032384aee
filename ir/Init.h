//===- Init.h - the initial values of params and states -------------------===//
//
// The property `init` of a role is a dictionary of a `kind` and the numbers of
// that kind, each of which must be there:
//
//   constant {value}, uniform {low, high}, normal {mean, std},
//   counter {stream, scale}, seed {}
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_INIT_H
#define TANDEM_IR_INIT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

namespace tandem {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Checks the `init` of `role` ('param "w"'): its kind, its keys, and that the
/// numbers make a distribution. Emits every problem.
mlir::LogicalResult verifyInit(EmitError error, llvm::StringRef role,
                               mlir::Attribute init);

/// Checks that values of the element type can begin like that; `init` is one
/// that verifyInit accepts.
mlir::LogicalResult verifyInitOfType(EmitError error, llvm::StringRef role,
                                     mlir::DictionaryAttr init,
                                     mlir::Type element);

} // namespace tandem

#endif
