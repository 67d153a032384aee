//===- KernelCheck.cpp - compiled kernels against the reference -----------===//
#include "tests/lower/anchor/KernelCheck.h"

#include "ir/reference/Elements.h"

#include <cmath>
#include <random>
#include <set>
#include <tuple>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

std::string test::kernelModule(const std::vector<std::string> &types,
                               const std::vector<std::string> &results,
                               const std::string &body) {
  auto list = [](size_t n, auto element) {
    std::string text;
    for (size_t i = 0; i < n; ++i)
      text += (i ? ", " : "") + element(i);
    return text;
  };
  auto number = [](size_t i) { return std::to_string(i); };
  std::string in = list(types.size(), [&](size_t i) { return types[i]; });
  std::string out = list(results.size(), [&](size_t i) { return results[i]; });
  std::string count = std::to_string(results.size());
  return "func.func @f(" +
         list(types.size(),
              [&](size_t i) { return "%a" + number(i) + ": " + types[i]; }) +
         ") -> (" + out + ") {\n  %r:" + count + " = tandem.kernel \"k\" (" +
         list(types.size(), [&](size_t i) { return "%a" + number(i); }) +
         ") {\n  ^bb0(" +
         list(types.size(),
              [&](size_t i) { return "%" + number(i) + ": " + types[i]; }) +
         "):\n" + body + "\n  } {buffers = [" +
         list(results.size(),
              [&](size_t i) {
                return "#tandem.buffer<result " + number(i) + ">";
              }) +
         "]} : (" + in + ") -> (" + out + ")\n  return " +
         list(results.size(), [&](size_t i) { return "%r#" + number(i); }) +
         " : " + out + "\n}\n";
}

/// The distance between neighbours near 1 of the type's numbers.
static double epsilonOf(Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  if (!floatType)
    return 0;
  return std::ldexp(1.0, 1 - static_cast<int>(llvm::APFloat::semanticsPrecision(
                                 floatType.getFloatSemantics())));
}

static reference::Array randomArray(RankedTensorType type, std::mt19937 &random,
                                    int64_t high) {
  reference::Array array(type);
  Type element = type.getElementType();
  bool isFloat = isa<FloatType>(element);
  for (double &x : array.data)
    x = isFloat ? std::uniform_real_distribution<double>(-1, 1)(random)
                : static_cast<double>(
                      std::uniform_int_distribution<int64_t>(-2, high)(random));
  if (element.isInteger(1))
    for (double &x : array.data)
      x = x > 0;
  // As the kernel sees it.
  std::vector<uint8_t> bytes(byteSize(type));
  reference::encode(array, element, bytes.data());
  return reference::decode(bytes.data(), type);
}

std::vector<reference::Array>
test::randomInputs(const std::vector<RankedTensorType> &types, int64_t high) {
  std::mt19937 random(1);
  std::vector<reference::Array> inputs;
  for (RankedTensorType type : types)
    inputs.push_back(randomArray(type, random, high));
  return inputs;
}

void test::expectClose(const std::vector<std::vector<uint8_t>> &results,
                       const std::vector<reference::Array> &expected,
                       const std::vector<RankedTensorType> &types,
                       Tolerance tolerance) {
  for (size_t r = 0; r < expected.size(); ++r) {
    Type element = types[r].getElementType();
    auto actual = reference::decode(results[r].data(), types[r]);
    double rounding = epsilonOf(element);
    // Sums are in f32 at least. Partial sums of n products of uniform numbers
    // are about sqrt(n) / 3, and n rounding errors of these add up at random.
    double summing =
        std::max(std::min(rounding, std::ldexp(1.0, -23)), tolerance.factors) *
        (4 + tolerance.terms / 2);
    double way = rounding * tolerance.between;
    int reported = 0;
    for (int64_t i = 0; i < expected[r].size() && reported < 4; ++i) {
      double want = expected[r][i], got = actual[i];
      bool same =
          want == got || (std::isnan(want) && std::isnan(got)) ||
          std::abs(want - got) <= rounding * std::abs(want) + summing + way;
      if (!same) {
        ++reported;
        ADD_FAILURE() << "result " << r << " element " << i << ": expected "
                      << want << " but got " << got;
      }
    }
  }
}

bool test::isFirstCheck(const std::string &text, const Tolerance &tolerance,
                        int vectorBits, int64_t high) {
  static std::set<std::tuple<std::string, double, double, double, int, int64_t>>
      made;
  return made
      .insert({text, tolerance.terms, tolerance.factors, tolerance.between,
               vectorBits, high})
      .second;
}
