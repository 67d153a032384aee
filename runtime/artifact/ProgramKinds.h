//===- ProgramKinds.h - what a program's name says of it ------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_PROGRAMKINDS_H
#define TANDEM_RUNTIME_ARTIFACT_PROGRAMKINDS_H

#include <string_view>

namespace tandem::artifact {

/// True of what is called with gradients, of which any may be undefined:
/// "update"; "accumulation", which adds them to their sums; and "norm", by
/// which stages of a pipeline find that of all gradients.
inline bool takesGradients(std::string_view program) {
  return program == "update" || program == "accumulation" || program == "norm";
}

/// True of what may read values that "prepare" makes of params and states.
inline bool takesPrepared(std::string_view program) {
  return program == "evaluate" || program == "step" || program == "accumulate";
}

} // namespace tandem::artifact

#endif
