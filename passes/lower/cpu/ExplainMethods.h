//===- ExplainMethods.h - what a CPU's tables say of a kernel -------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_EXPLAINMETHODS_H
#define TANDEM_PASSES_LOWER_CPU_EXPLAINMETHODS_H

#include "passes/lower/common/ExplainMethods.h"

namespace tandem::lower::cpu {

/// Of a kernel at `plan`. Branches and loops of the program have no methods.
std::optional<lower::ExplainedKernel> explainMethods(KernelOp kernel);
/// What the rows say, whatever the kernel's `schedule` says.
lower::MethodLog considerMethods(KernelOp kernel);
/// The schedule that comes of a wish; null if its method does not compute the
/// kernel.
ScheduleAttr scheduleFor(KernelOp kernel, const lower::ScheduleOverride &wish);

} // namespace tandem::lower::cpu

#endif
