//===- ChooseMethod.h - the method of a kernel that is being planned ------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CHOOSEMETHOD_H
#define TANDEM_PASSES_LOWER_CPU_CHOOSEMETHOD_H

#include "passes/lower/common/Method.h"

namespace tandem::lower::cpu {

/// The method that a kernel's table has for it, or that its `schedule` names,
/// and the scratch of each thread. Of a branch or a loop the scratch alone,
/// which is the memory of its regions. Fails with a diagnostic.
mlir::FailureOr<ChosenMethod> chooseMethodOf(KernelOp kernel);

} // namespace tandem::lower::cpu

#endif
