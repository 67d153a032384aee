//===- Import.h - from a StableHLO module to a captured module ------------===//
//
// The way in for JAX and whatever else writes StableHLO: a module becomes one
// of phase `capture`. What is wrong or not supported is listed completely, each
// at its location.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_IMPORT_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_IMPORT_H

#include "compiler/import/Import.h"
#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace tandem::stablehlo {

/// True if `text` (or bytecode) is a module of StableHLO's dialects, and none
/// of Tandem's.
bool isModule(llvm::StringRef text);

/// True for a file that is read as what jax.export serializes ("f.bin").
bool isExportedFile(llvm::StringRef path);

/// Reads one of those: its `bytes`, as importModule does.
mlir::OwningOpRef<mlir::ModuleOp> importExported(llvm::StringRef bytes,
                                                 const std::string &path,
                                                 mlir::MLIRContext &context,
                                                 Status &status,
                                                 const ImportOptions &options);

/// Reads one; `path` is for messages. Null if that failed: then the context's
/// diagnostics, or `status`, say why. `platform` is what an argument gets that
/// chooses between platforms.
mlir::OwningOpRef<mlir::ModuleOp>
importModule(llvm::StringRef text, const std::string &path,
             mlir::MLIRContext &context, Status &status,
             const ImportOptions &options,
             std::optional<int64_t> platform = std::nullopt);

} // namespace tandem::stablehlo

#endif
