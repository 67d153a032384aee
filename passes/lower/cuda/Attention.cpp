//===- Attention.cpp - which form of attention a kernel has ---------------===//
#include "passes/lower/cuda/Attention.h"
#include "passes/lower/cuda/AttentionTiles.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

FailureOr<LaunchShape> cuda_lower::emitAttention(AnchorKernel &kernel,
                                                 ThreadCode &code) {
  if (AttentionTiles::canEmit(AttentionIndex(kernel.anchor), code.target))
    return emitAttentionTiles(kernel, code);
  return emitAttentionRows(kernel, code);
}
