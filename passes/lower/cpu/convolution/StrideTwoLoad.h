//===- StrideTwoLoad.h - every second pixel without gathers ---------------===//
//
// Windows of one pixel with strides of two see every second pixel of every
// second line. Where lines are a vector of such pixels, or several, or an even
// part of one, and none is left over (readsEverySecondPixel), vectors of them
// need no gathering.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_STRIDETWOLOAD_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_STRIDETWOLOAD_H

#include "passes/lower/common/Anchor.h"

#include "ir/ops/Window.h"

namespace tandem::lower::cpu {

using namespace lower;

/// The vector of pixels that windows see from position `from` of `image` on,
/// [images, planes, height, width] without gaps between lines, of `seen` pixels
/// in a line. All of the vector's lines are there. Of type `type`.
mlir::Value loadStrideTwo(Code &code, const Operand &image, mlir::Value from,
                          int64_t seen, int64_t lanes, mlir::Type type);

} // namespace tandem::lower::cpu

#endif
