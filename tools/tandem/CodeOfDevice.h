//===- CodeOfDevice.h - which code a machine of the table would run -------===//
#ifndef TANDEM_TOOLS_TANDEM_CODEOFDEVICE_H
#define TANDEM_TOOLS_TANDEM_CODEOFDEVICE_H

#include "passes/target/Machines.h"
#include "runtime/artifact/ArtifactReader.h"

#include <vector>

namespace tandem::commands {

/// What code was made for, in the order in which it stands.
using CodeTargets = std::vector<artifact::Target>;

CodeTargets targetsOf(const artifact::ArtifactReader &reader);

/// Returns the number of the code that such a device runs: on a GPU, of what it
/// can run, the latest. Where it runs none, Usage that begins with `what`, as
/// "--estimate needs".
Result<size_t> codeFor(const DeviceRow &device, const CodeTargets &targets,
                       const std::string &what);

} // namespace tandem::commands

#endif
