//===- GraphDigest.h - is it the same model? ------------------------------===//
//
// A digest of a captured graph, which an artifact carries and checkpoints
// repeat: training goes on with the model that it began with. It is of the ops,
// their types and attributes, the roles, and which output is the loss; not of
// how the graph is compiled (target, optimizer, what is saved), nor of initial
// values, places in files or the module's name.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_GRAPHDIGEST_H
#define TANDEM_COMPILER_CAPTURE_GRAPHDIGEST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tandem {

/// Returns the SHA-256 of a module at `capture`, in hexadecimal digits.
std::string graphDigest(mlir::ModuleOp module);

/// Returns that of all that modules after `lower` say but for the code of
/// kernels, of which there is less where a cache has some.
std::string digestOf(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules);

} // namespace tandem

#endif
