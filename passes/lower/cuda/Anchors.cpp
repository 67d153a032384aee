//===- Anchors.cpp - which CUDA emitter is for which anchor ---------------===//
#include "passes/lower/cuda/KernelEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

using AnchorEmitter = FailureOr<LaunchShape> (*)(AnchorKernel &, ThreadCode &);

namespace {
struct Family {
  AnchorFamily family;
  AnchorEmitter emit;
};
} // namespace

/// Products, convolutions and attention have several methods (Methods.h).
static constexpr Family families[] = {
    {AnchorFamily::Matmul, emitMatmul},
    {AnchorFamily::Convolution, emitConvolution},
    {AnchorFamily::Window, emitWindow},
    {AnchorFamily::Indexed, emitIndexed},
    {AnchorFamily::Lines, emitLines},
    {AnchorFamily::Attention, emitAttention}};

/// The emitter of kernels around `op`; null if there is none.
static AnchorEmitter emitterOf(OperationName op) {
  AnchorFamily wanted = familyOf(op);
  for (const Family &family : families)
    if (family.family == wanted)
      return family.emit;
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
