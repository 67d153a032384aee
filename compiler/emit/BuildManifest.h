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

/// A size of a model, lowered, whose launches name kernels of the first size's
/// module (JoinKernels.h).
struct LoweredSize {
  std::string name;
  mlir::ModuleOp module;
};

/// Fills `writer` with the constants and returns the manifest. What cannot be
/// said in a manifest is a failure that names the op. `sizes` are all sizes, of
/// which the first is `module`; empty where there is one.
Result<artifact::Manifest>
buildManifest(mlir::ModuleOp module, artifact::ArtifactWriter &writer,
              llvm::ArrayRef<LoweredSize> sizes = {});

} // namespace tandem

#endif
