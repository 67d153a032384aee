//===- FormatVersion.h - which artifacts this runtime reads ---------------===//
//
// One number says how an artifact is written: its bytes (ArtifactFormat.h) and
// the fields of its manifest (Manifest.def). It stands in the file's header
// and, as "format", in each manifest. It is raised by each change after which a
// runtime that was released before cannot read what is written, or would read
// it wrongly: a new field, another meaning, another layout of the file.
//
//   2  0.2.0: the first number that means something. The fields of format 1
//      changed while its number stayed; what 0.1.0 wrote is refused.
//
// A new number is one more line here, `since` in the rows of Manifest.def, and
// an artifact in tests/data/golden (tools/golden-artifact). `oldestFormat` is
// raised only where an old one cannot be read by its fields' defaults
// (docs/rationale/versions.md).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_FORMATVERSION_H
#define TANDEM_RUNTIME_ARTIFACT_FORMATVERSION_H

#include "runtime/artifact/Status.h"

#include <cstdint>

namespace tandem::artifact {

inline constexpr int64_t formatVersion = 2; ///< what is written
inline constexpr int64_t oldestFormat = 2;  ///< what is read, with all between

/// Returns success if this runtime reads the format, or Unsupported with all
/// numbers: "`what` has format 3, but this runtime (0.2.0) reads 2 to 2".
Status checkFormat(const char *what, int64_t format);

} // namespace tandem::artifact

#endif
