//===- ChooseMethod.h - the method of a kernel that is being planned ------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_CHOOSEMETHOD_H
#define TANDEM_PASSES_LOWER_CUDA_CHOOSEMETHOD_H

#include "passes/lower/common/Method.h"

namespace tandem::lower::cuda {

/// The method that a kernel's table has for it, or that its `schedule` names,
/// and the scratch of a launch; nothing where there is no code to write. Fails
/// with a diagnostic.
mlir::FailureOr<ChosenMethod> chooseMethodOf(KernelOp kernel);

} // namespace tandem::lower::cuda

#endif
