//===- Attention.cpp - attention and its gradients for CUDA ---------------===//
#include "passes/lower/cuda/attention/Attention.h"
#include "passes/lower/cuda/Methods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

FailureOr<LaunchShape> cuda_lower::emitAttention(AnchorKernel &kernel,
                                                 ThreadCode &code) {
  AttentionKernel parts{kernel, code};
  return emitByTable(kernel.kernel, attentionMethods(), parts, kernel.body.log);
}
