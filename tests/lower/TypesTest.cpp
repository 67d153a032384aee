//===- TypesTest.cpp - unsigned integers and floats of 8 bits -------------===//
//
// Kernels of these types compute what the reference says, bit for bit: the
// numbers are at the ends of the types, where signs and roundings differ.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Replaces each type "T" of `text` by `type`.
std::string withType(std::string text, const std::string &type) {
  for (size_t at; (at = text.find("T>")) != std::string::npos;)
    text.replace(at, 1, type);
  for (size_t at; (at = text.find(" T ")) != std::string::npos;)
    text.replace(at + 1, 1, type);
  return text;
}

Options exact() {
  Options options;
  options.tolerance = 0;
  return options;
}

/// All pairs of numbers that are special in unsigned integers of `bits`. Of 64
/// bits the reference, which has doubles, has the leading ones.
Arrays specialIntegers(int bits) {
  double unit = bits < 64 ? 1 : 4096;
  double end = std::ldexp(1.0, bits) / unit, half = end / 2;
  const double special[] = {0,        1,    2,        3,       7,
                            half - 1, half, half + 2, end - 2, end - 1};
  Arrays arrays(2, reference::Array(llvm::ArrayRef<int64_t>{100}));
  for (int64_t i = 0; i < 100; ++i) {
    arrays[0][i] = special[i / 10] * unit;
    arrays[1][i] = special[i % 10] * unit;
  }
  return arrays;
}

int bitsOf(const std::string &type) { return std::stoi(type.substr(2)); }

class UnsignedIntegers : public testing::TestWithParam<const char *> {};

TEST_P(UnsignedIntegers, Arithmetic) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  check(program(withType("a: tensor<100xT>, b: tensor<100xT> -> tensor<100xT>, "
                         "tensor<100xT>, tensor<100xT>, tensor<100xT>, "
                         "tensor<100xT>, tensor<100xT>",
                         GetParam()),
                withType(R"(
      %add = tandem.add %a, %b : tensor<100xT>
      %sub = tandem.sub %a, %b : tensor<100xT>
      %mul = tandem.mul %a, %b : tensor<100xT>
      %max = tandem.maximum %a, %b : tensor<100xT>
      %min = tandem.minimum %a, %b : tensor<100xT>
      %neg = tandem.neg %a : tensor<100xT>
      return %add, %sub, %mul, %max, %min, %neg : tensor<100xT>, tensor<100xT>,
        tensor<100xT>, tensor<100xT>, tensor<100xT>, tensor<100xT>)",
                         GetParam())),
        exact(), &arguments);
}

TEST_P(UnsignedIntegers, QuotientsAndBits) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  for (const char *op : {"idiv", "rem", "pow", "bit_and", "bit_or", "bit_xor",
                         "shift_left", "shift_right"}) {
    SCOPED_TRACE(op);
    check(program(withType("a: tensor<100xT>, b: tensor<100xT> -> "
                           "tensor<100xT>, tensor<100xT>",
                           GetParam()),
                  withType(std::string("%y = tandem.") + op +
                               " %a, %b : tensor<100xT>\n"
                               "%z = tandem.bit_not %y : tensor<100xT>\n"
                               "return %y, %z : tensor<100xT>, tensor<100xT>",
                           GetParam())),
          exact(), &arguments);
  }
}

TEST_P(UnsignedIntegers, ShiftsByAFewBits) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  for (int64_t i = 0; i < 100; ++i)
    arguments[1][i] = static_cast<double>(i % 10 * 8);
  for (const char *op : {"shift_left", "shift_right"})
    check(program(withType("a: tensor<100xT>, b: tensor<100xT> -> "
                           "tensor<100xT>",
                           GetParam()),
                  withType(std::string("%y = tandem.") + op +
                               " %a, %b : tensor<100xT>\n"
                               "return %y : tensor<100xT>",
                           GetParam())),
          exact(), &arguments);
}

TEST_P(UnsignedIntegers, SignsAndComparisons) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  check(
      program(withType("a: tensor<100xT>, b: tensor<100xT> -> tensor<100xi1>, "
                       "tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, "
                       "tensor<100xT>, tensor<100xT>, tensor<100xT>",
                       GetParam()),
              withType(R"(
      %lt = tandem.compare lt %a, %b : tensor<100xT>
      %le = tandem.compare le %a, %b : tensor<100xT>
      %gt = tandem.compare gt %a, %b : tensor<100xT>
      %ge = tandem.compare ge %a, %b : tensor<100xT>
      %abs = tandem.abs %a : tensor<100xT>
      %sign = tandem.sign %a : tensor<100xT>
      %relu = tandem.relu %a : tensor<100xT>
      return %lt, %le, %gt, %ge, %abs, %sign, %relu : tensor<100xi1>,
        tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xT>,
        tensor<100xT>, tensor<100xT>)",
                       GetParam())),
      exact(), &arguments);
}

