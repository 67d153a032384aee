//===- Anchors.cpp - the code of kernels around one op --------------------===//
#include "passes/lower/cuda/Methods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

bool lower::cuda::hasCudaLowering(OperationName op) {
  AnchorFamily family = familyOf(op);
  return family == AnchorFamily::Matmul ||
         family == AnchorFamily::Convolution || methodsOf(family);
}

/// Products share a table (Methods.h), and tell it where their factors lie.
static FailureOr<LaunchShape> emitByFamily(AnchorKernel &kernel,
                                           ThreadCode &code) {
  AnchorFamily family = familyOf(kernel.anchor->getName());
  if (family == AnchorFamily::Matmul)
    return emitMatmul(kernel, code);
  if (family == AnchorFamily::Convolution)
    return emitConvolution(kernel, code);
  AroundAnchor parts{kernel, code};
  return emitByTable(kernel.kernel, *methodsOf(family), parts, kernel.body.log);
}

FailureOr<LaunchShape>
lower::cuda::emitAnchor(KernelOp kernel, ThreadCode &code, KernelBody &body) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  if (!hasCudaLowering(anchor->getName()))
    return anchor->emitError()
           << "unsupported: '" << anchor->getName() << "' has no code for cuda";
  AnchorKernel parts(kernel, anchor, body, code);
  if (parts.companion)
    return anchor->emitError()
           << "unsupported: a kernel of both gradients of attention has no "
              "code for cuda";
  if (failed(parts.check()))
    return failure();
  FailureOr<LaunchShape> shape = emitByFamily(parts, code);
  if (failed(shape) || failed(parts.check()))
    return failure();
  return shape;
}
