//===- ProgramKinds.h - what a program's name says of it ------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_PROGRAMKINDS_H
#define TANDEM_RUNTIME_ARTIFACT_PROGRAMKINDS_H

#include <string_view>

namespace tandem::artifact {

/// True of what is called with gradients, of which any may be undefined:
/// "update", and "accumulation", which adds them to their sums.
inline bool takesGradients(std::string_view program) {
  return program == "update" || program == "accumulation";
}

} // namespace tandem::artifact

#endif
