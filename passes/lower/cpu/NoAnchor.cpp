//===- NoAnchor.cpp - anchors that have no code ---------------------------===//
//
// The answer for kernels around an op that the CPU has no emitter for. The file
// that dispatches to emitters of anchors replaces it.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/KernelEmitter.h"

using namespace mlir;
using namespace tandem;

FailureOr<cpu::Work> cpu::emitAnchor(KernelOp kernel, OpBuilder &,
                                     KernelBody &) {
  return kernel.emitOpError() << "has an op without code for the CPU";
}
