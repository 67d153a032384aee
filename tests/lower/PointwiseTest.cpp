//===- PointwiseTest.cpp - kernels of pointwise ops -----------------------===//
//
// As in LowerTest.cpp. Every function of one and two operands gets the values
// that are special somewhere.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Every value that is special somewhere, and some that are not.
Arrays specialFloats(size_t copies, int64_t size) {
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, 1.0,  -1.0, inf,  -inf, NAN,  1e-3, 0.5,
                            2.5, -2.5, 10.0, -10., 1e-6, 3.5,  -0.5, 0.75};
  Arrays arrays;
  for (size_t c = 0; c < copies; ++c) {
    reference::Array array(llvm::ArrayRef<int64_t>{size});
    for (int64_t i = 0; i < size; ++i)
      array[i] = special[(i / (c ? 17 : 1)) % 17];
    arrays.push_back(array);
  }
  return arrays;
}

class Unary : public testing::TestWithParam<const char *> {};
TEST_P(Unary, SpecialNumbers) {
  Arrays arguments = specialFloats(1, 17);
  for (double &x : arguments[0].data)
    x = static_cast<float>(x);
  check(program("x: tensor<17xf32> -> tensor<17xf32>",
                std::string("%y = tandem.") + GetParam() +
                    " %x : tensor<17xf32>\nreturn %y : tensor<17xf32>"),
        {}, &arguments);
}
/// The functions of the dialect that have f32.
std::vector<const char *> functionsOf(size_t operands) {
  std::vector<const char *> names;
  if (operands == 1)
    names = {
        "neg",
        "detach",
#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC) MNEMONIC,
#include "ir/ops/PointwiseFunctions.h.inc"
    };
  else
    names = {
        "add",
        "sub",
        "mul",
        "div",
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC) MNEMONIC,
#include "ir/ops/PointwiseFunctions.h.inc"
    };
  // Of integers and bools alone.
  llvm::erase_if(names, [](llvm::StringRef name) {
    return name.starts_with("bit_") || name.starts_with("logical_") ||
           name.starts_with("shift_") || name == "idiv";
  });
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, Unary, testing::ValuesIn(functionsOf(1)));

class Binary : public testing::TestWithParam<const char *> {};
TEST_P(Binary, SpecialNumbers) {
  Arrays arguments = specialFloats(2, 289);
  for (reference::Array &array : arguments)
    for (double &x : array.data)
      x = static_cast<float>(x);
  check(program("a: tensor<289xf32>, b: tensor<289xf32> -> tensor<289xf32>",
                std::string("%y = tandem.") + GetParam() +
                    " %a, %b : tensor<289xf32>\nreturn %y : tensor<289xf32>"),
        {}, &arguments);
}
INSTANTIATE_TEST_SUITE_P(Ops, Binary, testing::ValuesIn(functionsOf(2)));

TEST(Pointwise, Integers) {
  check(program("a: tensor<33xi32>, b: tensor<33xi32> -> tensor<33xi32>, "
                "tensor<33xi1>, tensor<33xi64>, tensor<33xi8>",
                R"(
    %0 = tandem.mul %a, %b : tensor<33xi32>
    %1 = tandem.sub %0, %b : tensor<33xi32>
    %2 = tandem.maximum %1, %a : tensor<33xi32>
    %3 = tandem.compare lt %a, %b : tensor<33xi32>
    %4 = tandem.cast %2 : tensor<33xi32> to tensor<33xi64>
    %5 = tandem.cast %a : tensor<33xi32> to tensor<33xi8>
    %6 = tandem.abs %5 : tensor<33xi8>
    return %2, %3, %4, %6 : tensor<33xi32>, tensor<33xi1>, tensor<33xi64>, tensor<33xi8>)"),
        {.kernels = 1});
}

TEST(Pointwise, Booleans) {
  check(program("a: tensor<5x7xi1>, b: tensor<5x7xi1>, x: tensor<5x7xf32> -> "
                "tensor<5x7xi1>, tensor<5x7xf32>",
                R"(
    %0 = tandem.logical_and %a, %b : tensor<5x7xi1>
    %1 = tandem.logical_not %0 : tensor<5x7xi1>
    %2 = tandem.logical_or %1, %b : tensor<5x7xi1>
    %3 = tandem.cast %2 : tensor<5x7xi1> to tensor<5x7xf32>
    %4 = tandem.select %a, %x, %3 : tensor<5x7xi1>, tensor<5x7xf32>
    return %2, %4 : tensor<5x7xi1>, tensor<5x7xf32>)"),
        {.kernels = 1});
}

class Narrow : public testing::TestWithParam<const char *> {};
TEST_P(Narrow, CastsAndArithmetic) {
  std::string type = std::string("tensor<33x17x") + GetParam() + ">";
  check(program("x: tensor<33x17xf32>, h: " + type + " -> " + type +
                    ", tensor<33x17xf32>, tensor<33x17xi32>",
                "%0 = tandem.cast %x : tensor<33x17xf32> to " + type +
                    "\n%1 = tandem.mul %0, %h : " + type +
                    "\n%2 = tandem.cast %h : " + type +
                    " to tensor<33x17xf32>\n%3 = tandem.exp %2 : "
                    "tensor<33x17xf32>\n%4 = tandem.cast %h : " +
                    type + " to tensor<33x17xi32>\nreturn %1, %3, %4 : " +
                    type + ", tensor<33x17xf32>, tensor<33x17xi32>"),
        {.tolerance = 1e-2});
}
INSTANTIATE_TEST_SUITE_P(Types, Narrow, testing::Values("f16", "bf16", "f64"));

