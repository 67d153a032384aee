//===- RoundingNoise.cpp - what rounding may change of results ------------===//
#include "tools/tandem/RoundingNoise.h"
#include "ir/Ops.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace tandem;
using reference::Array;

/// Sums of f32 and of f64 are made in that type, and round each time; those of
/// narrower types are made in f32.
static constexpr double kRoundingsOfSums = 16;

double tandem::distance(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// Moves each element by up to half a unit in the last place of `type`.
static void move(Array &array, FloatType type, std::mt19937_64 &random) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  double unit = std::ldexp(1.0, -int(APFloat::semanticsPrecision(semantics)));
  double least = APFloat::getSmallest(semantics).convertToDouble() / 2;
  if (type.getWidth() >= 32)
    unit *= kRoundingsOfSums;
  std::uniform_real_distribution<double> part(-1, 1);
  for (double &x : array.data)
    x += part(random) * std::max(unit * std::abs(x), x == 0 ? 0 : least);
}

FailureOr<std::vector<double>>
tandem::roundingDistances(func::FuncOp func, const reference::Call &call,
                          ArrayRef<Array> results, uint64_t seed, int samples) {
  std::vector<double> largest(results.size(), 0);
  std::mt19937_64 random(seed);
  reference::Call moved = call;
  moved.computed = [&](Operation *op, MutableArrayRef<Array> made) {
    // What is only moved or written down is not rounded.
    if (isa<ViewOpInterface>(op) || op->getNumOperands() == 0)
      return;
    for (auto [array, type] : llvm::zip_equal(made, op->getResultTypes()))
      if (auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type)))
        move(array, element, random);
  };
  for (int sample = 0; sample < samples; ++sample) {
    auto outcome = reference::run(func, moved);
    if (failed(outcome))
      return failure();
    for (auto [i, result] : llvm::enumerate(outcome->results))
      if (result)
        largest[i] = std::max(largest[i], distance(*result, results[i]));
  }
  return largest;
}
