//===- Anchors.cpp - which CUDA emitter is for which anchor ---------------===//
#include "passes/lower/cuda/KernelEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

using AnchorEmitter = FailureOr<LaunchShape> (*)(AnchorKernel &, ThreadCode &);

/// The emitter of kernels around `op`; null if there is none.
static AnchorEmitter emitterOf(OperationName op) {
  switch (familyOf(op)) {
  case AnchorFamily::Matmul:
    return emitMatmul;
  case AnchorFamily::Convolution:
    return emitConvolution;
  case AnchorFamily::Window:
    return emitWindow;
  case AnchorFamily::Indexed:
    return emitIndexed;
  case AnchorFamily::Lines:
    return emitLines;
  case AnchorFamily::Attention:
    return emitAttention;
  case AnchorFamily::None:
    return nullptr;
  }
  return nullptr;
}

bool cuda_lower::hasCudaLowering(OperationName op) {
  return emitterOf(op) != nullptr;
}

FailureOr<LaunchShape> cuda_lower::emitAnchor(KernelOp kernel, ThreadCode &code,
                                              KernelBody &body) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  AnchorEmitter emitter = emitterOf(anchor->getName());
  if (!emitter)
    return anchor->emitError()
           << "unsupported: '" << anchor->getName() << "' has no code for cuda";
  AnchorKernel parts(kernel, anchor, body, code);
  if (parts.companion)
    return anchor->emitError()
           << "unsupported: a kernel of both gradients of attention has no "
              "code for cuda";
  if (failed(parts.check()))
    return failure();
  FailureOr<LaunchShape> shape = emitter(parts, code);
  if (failed(shape) || failed(parts.check()))
    return failure();
  return shape;
}
