//===- CudaChecks.h - what doctor says of the libraries for GPUs ----------===//
#ifndef TANDEM_TOOLS_DOCTOR_CUDACHECKS_H
#define TANDEM_TOOLS_DOCTOR_CUDACHECKS_H

#include "runtime/cli/Doctor.h"

namespace tandem::commands {

/// Adds cuBLASLt and cuDNN.
void checkCudaLibraries(std::vector<Finding> &findings);

} // namespace tandem::commands

#endif
