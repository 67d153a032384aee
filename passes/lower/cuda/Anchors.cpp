//===- Anchors.cpp - which CUDA emitter is for which anchor ---------------===//
#include "passes/lower/cuda/KernelEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

using AnchorEmitter = FailureOr<LaunchShape> (*)(AnchorKernel &, ThreadCode &);

/// The emitter of kernels around `op`; null if there is none.
static AnchorEmitter emitterOf(OperationName op) {
  auto isOne = [&](auto... ids) { return ((op.getTypeID() == ids) || ...); };
  if (isOne(TypeID::get<MatmulOp>()))
    return emitMatmul;
  if (isOne(TypeID::get<Conv2dOp>(), TypeID::get<Conv2dInputGradOp>(),
            TypeID::get<Conv2dFilterGradOp>()))
    return emitConvolution;
  if (isOne(TypeID::get<MaxPool2dOp>(), TypeID::get<MaxPool2dGradOp>(),
            TypeID::get<MaxPool2dTakeOp>(), TypeID::get<AvgPool2dOp>(),
            TypeID::get<AvgPool2dGradOp>()))
    return emitWindow;
  if (isOne(TypeID::get<TakeOp>(), TypeID::get<TakeGradOp>()))
    return emitIndexed;
  if (isOne(TypeID::get<AttentionForwardOp>(),
            TypeID::get<AttentionQueryGradOp>(),
            TypeID::get<AttentionKeyGradOp>()))
    return emitAttention;
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
  if (failed(parts.check()))
    return failure();
  FailureOr<LaunchShape> shape = emitter(parts, code);
  if (failed(shape) || failed(parts.check()))
    return failure();
  return shape;
}
