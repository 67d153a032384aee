//===- Anchors.cpp - which emitter is for which anchor --------------------===//
#include "passes/lower/cpu/KernelEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::cpu;

using AnchorEmitter = FailureOr<Work> (*)(AnchorKernel &);

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
