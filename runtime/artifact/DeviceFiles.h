//===- DeviceFiles.h - files that never end -------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_DEVICEFILES_H
#define TANDEM_RUNTIME_ARTIFACT_DEVICEFILES_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::artifact {

/// Fails if `path` is a device, as /dev/zero: reading one to its end takes all
/// memory. Pipes end, and what is not there is for others to say.
Status expectNoDevice(const std::string &path);

} // namespace tandem::artifact

#endif
