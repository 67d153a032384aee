//===- BuildManifest.h - the manifest of a lowered module -----------------===//
//
// The manifest is a copy of what the module says: roles, buffers, launches.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_BUILDMANIFEST_H
#define TANDEM_COMPILER_EMIT_BUILDMANIFEST_H

#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/artifact/Manifest.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Fills `writer` with the constants and returns the manifest. What cannot be
/// said in a manifest is a failure that names the op.
Result<artifact::Manifest> buildManifest(mlir::ModuleOp module,
                                         artifact::ArtifactWriter &writer);

} // namespace tandem

#endif
