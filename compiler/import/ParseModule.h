//===- ParseModule.h - a module from a file that may be malformed ---------===//
#ifndef TANDEM_COMPILER_IMPORT_PARSEMODULE_H
#define TANDEM_COMPILER_IMPORT_PARSEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tandem {

/// The module of MLIR's `text`, or of MLIR's bytecode, verified; null if it is
/// malformed, of which errors are emitted. A count in bytecode that no memory
/// holds ends the process with exit code 1 and an error that names `path`:
/// MLIR's reader does not return from it.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef text,
                                              const std::string &path,
                                              mlir::MLIRContext &context);

} // namespace tandem

#endif