// What a chain computes in between is modulo 2^bits as well: it is one kernel.
TEST_P(UnsignedIntegers, ChainsWrapInBetween) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  Options options = exact();
  options.kernels = 1;
  check(
      program(withType("a: tensor<100xT>, b: tensor<100xT> -> tensor<100xi1>, "
                       "tensor<100xf64>",
                       GetParam()),
              withType(R"(
      %sum = tandem.add %a, %b : tensor<100xT>
      %wraps = tandem.compare lt %sum, %a : tensor<100xT>
      %wide = tandem.cast %sum : tensor<100xT> to tensor<100xf64>
      return %wraps, %wide : tensor<100xi1>, tensor<100xf64>)",
                       GetParam())),
      options, &arguments);
}

TEST_P(UnsignedIntegers, Reductions) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  for (const char *op :
       {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
    for (const char *dims : {"0", "1", "0, 1"})
      check(program(
                withType(std::string("a: tensor<100xT>, b: tensor<100xT> -> ") +
                             (dims == std::string("0, 1") ? "tensor<T>"
                                                          : "tensor<10xT>"),
                         GetParam()),
                withType(std::string(R"(
      %x = tandem.reshape %b to [10, 10] : tensor<100xT> -> tensor<10x10xT>
      %y = tandem.)") + op + " %x over [" +
                             dims + "] : tensor<10x10xT> -> " +
                             (dims == std::string("0, 1") ? "tensor<T>"
                                                          : "tensor<10xT>") +
                             "\nreturn %y : " +
                             (dims == std::string("0, 1") ? "tensor<T>"
                                                          : "tensor<10xT>"),
                         GetParam())),
            exact(), &arguments);
}

TEST_P(UnsignedIntegers, CastsToOtherTypes) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  for (const char *to : {"f64", "f32", "f16", "i1", "i8", "i16", "i32", "ui8",
                         "ui16", "ui32", "ui64"}) {
    SCOPED_TRACE(to);
    Options options;
    options.tolerance = std::string(to) == "f32"   ? 1e-7
                        : std::string(to) == "f16" ? 1e-3
                                                   : 0;
    // Only what every type between holds: infinity has no distance.
    if (std::string(to) == "f16")
      for (double &x : arguments[1].data)
        x = std::fmod(x, 2048);
    std::string result = std::string("tensor<100x") + to + ">";
    check(program(
              withType("a: tensor<100xT>, b: tensor<100xT> -> ", GetParam()) +
                  result,
              withType("%y = tandem.cast %b : tensor<100xT> to ", GetParam()) +
                  result + "\nreturn %y : " + result),
          options, &arguments);
  }
}

// Toward zero; what is out of range becomes the nearest number, and NaN 0.
TEST_P(UnsignedIntegers, CastsFromFloats) {
  int bits = bitsOf(GetParam());
  double end = std::ldexp(1.0, bits);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0.99,
                                 -0.99,
                                 -1.0,
                                 -1e30,
                                 1e30,
                                 2.5,
                                 end,
                                 end / 2,
                                 std::ldexp(1.0, bits) * (1 - 0x1p-24),
                                 std::ldexp(1.0, bits - 1) * (1 - 0x1p-24),
                                 end * 1.5,
                                 INFINITY,
                                 -INFINITY,
                                 NAN};
  for (const char *from : {"f32", "f64"}) {
    SCOPED_TRACE(from);
    Arrays arguments(1, reference::Array(llvm::ArrayRef<int64_t>{16}));
    std::copy(numbers.begin(), numbers.end(), arguments[0].data.begin());
    std::string type = std::string("tensor<16x") + from + ">";
    check(program("x: " + type + withType(" -> tensor<16xT>", GetParam()),
                  "%y = tandem.cast %x : " + type +
                      withType(" to tensor<16xT>\nreturn %y : tensor<16xT>",
                               GetParam())),
          exact(), &arguments);
  }
}

