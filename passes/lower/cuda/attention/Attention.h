//===- Attention.h - CUDA code of attention and its gradients -------------===//
//
// Three forms: tiles of rows by tensor cores, by warpgroup or by warp, for what
// these take, and a warp for each row, for everything.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTION_H
#define TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTION_H

#include "passes/lower/common/AttentionIndex.h"
#include "passes/lower/cuda/KernelEmitter.h"

namespace tandem::lower::cuda {

LaunchShape emitAttentionRows(AnchorKernel &kernel, ThreadCode &code);
LaunchShape emitAttentionTiles(AnchorKernel &kernel, ThreadCode &code);
LaunchShape emitAttentionWgmma(AnchorKernel &kernel, ThreadCode &code);

} // namespace tandem::lower::cuda

#endif
