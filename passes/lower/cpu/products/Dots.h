//===- Dots.h - products of few rows as dot products ----------------------===//
//
// A product whose both factors lie along k and whose left one has few rows (a
// linear layer of a few samples, whose weights are read once from memory):
// vectors run along k, and nothing is packed or turned. The item of work is a
// block of the right factor's lines.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_DOTS_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_DOTS_H

#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/common/Method.h"

namespace tandem::lower::cpu {

using namespace lower;

/// The seconds of a product in whole vectors along one of its dimensions.
double secondsOfVectors(AnchorKernel &kernel, unsigned MatmulIndex::*along);

/// The row of this method (Methods.cpp). Sums are made in an order that depends
/// on the sizes and the target alone.
Fit fitDots(AnchorKernel &kernel);
double secondsOfDots(AnchorKernel &kernel);
int64_t scratchOfDots(AnchorKernel &kernel);
ScheduleOverride cutDots(AnchorKernel &kernel);
mlir::FailureOr<Work> emitDots(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