TEST_P(UnsignedIntegers, AreIndices) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{5, 3}),
                      reference::Array(llvm::ArrayRef<int64_t>{4})};
  for (int64_t i = 0; i < 15; ++i)
    arguments[0][i] = static_cast<double>(i);
  double last = std::ldexp(1.0, bitsOf(GetParam())) -
                (bitsOf(GetParam()) < 64 ? 1 : 2048);
  arguments[1].data = {4, 0, 5, last}; // the last would be -1 with a sign
  check(program(withType("table: tensor<5x3xi32>, at: tensor<4xT> -> "
                         "tensor<4x3xi32>",
                         GetParam()),
                withType("%y = tandem.take %table, %at : tensor<5x3xi32>, "
                         "tensor<4xT> -> tensor<4x3xi32>\n"
                         "return %y : tensor<4x3xi32>",
                         GetParam())),
        exact(), &arguments);
}

TEST_P(UnsignedIntegers, MoveSelectAndCount) {
  Arrays arguments = specialIntegers(bitsOf(GetParam()));
  check(program(withType("a: tensor<100xT>, b: tensor<100xT> -> "
                         "tensor<12x10xT>, tensor<10x10xT>",
                         GetParam()),
                withType(R"(
      %m = tandem.reshape %a to [10, 10] : tensor<100xT> -> tensor<10x10xT>
      %n = tandem.reshape %b to [10, 10] : tensor<100xT> -> tensor<10x10xT>
      %t = tandem.permute %m by [1, 0] : tensor<10x10xT> -> tensor<10x10xT>
      %i = tandem.iota dim 1 : tensor<10x10xT>
      %less = tandem.compare lt %n, %i : tensor<10x10xT>
      %s = tandem.select %less, %t, %n : tensor<10x10xi1>, tensor<10x10xT>
      %p = tandem.pad %m low [1, 0] high [1, 0] interior [0, 0] with 200 : T : tensor<10x10xT> -> tensor<12x10xT>
      return %p, %s : tensor<12x10xT>, tensor<10x10xT>)",
                         GetParam())),
        exact(), &arguments);
}

INSTANTIATE_TEST_SUITE_P(Types, UnsignedIntegers,
                         testing::Values("ui8", "ui16", "ui32", "ui64"));

// Signed integers saturate as well.
TEST(Types, FloatsToSignedIntegers) {
  for (const char *to : {"i8", "i16", "i32", "i64"}) {
    SCOPED_TRACE(to);
    double end = std::ldexp(1.0, std::stoi(to + 1) - 1);
    Arrays arguments(1, reference::Array(llvm::ArrayRef<int64_t>{12}));
    arguments[0].data = {0.5, -0.5, 1e30,      -1e30,    end,  -end,
                         NAN, 2.5,  -INFINITY, INFINITY, -2.5, -end * 1.5};
    std::string type = std::string("tensor<12x") + to + ">";
    check(program("x: tensor<12xf32> -> " + type,
                  "%y = tandem.cast %x : tensor<12xf32> to " + type +
                      "\nreturn %y : " + type),
          exact(), &arguments);
  }
}

//===----------------------------------------------------------------------===//
// Floats of 8 bits
//===----------------------------------------------------------------------===//

class NarrowFloats : public testing::TestWithParam<const char *> {};

/// Every number of the two types, those between each two of them (ties), and
/// their neighbours.
std::vector<double> numbersAround(const std::string &type) {
  std::vector<double> numbers = {INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-30};
  int digits = type == "f8E4M3FN" ? 3 : 2, bias = type == "f8E4M3FN" ? 7 : 15;
  for (int exponent = 1 - bias; exponent <= bias + 2; ++exponent)
    for (int step = 0; step < (2 << digits); ++step) {
      double least = std::ldexp(1.0, exponent - digits - 1);
      double number =
          (exponent == 1 - bias ? 0 : std::ldexp(1.0, exponent)) + step * least;
      for (double x :
           {number, number + least * 0x1p-10, number - least * 0x1p-10})
        for (double sign : {1.0, -1.0})
          numbers.push_back(sign * static_cast<double>(static_cast<float>(x)));
    }
  return numbers;
}

TEST_P(NarrowFloats, RoundsToTheNearest) {
  std::vector<double> numbers = numbersAround(GetParam());
  auto n = static_cast<int64_t>(numbers.size());
  for (const char *from : {"f32", "f64"}) {
    SCOPED_TRACE(from);
    Arrays arguments(1, reference::Array(llvm::ArrayRef<int64_t>{n}));
    arguments[0].data = numbers;
    std::string count = "tensor<" + std::to_string(n) + "x";
    std::string f = count + from + ">", f8 = count + GetParam() + ">";
    // The bits, and the number after the cast in the same kernel.
    check(program("x: " + f + " -> " + f8 + ", " + f,
                  "%y = tandem.cast %x : " + f + " to " + f8 +
                      "\n%z = tandem.cast %y : " + f8 + " to " + f +
                      "\nreturn %y, %z : " + f8 + ", " + f),
          exact(), &arguments);
  }
}

