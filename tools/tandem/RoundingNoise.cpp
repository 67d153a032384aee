//===- RoundingNoise.cpp - what rounding may change of results ------------===//
#include "tools/tandem/RoundingNoise.h"
#include "ir/reference/Rounding.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace tandem;
using reference::Array;

/// Sums are made in f32, of narrower types too, and round with each term: more
/// often than their result, if that is an f32. (f64 is never rounded here,
/// which is what the reference computes in.)
static constexpr double kRoundingsOfSums = 16;

double tandem::distance(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) // equal infinities have no difference
      sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

static double rounded(double x, FloatType type) {
  return type.isF32() ? static_cast<float>(x)
                      : reference::roundedTo(type.getFloatSemantics(), x);
}

/// Rounds each element to `type` after moving it by up to half a unit in its
/// last place (more for sums). What the type holds is left: a maximum or a
/// choice rounds nothing, and stays equal to what it was taken from.
static void roundSomehow(Array &array, FloatType type,
                         std::mt19937_64 &random) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  double unit = std::ldexp(1.0, -int(APFloat::semanticsPrecision(semantics)));
  double least = APFloat::getSmallest(semantics).convertToDouble() / 2;
  if (type.isF32())
    unit *= kRoundingsOfSums;
  std::uniform_real_distribution<double> part(-1, 1);
  for (double &x : array.data)
    if (std::isfinite(x) && rounded(x, type) != x)
      x = rounded(x + part(random) * std::max(unit * std::abs(x), least), type);
}

FailureOr<std::vector<double>>
tandem::roundingDistances(func::FuncOp func, const reference::Call &call,
                          ArrayRef<Array> results, uint64_t seed, int samples) {
  std::vector<double> largest(results.size(), 0);
  std::mt19937_64 random(seed);
  reference::Call moved = call;
  moved.computed = [&](Operation *op, MutableArrayRef<Array> made) {
    for (auto [array, type] : llvm::zip_equal(made, op->getResultTypes()))
      if (auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type)))
        roundSomehow(array, element, random);
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

FailureOr<std::vector<double>>
tandem::roundingUntil(func::FuncOp func, const reference::Call &call,
                      ArrayRef<Array> results, uint64_t seed,
                      function_ref<bool(ArrayRef<double>)> isExplained) {
  std::vector<double> known(results.size(), 0);
  for (auto [samples, from] :
       {std::pair(kSamples, seed), {kMoreSamples, ~seed}}) {
    if (isExplained(known))
      break;
    auto found = roundingDistances(func, call, results, from, samples);
    if (failed(found))
      return failure();
    for (auto [largest, distance] : llvm::zip_equal(known, *found))
      largest = std::max(largest, distance);
  }
  return known;
}
