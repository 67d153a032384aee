//===- RoundingNoise.h - what rounding may change of results --------------===//
//
// The reference computes in double. What the same program gives where every
// result is rounded to its type is known by trying: each result that its type
// does not hold is rounded to a neighbour, at random. Gradients that are sums
// of terms that cancel, and those of f16 and bf16, are off by what that shows
// and not by a number that fits all models.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_ROUNDINGNOISE_H
#define TANDEM_TOOLS_TANDEM_ROUNDINGNOISE_H

#include "ir/reference/Evaluator.h"

namespace tandem {

/// How many times all results are rounded at random; and how many times more
/// where a result seems wrong: one of few elements may change little in two.
inline constexpr int kSamples = 2, kMoreSamples = 14;

/// Runs `func`, a joint program, `samples` times so, and returns for each of
/// its `results` the largest Euclidean distance from it.
mlir::FailureOr<std::vector<double>>
roundingDistances(mlir::func::FuncOp func, const reference::Call &call,
                  llvm::ArrayRef<reference::Array> results, uint64_t seed,
                  int samples);

/// Draws samples as long as the distances that are known, at first zeros, do
/// not explain what is compared: kSamples, then kMoreSamples. Returns the
/// distances.
mlir::FailureOr<std::vector<double>> roundingUntil(
    mlir::func::FuncOp func, const reference::Call &call,
    llvm::ArrayRef<reference::Array> results, uint64_t seed,
    llvm::function_ref<bool(llvm::ArrayRef<double> known)> isExplained);

/// The Euclidean distance of two arrays of one shape.
double distance(const reference::Array &a, const reference::Array &b);

} // namespace tandem

#endif
