//===- AttentionGradient.h - the gradients of attention -------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONGRADIENT_H
#define TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONGRADIENT_H

#include "passes/lower/cpu/KernelEmitter.h"

namespace tandem::lower::cpu {

/// Of one of the ops that are gradients of attention_forward.
mlir::FailureOr<Work> emitAttentionGradient(AnchorKernel &kernel);
int64_t scratchOfAttentionGradient(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
