//===- Doctor.h - what doctor says of the libraries for GPUs --------------===//
#ifndef TANDEM_CUDA_DOCTOR_H
#define TANDEM_CUDA_DOCTOR_H

#include "runtime/cli/Doctor.h"

namespace tandem::cuda {

/// Adds cuBLASLt and cuDNN to doctor's findings.
void checkLibraries(std::vector<commands::Finding> &findings);

} // namespace tandem::cuda

#endif
