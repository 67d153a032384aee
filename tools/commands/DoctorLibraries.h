//===- DoctorLibraries.h - libraries for GPUs -----------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DOCTORLIBRARIES_H
#define TANDEM_TOOLS_COMMANDS_DOCTORLIBRARIES_H

#include "tools/commands/Doctor.h"

namespace tandem::commands {

/// Adds cuBLASLt and cuDNN to doctor's findings.
void checkLibraries(std::vector<Finding> &findings);

} // namespace tandem::commands

#endif
