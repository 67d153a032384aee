//===- ElementsTest.cpp - numbers of the reference as bits ----------------===//
//
// What has a short way has the bits of LLVM's conversion.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Elements.h"
#include "ir/reference/Rounding.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace tandem;

namespace {

/// By LLVM, whatever the number.
double slowlyRounded(FloatType type, double number) {
  return reference::numberOfBits(type, reference::bitsOf(type, number));
}

std::vector<double> numbers(FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  std::vector<double> edges = {0.0, INFINITY, NAN};
  // Around each power of two that the type has, and beyond both ends: ties, and
  // what is a little more or less.
  int digits = llvm::APFloat::semanticsPrecision(semantics);
  for (int e = llvm::APFloat::semanticsMinExponent(semantics) - digits - 2;
       e <= llvm::APFloat::semanticsMaxExponent(semantics) + 2; ++e)
    for (double part : {0.0, 1.0, 0.5, 1.5, 0.25, 0.75})
      for (double sign : {-1.0, 1.0}) {
        double x = std::ldexp(1 + sign * part * std::ldexp(1.0, 1 - digits), e);
        for (double y : {x, std::nextafter(x, 0), std::nextafter(x, INFINITY)})
          edges.push_back(y);
      }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i)
    edges.push_back(llvm::bit_cast<double>(random()));
  std::uniform_real_distribution<double> usual(-3, 3);
  for (int i = 0; i < 20000; ++i)
    edges.push_back(usual(random));
  for (size_t i = 0, n = edges.size(); i < n; ++i)
    edges.push_back(-edges[i]);
  return edges;
}

} // namespace

TEST(Elements, HaveTheBitsOfLlvmsConversion) {
  MLIRContext context;
  Builder builder(&context);
  for (FloatType type :
       {FloatType(builder.getBF16Type()), FloatType(builder.getF16Type()),
        FloatType(builder.getF32Type()), FloatType(builder.getF64Type()),
        FloatType(Float8E4M3FNType::get(&context)),
        FloatType(Float8E5M2Type::get(&context))}) {
    auto all = numbers(type);
    auto tensor = RankedTensorType::get(int64_t(all.size()), type);
    reference::Array array(tensor);
    array.data = all;
    std::vector<char> bytes(all.size() * (type.getWidth() / 8));
    reference::encode(array, type, bytes.data());
    auto back = reference::decode(bytes.data(), tensor);
    int wrong = 0;
    for (size_t i = 0; i < all.size() && wrong < 5; ++i) {
      double expected = slowlyRounded(type, all[i]);
      for (double got :
           {reference::roundedTo(type.getFloatSemantics(), all[i]), back[i]})
        if (std::isnan(expected)
                ? !std::isnan(got)
                : got != expected ||
                      std::signbit(got) != std::signbit(expected)) {
          ++wrong;
          ADD_FAILURE() << "of " << all[i] << ": expected " << expected
                        << " but got " << got;
        }
    }
  }
}