/// Every f16 there is, on processors with and without instructions for it.
TEST(Pointwise, EveryHalf) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{65536})};
  for (uint32_t i = 0; i < 65536; ++i) {
    llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, i));
    bool lost;
    half.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
    arguments[0][i] = half.convertToDouble();
  }
  for (const char *target : {"cpu", "cpu:x86-64-v2"})
    check(program("h: tensor<65536xf16> -> tensor<65536xf32>, "
                  "tensor<65536xf16>, tensor<65536xf64>, tensor<65536xf16>",
                  R"(
    %0 = tandem.cast %h : tensor<65536xf16> to tensor<65536xf32>
    %c = tandem.constant dense<1.00048828125> : tensor<65536xf32>
    %1 = tandem.mul %0, %c : tensor<65536xf32>
    %2 = tandem.cast %1 : tensor<65536xf32> to tensor<65536xf16>
    %3 = tandem.cast %h : tensor<65536xf16> to tensor<65536xf64>
    %4 = tandem.neg %3 : tensor<65536xf64>
    %5 = tandem.cast %4 : tensor<65536xf64> to tensor<65536xf16>
    return %0, %2, %4, %5 : tensor<65536xf32>, tensor<65536xf16>, tensor<65536xf64>, tensor<65536xf16>)"),
          {.tolerance = 0, .target = target}, &arguments);
}

TEST(Pointwise, NarrowSpecialNumbers) {
  Arrays arguments = specialFloats(1, 17);
  for (double &x : arguments[0].data)
    x = static_cast<float>(x);
  arguments[0][7] = 1e30; // beyond f16
  check(program("x: tensor<17xf32> -> tensor<17xf16>, tensor<17xbf16>",
                R"(
    %0 = tandem.cast %x : tensor<17xf32> to tensor<17xf16>
    %1 = tandem.cast %x : tensor<17xf32> to tensor<17xbf16>
    return %0, %1 : tensor<17xf16>, tensor<17xbf16>)"),
        {.tolerance = 1e-2}, &arguments);
}

/// Bits that are numbers in both types.
TEST(Pointwise, A12_BitsAsAnotherType) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{1024})};
  for (auto [real, integer, top] :
       {std::tuple("f64", "i64", 52), std::tuple("f32", "i32", 23),
        std::tuple("f16", "i16", 10), std::tuple("bf16", "i16", 7)}) {
    // Exponents around that of 1, both signs, and bits down to the last.
    int64_t one = std::string(real) == "f64"   ? 1023
                  : std::string(real) == "f16" ? 15
                                               : 127;
    for (int64_t i = 0; i < 1024; ++i) {
      int64_t bits = ((one - 8 + i % 16) << top) + i * 37 % 100;
      if (std::string(real) == "f64")
        bits = (one - 8 + i % 16) << top; // a double holds the integer
      arguments[0][i] = static_cast<double>(bits);
    }
    std::string x = std::string("tensor<1024x") + integer + ">",
                y = std::string("tensor<1024x") + real + ">";
    check(program("x: " + x + " -> " + y + ", " + x,
                  "%f = tandem.bitcast %x : " + x + " -> " + y +
                      "\n%c = tandem.constant dense<2.0> : " + y +
                      "\n%m = tandem.mul %f, %c : " + y +
                      "\n%i = tandem.bitcast %m : " + y + " -> " + x +
                      "\nreturn %f, %i : " + y + ", " + x),
          {.tolerance = 0, .kernels = 1}, &arguments);
  }
}

class Shapes : public testing::TestWithParam<const char *> {};
TEST_P(Shapes, Pointwise) {
  std::string type = std::string("tensor<") + GetParam() + "f32>";
  check(program("a: " + type + ", b: " + type + " -> " + type,
                "%0 = tandem.mul %a, %b : " + type +
                    "\n%1 = tandem.tanh %0 : " + type +
                    "\nreturn %1 : " + type),
        {.kernels = 1});
}
INSTANTIATE_TEST_SUITE_P(Sizes, Shapes,
                         testing::Values("", "1x", "1x1x1x", "17x", "33x17x",
                                         "4096x", "4099x", "12289x",
                                         "3x5x7x11x", "70001x"));

TEST(Pointwise, Constants) {
  check(program("x: tensor<3x4xf32> -> tensor<3x4xf32>, tensor<3x4xi32>, "
                "tensor<2xf32>",
                R"(
    %c = tandem.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : tensor<3x4xf32>
    %s = tandem.constant dense<0.5> : tensor<3x4xf32>
    %0 = tandem.mul %x, %s : tensor<3x4xf32>
    %1 = tandem.add %0, %c : tensor<3x4xf32>
    %i = tandem.iota dim 1 : tensor<3x4xi32>
    %r = tandem.constant dense<[1.5, -2.5]> : tensor<2xf32>
    return %1, %i, %r : tensor<3x4xf32>, tensor<3x4xi32>, tensor<2xf32>)"));
}

} // namespace
