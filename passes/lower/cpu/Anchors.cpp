//===- Anchors.cpp - the code of kernels around one op --------------------===//
#include "passes/lower/cpu/Methods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

FailureOr<Work> lower::cpu::emitAnchor(KernelOp kernel, OpBuilder &b,
                                       KernelBody &body) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  const AnchorMethods *methods = methodsOf(anchor->getName());
  if (!methods)
    return anchor->emitError() << "unsupported: '" << anchor->getName()
                               << "' has no code for the cpu";
  Code code(b, kernel.getLoc());
  AnchorKernel parts(kernel, anchor, body, code);
  if (failed(parts.check()))
    return failure();
  FailureOr<Work> work = emitByTable(kernel, *methods, parts, body.log);
  if (failed(work) || failed(parts.check()))
    return failure();
  return work;
}
