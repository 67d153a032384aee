//===- JsonGraph.h - models as JSON graphs --------------------------------===//
//
// The schema is in docs/JSON_GRAPH.md. Every error names its place by a JSON
// pointer and says what was expected; all errors of a graph are in one status.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_JSONGRAPH_H
#define TANDEM_COMPILER_IMPORT_JSONGRAPH_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tandem {

/// Returns the captured module of the graph in `text`; `path` is for
/// locations. Null if that failed: then `status` says why.
mlir::OwningOpRef<mlir::ModuleOp> importJsonGraph(llvm::StringRef text,
                                                  const std::string &path,
                                                  mlir::MLIRContext &context,
                                                  Status &status);

} // namespace tandem

#endif
