//===- Precision.h - --amp, --fp8 and --precision -------------------------===//
//
// What they say stands in the module (ir/Autocast.h) from its first phase on;
// passes/precision acts on it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_PRECISION_H
#define TANDEM_COMPILER_PRECISION_H

#include "compiler/Compile.h"

namespace tandem {

/// Checks `options.amp`.
Status checkAmp(const CompileOptions &options);

/// Checks an element of `options.precision`: `backward:TYPE` or `REGEX:TYPE`.
Status checkPrecisionRule(std::string_view rule);

/// Puts them into a module before `joint`. An expression that matches the path
/// of no op that computes floats is an error; of several that match an op, the
/// last one counts.
Status stampPrecision(mlir::ModuleOp module, const CompileOptions &options);

} // namespace tandem

#endif
