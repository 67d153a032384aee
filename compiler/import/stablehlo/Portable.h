//===- Portable.h - portable artifacts of StableHLO -----------------------===//
//
// `exported.mlir_module_serialized` is MLIR's bytecode of a dialect of its own,
// `vhlo`, whose ops have versions and whose types and attributes are encoded.
// Here they are read as builtin ones, and the ops become those that text has.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_PORTABLE_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_PORTABLE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tandem::stablehlo {

/// Makes the dialect `vhlo` known to a context.
void loadPortableDialect(mlir::MLIRContext &context);

/// True for the first bytes of MLIR's bytecode.
bool isBytecode(llvm::StringRef text);

/// Turns the ops of a module that was read from bytecode into those of text.
/// Fails, and an error was given, if a function is not as it has to be.
mlir::LogicalResult convertPortable(mlir::ModuleOp module);

} // namespace tandem::stablehlo

#endif
