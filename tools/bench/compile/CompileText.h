//===- CompileText.h - from a program's text to an artifact in memory -----===//
//
// What measuring programs share: a module in the dialect, compiled in this
// process as `tandem compile` does, and ready to be loaded, several times if
// several numbers of threads are compared.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_COMPILE_COMPILETEXT_H
#define TANDEM_TOOLS_BENCH_COMPILE_COMPILETEXT_H

#include "compiler/Compile.h"
#include "runtime/artifact/ArtifactReader.h"

namespace tandem::bench {

/// The bytes of an artifact.
using Artifact = std::string;

/// Compiles the text of a module; the status has the diagnostics.
Result<Artifact> compileText(const std::string &text,
                             const CompileOptions &options);

/// Reads the artifact's bytes, to be loaded as a model.
Result<artifact::ArtifactReader> read(const Artifact &bytes);

} // namespace tandem::bench

#endif
