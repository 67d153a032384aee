//===- Anchors.cpp - which emitter is for which anchor --------------------===//
#include "passes/lower/cpu/KernelEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::cpu;

using AnchorEmitter = FailureOr<Work> (*)(AnchorKernel &);

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

bool cpu::hasCpuLowering(OperationName op) { return emitterOf(op) != nullptr; }

FailureOr<Work> cpu::emitAnchor(KernelOp kernel, OpBuilder &b,
                                KernelBody &body) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  AnchorEmitter emitter = emitterOf(anchor->getName());
  if (!emitter)
    return anchor->emitError() << "unsupported: '" << anchor->getName()
                               << "' has no code for the cpu";
  Code code(b, kernel.getLoc());
  AnchorKernel parts(kernel, anchor, body, code);
  if (failed(parts.check()))
    return failure();
  FailureOr<Work> work = emitter(parts);
  if (failed(work) || failed(parts.check()))
    return failure();
  return work;
}