TEST_P(NarrowFloats, EveryNumberMovesAndCasts) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{16, 16}),
                      reference::Array(llvm::ArrayRef<int64_t>{3})};
  auto ofBytes =
      mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED); // for the type
  auto type = mlir::cast<mlir::FloatType>(
      std::string(GetParam()) == "f8E4M3FN"
          ? mlir::Type(mlir::Float8E4M3FNType::get(&ofBytes))
          : mlir::Type(mlir::Float8E5M2Type::get(&ofBytes)));
  for (int64_t i = 0; i < 256; ++i) {
    llvm::APFloat value(type.getFloatSemantics(),
                        llvm::APInt(8, static_cast<uint64_t>(i)));
    bool lost;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &lost);
    arguments[0][i] = value.convertToDouble();
  }
  arguments[1].data = {15, 0, 16};
  check(program(withType("x: tensor<16x16xT>, at: tensor<3xi32> -> "
                         "tensor<16x16xf32>, tensor<16x16xbf16>, "
                         "tensor<16x17xT>, tensor<3x16xT>, tensor<16x16xi1>, "
                         "tensor<16x16xi8>",
                         GetParam()),
                withType(R"(
      %f = tandem.cast %x : tensor<16x16xT> to tensor<16x16xf32>
      %b = tandem.cast %x : tensor<16x16xT> to tensor<16x16xbf16>
      %t = tandem.permute %x by [1, 0] : tensor<16x16xT> -> tensor<16x16xT>
      %less = tandem.compare lt %x, %t : tensor<16x16xT>
      %s = tandem.select %less, %x, %t : tensor<16x16xi1>, tensor<16x16xT>
      %p = tandem.pad %s low [0, 1] high [0, 0] interior [0, 0] with 1.5 : T : tensor<16x16xT> -> tensor<16x17xT>
      %r = tandem.take %x, %at : tensor<16x16xT>, tensor<3xi32> -> tensor<3x16xT>
      %i = tandem.cast %x : tensor<16x16xT> to tensor<16x16xi8>
      return %f, %b, %p, %r, %less, %i : tensor<16x16xf32>, tensor<16x16xbf16>,
        tensor<16x17xT>, tensor<3x16xT>, tensor<16x16xi1>, tensor<16x16xi8>)",
                         GetParam())),
        exact(), &arguments);
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowFloats,
                         testing::Values("f8E4M3FN", "f8E5M2"));

} // namespace

/// Loads with masks, gathered ones, and choices among them, of numbers that a
/// processor may not have.
TEST(Types, HalvesInAnchors) {
  for (std::string t : {"bf16", "f16"}) {
    SCOPED_TRACE(t);
    Options options;
    options.tolerance = 0.02;
    auto of = [&](const char *shape) {
      return "tensor<" + std::string(shape) + "x" + t + ">";
    };
    check(program("x: " + of("2x3x7x5") + ", w: " + of("4x3x3x3") + " -> " +
                      of("2x4x7x5"),
                  "%y = tandem.conv2d %x, %w padding [1, 1, 1, 1] : " +
                      of("2x3x7x5") + ", " + of("4x3x3x3") + " -> " +
                      of("2x4x7x5") + "\nreturn %y : " + of("2x4x7x5")),
          options);
    check(
        program("x: " + of("2x3x7x5") + ", y: " + of("2x4x4x3") + " -> " +
                    of("4x3x3x3"),
                "%w = tandem.conv2d_filter_grad %x, %y to [4, 3, 3, 3] strides "
                "[2, 2] padding [1, 1, 1, 1] : " +
                    of("2x3x7x5") + ", " + of("2x4x4x3") + " -> " +
                    of("4x3x3x3") + "\nreturn %w : " + of("4x3x3x3")),
        options);
    check(
        program("x: " + of("5x19") + ", w: " + of("7x19") + " -> " + of("5x7"),
                "%y = tandem.matmul %x, %w {transpose_rhs} : " + of("5x19") +
                    ", " + of("7x19") + " -> " + of("5x7") +
                    "\nreturn %y : " + of("5x7")),
        options);
  }
}
