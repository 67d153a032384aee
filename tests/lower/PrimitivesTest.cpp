//===- PrimitivesTest.cpp - functions, quotients, lines and scatters ------===//
//
// What each target computes against the reference: special numbers, the last
// place of functions, integers at the ends of their types, and the ops that
// have kernels of their own, with what is fused before and behind them.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::string tensor(const std::string &shape, const std::string &element) {
  return "tensor<" + (shape.empty() ? "" : shape + "x") + element + ">";
}

/// `op` of one or two operands of one type.
std::string pointwise(const std::string &op, int operands,
                      const std::string &type) {
  std::string first = "%y = tandem." + op + " %a", second;
  if (operands == 2) {
    first += ", %b";
    second = ", b: " + type;
  }
  return program("a: " + type + second + " -> " + type,
                 first + " : " + type + "\nreturn %y : " + type);
}

/// All pairs of `numbers`.
Arrays pairs(const std::vector<double> &numbers) {
  int64_t n = numbers.size();
  Arrays arrays(2, reference::Array(llvm::ArrayRef<int64_t>{n * n}));
  for (int64_t i = 0; i < n * n; ++i) {
    arrays[0][i] = numbers[i / n];
    arrays[1][i] = numbers[i % n];
  }
  return arrays;
}

/// The numbers of the type between two.
double between(double x, double y, bool isDouble) {
  if (x == y || (std::isnan(x) && std::isnan(y)))
    return std::signbit(x) == std::signbit(y) ? 0 : 1;
  if (std::isnan(x) || std::isnan(y) || std::isinf(x) || std::isinf(y))
    return inf;
  int exponent;
  std::frexp(y, &exponent);
  int digits = isDouble ? 53 : 24, least = isDouble ? -1074 : -149;
  return std::abs(x - y) / std::ldexp(1, std::max(exponent - digits, least));
}

struct Function {
  const char *name;
  double low, high;
  double places; ///< how many of f64 the result may be off
};

class Functions : public testing::TestWithParam<Function> {};

} // namespace

TEST_P(Functions, LastPlaces) {
  Function f = GetParam();
  for (bool isDouble : {false, true}) {
    std::string type = tensor("6000", isDouble ? "f64" : "f32");
    std::string text = pointwise(f.name, 1, type);
    for (std::string target : {"cpu", "cuda"}) {
      SCOPED_TRACE(target + type);
      Machine machine(text, target);
      ASSERT_EQ(machine.error(), "");
      Arrays x = machine.randomArguments("evaluate", 3, f.low, f.high);
      for (int64_t i = 0; i < 3000; ++i) // of all sizes down to the least
        x[0][i] = std::ldexp(x[0][i], -(i % (isDouble ? 1000 : 120)));
      const double special[] = {0.0, -0.0, inf, -inf, NAN,   1,    -1,
                                2,   -2,   0.5, -0.5, 1e-40, 1e20, -1e20};
      llvm::copy(special, x[0].data.begin());
      for (double &value : x[0].data)
        value = isDouble ? value : static_cast<float>(value);
      Arrays expected = machine.reference("evaluate", x);
      machine.round("evaluate", expected);
      Arrays got = machine.run("evaluate", x);
      int shown = 0;
      for (int64_t i = 0; i < 6000 && shown < 5; ++i) {
        double off = between(got[0][i], expected[0][i], isDouble);
        if (off > (isDouble ? f.places : 1)) {
          ADD_FAILURE() << f.name << "(" << x[0][i] << ") is off by " << off
                        << ": " << got[0][i] << ", not " << expected[0][i];
          ++shown;
        }
      }
      EXPECT_EQ(machine.error(), "");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ops, Functions,
    testing::Values(Function{"expm1", -30, 80, 3}, Function{"tan", -20, 20, 4},
                    Function{"asin", -1.01, 1.01, 2},
                    Function{"acos", -1.01, 1.01, 2},
                    Function{"atan", -10, 10, 2}, Function{"sinh", -85, 85, 4},
                    Function{"cosh", -85, 85, 4},
                    Function{"trunc", -100, 100, 0}),
    [](const auto &info) { return std::string(info.param.name); });

// Where e^x / 2 fits and e^x does not.
TEST(Functions, EndOfRange) {
  Arrays x = {reference::Array(llvm::ArrayRef<int64_t>{6})};
  x[0].data = {710.2, -710.2, 711, -711, 88.9, -745.2};
  for (const char *op : {"sinh", "cosh", "expm1"})
    check(pointwise(op, 1, "tensor<6xf64>"), {.tolerance = 1e-15}, &x);
}

TEST(Quotients, Angles) {
  Arrays given =
      pairs({0.0, -0.0, 1, -1, inf, -inf, NAN, 1e-30, -1e30, 0.3, 7});
  for (const char *element : {"f32", "f64"})
    check(pointwise("atan2", 2, tensor("121", element)),
          {.tolerance = std::string(element) == "f64" ? 5e-16 : 2e-7}, &given);
}

// The remainder is exact, however far apart the operands are.
TEST(Quotients, FloatRemainders) {
  Arrays special =
      pairs({0.0, -0.0, 1, -1, inf, -inf, NAN, 5.5, -5.5, 0.1, -0.1});
  for (const char *element : {"f32", "f64"}) {
    for (reference::Array &array : special)
      for (double &x : array.data)
        x = static_cast<float>(x);
    check(pointwise("rem", 2, tensor("121", element)), {.tolerance = 0},
          &special);
  }
  for (bool isDouble : {false, true}) {
    Arrays given(2, reference::Array(llvm::ArrayRef<int64_t>{3000}));
    std::mt19937_64 random(5);
    int range = isDouble ? 1070 : 145;
    for (int64_t i = 0; i < 3000; ++i)
      for (reference::Array &array : given) {
        double digits = 1 + static_cast<double>(random() >> 11) * 0x1p-53;
        int exponent = static_cast<int>(random() % (2 * range - 60)) - range;
        double x = std::ldexp(random() % 2 ? digits : -digits, exponent);
        array[i] = isDouble ? x : static_cast<float>(x);
      }
    check(pointwise("rem", 2, tensor("3000", isDouble ? "f64" : "f32")),
          {.tolerance = 0}, &given);
  }
}

namespace {
class Integers : public testing::TestWithParam<const char *> {};
} // namespace

TEST_P(Integers, EndsOfTheType) {
  std::string element = GetParam();
  bool hasSign = element[0] == 'i';
  int width = std::stoi(element.substr(hasSign ? 1 : 2));
  double bits = width, least = hasSign ? -std::ldexp(1, width - 1) : 0;
  // The largest that a double holds.
  double most = width == 64 ? 0x1p63 - 1024 : std::ldexp(1, width) + least - 1;
  std::vector<double> numbers = {
      0, 1, 2, 3, 7, 8, 15, 63, 100, most, bits, bits - 1, least + 64, least};
  if (hasSign)
    numbers.insert(numbers.end(), {-1, -2, -7, -100, least / 2});
  auto checkAll = [&](std::vector<std::string> ops) {
    Arrays given = pairs(numbers);
    std::string n = std::to_string(given[0].size());
    for (const std::string &op : ops)
      check(pointwise(op, 2, tensor(n, element)), {.tolerance = 0}, &given);
    for (const char *predicate : {"lt", "ge", "eq", "ne"})
      check(program("a: " + tensor(n, element) + ", b: " + tensor(n, element) +
                        " -> " + tensor(n, "i1"),
                    std::string("%y = tandem.compare ") + predicate +
                        " %a, %b : " + tensor(n, element) +
                        "\nreturn %y : " + tensor(n, "i1")),
            {.tolerance = 0}, &given);
    given.pop_back();
    check(pointwise("sign", 1, tensor(n, element)), {.tolerance = 0}, &given);
    // The largest number can be a result, which no double is.
    if (width < 64)
      check(pointwise("bit_not", 1, tensor(n, element)), {.tolerance = 0},
            &given);
  };
  checkAll({"div", "idiv", "rem", "pow", "shift_left", "shift_right", "maximum",
            "minimum"});
  // Of these too.
  if (width == 64)
    llvm::erase(numbers, least);
  checkAll({"bit_and", "bit_or", "bit_xor"});
}
INSTANTIATE_TEST_SUITE_P(Bits, Integers,
                         testing::Values("i8", "i16", "i32", "i64", "ui8",
                                         "ui16", "ui32", "ui64"));

TEST(Quotients, BitsOfBools) {
  Arrays given = pairs({0, 1});
  for (const char *op : {"bit_and", "bit_or", "bit_xor"})
    check(pointwise(op, 2, "tensor<4xi1>"), {.tolerance = 0}, &given);
  Arrays one = {given[0]};
  check(pointwise("bit_not", 1, "tensor<4xi1>"), {.tolerance = 0}, &one);
}

// Beyond what a double holds: the numbers are drawn below eight, the difference
// of the largest and the smallest is exact.
TEST(Reductions, LongIntegers) {
  std::string text =
      program("x: tensor<37x50xi64> -> tensor<37xi64>, tensor<37xi64>, "
              "tensor<37xi64>, tensor<37xi64>",
              R"(
    %big = tandem.constant dense<72057594037927937> : tensor<37x50xi64>
    %times = tandem.constant dense<3602879701896396850> : tensor<37xi64>
    %0 = tandem.add %x, %big : tensor<37x50xi64>
    %1 = tandem.reduce_max %0 over [1] : tensor<37x50xi64> -> tensor<37xi64>
    %2 = tandem.reduce_min %0 over [1] : tensor<37x50xi64> -> tensor<37xi64>
    %3 = tandem.sub %1, %2 : tensor<37xi64>
    %4 = tandem.reduce_max %x over [1] : tensor<37x50xi64> -> tensor<37xi64>
    %5 = tandem.reduce_min %x over [1] : tensor<37x50xi64> -> tensor<37xi64>
    %6 = tandem.sub %4, %5 : tensor<37xi64>
    %7 = tandem.reduce_sum %0 over [1] : tensor<37x50xi64> -> tensor<37xi64>
    %8 = tandem.sub %7, %times : tensor<37xi64>
    %9 = tandem.reduce_sum %x over [1] : tensor<37x50xi64> -> tensor<37xi64>
    return %3, %6, %8, %9 : tensor<37xi64>, tensor<37xi64>, tensor<37xi64>, tensor<37xi64>)");
  for (std::string target : {"cpu", "cuda"}) {
    Machine machine(text, target);
    ASSERT_EQ(machine.error(), "");
    Arrays got =
        machine.run("evaluate", machine.randomArguments("evaluate", 1));
    EXPECT_EQ(got[0].data, got[1].data) << target;
    EXPECT_EQ(got[2].data, got[3].data) << target;
    EXPECT_GT(got[0][0], 0) << target;
  }
}

TEST(Reductions, Products) {
  for (auto [from, over, to] :
       {std::tuple("33x65", "[1]", "33"), std::tuple("33x65", "[0]", "65"),
        std::tuple("4x30x5", "[0, 2]", "30"), std::tuple("3000", "[0]", ""),
        std::tuple("5x1", "[1]", "5")})
    for (const char *element : {"f32", "f64", "f16", "i32", "i64", "i8"}) {
      std::string x = tensor(from, element), y = tensor(to, element);
      bool isFloat = element[0] == 'f';
      // Of integers 1 and 2 at the start, 1 after.
      std::string make = "%f = tandem.add %x, %x : " + x + "\n";
      if (!isFloat)
        make = "%one = tandem.constant dense<1> : " + x +
               "\n%f = tandem.bit_or %x, %one : " + x + "\n";
      if (std::string(element) == "i8" || std::string(element) == "i64" ||
          std::string(element) == "i32")
        make = "%one = tandem.constant dense<1> : " + x +
               "\n%seven = tandem.constant dense<7> : " + x +
               "\n%big = tandem.compare eq %x, %seven : " + x +
               "\n%m = tandem.neg %one : " + x +
               "\n%f = tandem.select %big, %m, %one : " + tensor(from, "i1") +
               ", " + x + "\n";
      check(program("x: " + x + " -> " + y,
                    make + "%y = tandem.reduce_prod %f over " + over + " : " +
                        x + " -> " + y + "\nreturn %y : " + y),
            {.tolerance = element == std::string("f16") ? 2e-3 : 2e-5,
             .low = 0.46,
             .high = 0.54});
    }
}

//===----------------------------------------------------------------------===//
// reverse
//===----------------------------------------------------------------------===//

// Fused like any view: no kernel of its own, before or between others.
TEST(Reverse, CostsNothing) {
  for (const char *along : {"[0]", "[1]", "[2]", "[0, 2]", "[0, 1, 2]"})
    for (const char *element : {"f32", "f16", "i8", "i64"}) {
      std::string x = tensor("5x7x33", element);
      check(program("x: " + x + ", z: " + x + " -> " + x,
                    "%0 = tandem.add %x, %z : " + x +
                        "\n%1 = tandem.reverse %0 along " + along + " : " + x +
                        " -> " + x + "\n%2 = tandem.mul %1, %x : " + x +
                        "\nreturn %2 : " + x),
            {.tolerance = 2e-3, .kernels = 1});
    }
}

TEST(Reverse, AloneAndReduced) {
  check(program("x: tensor<40x130xf32> -> tensor<40x130xf32>, tensor<130xf32>",
                R"(
    %0 = tandem.reverse %x along [1] : tensor<40x130xf32> -> tensor<40x130xf32>
    %1 = tandem.reverse %x along [0, 1] : tensor<40x130xf32> -> tensor<40x130xf32>
    %2 = tandem.reduce_sum %1 over [0] : tensor<40x130xf32> -> tensor<130xf32>
    return %0, %2 : tensor<40x130xf32>, tensor<130xf32>)"),
        {.tolerance = 1e-5});
  // Rows that are read from both ends, and of which one result is of the other.
  check(program("x: tensor<9x64xf32> -> tensor<9x64xf32>", R"(
    %0 = tandem.reverse %x along [1] : tensor<9x64xf32> -> tensor<9x64xf32>
    %1 = tandem.sub %x, %0 : tensor<9x64xf32>
    %m = tandem.reduce_max %1 over [1] : tensor<9x64xf32> -> tensor<9xf32>
    %b = tandem.broadcast %m to [9, 64] along [0] : tensor<9xf32> -> tensor<9x64xf32>
    %2 = tandem.reverse %1 along [1] : tensor<9x64xf32> -> tensor<9x64xf32>
    %3 = tandem.mul %2, %b : tensor<9x64xf32>
    return %3 : tensor<9x64xf32>)"));
}

TEST(Reverse, OperandsOfProducts) {
  for (const char *along : {"[0]", "[1]", "[0, 1]"})
    check(program("a: tensor<48x64xf32>, b: tensor<64x32xf32> -> "
                  "tensor<48x32xf32>",
                  std::string("%p = tandem.reverse %a along ") + along +
                      " : tensor<48x64xf32> -> tensor<48x64xf32>\n"
                      "%q = tandem.reverse %b along " +
                      along +
                      " : tensor<64x32xf32> -> tensor<64x32xf32>\n"
                      "%y = tandem.matmul %p, %q : tensor<48x64xf32>, "
                      "tensor<64x32xf32> -> tensor<48x32xf32>\n"
                      "%z = tandem.reverse %y along " +
                      along +
                      " : tensor<48x32xf32> -> tensor<48x32xf32>\n"
                      "return %z : tensor<48x32xf32>"),
          {.tolerance = 1e-5});
}

//===----------------------------------------------------------------------===//
// cumsum, sort
//===----------------------------------------------------------------------===//

namespace {
struct Line {
  const char *shape;
  int dim;
};
const Line kLines[] = {{"70", 0},    {"1", 0},       {"6x33", 1},
                       {"33x6", 0},  {"3x70x5", 1},  {"2x3x300", 2},
                       {"4x1x3", 1}, {"65x2x150", 0}};

std::string cumsum(const Line &line, const std::string &how,
                   const std::string &element) {
  std::string type = tensor(line.shape, element);
  return program("x: " + type + " -> " + type,
                 "%y = tandem.cumsum %x dim " + std::to_string(line.dim) + " " +
                     how + " : " + type + " -> " + type +
                     "\nreturn %y : " + type);
}

std::string sorted(const Line &line, const std::string &how,
                   const std::string &element) {
  std::string type = tensor(line.shape, element);
  std::string numbers = tensor(line.shape, "i64");
  return program("x: " + type + " -> " + type + ", " + numbers,
                 "%y, %i = tandem.sort %x dim " + std::to_string(line.dim) +
                     " " + how + " : " + type + " -> " + type + ", " + numbers +
                     "\nreturn %y, %i : " + type + ", " + numbers);
}
} // namespace

TEST(Cumsum, Lines) {
  for (const Line &line : kLines)
    for (const char *how : {"", "exclusive", "reverse", "exclusive reverse"})
      check(cumsum(line, how, "f32"));
}

TEST(Cumsum, Elements) {
  for (const char *element :
       {"f64", "i8", "i32", "i64", "ui8", "ui32", "f16", "bf16"})
    for (const Line &line : {Line{"3x300", 1}, Line{"40x3", 0}})
      check(cumsum(line, "", element),
            {.tolerance =
                 element[0] == 'i' || element[0] == 'u' || element[1] == '6'
                     ? 1e-12
                     : 2e-2,
             .low = -0.25,
             .high = 0.25});
}

// What is not a number reaches what comes after it, and nothing else.
TEST(Cumsum, NotNumbers) {
  Arrays given = {reference::Array(llvm::ArrayRef<int64_t>{2, 300})};
  for (int64_t i = 0; i < 600; ++i)
    given[0][i] = i == 40 ? inf : i == 560 ? NAN : 1;
  for (const char *how : {"", "exclusive", "reverse", "exclusive reverse"})
    check(cumsum({"2x300", 1}, how, "f32"), {}, &given);
}

TEST(Cumsum, BetweenOthers) {
  check(program("x: tensor<20x70xf32>, z: tensor<20x70xf32> -> "
                "tensor<20x70xf32>",
                R"(
    %0 = tandem.reverse %x along [1] : tensor<20x70xf32> -> tensor<20x70xf32>
    %1 = tandem.cumsum %0 dim 1 : tensor<20x70xf32> -> tensor<20x70xf32>
    %2 = tandem.mul %1, %z : tensor<20x70xf32>
    return %2 : tensor<20x70xf32>)"));
}

TEST(Sort, Lines) {
  for (const Line &line : kLines)
    for (const char *how : {"", "descending"})
      check(sorted(line, how, "f32"), {.tolerance = 0});
}

// Integers are drawn from eight, bools from two: many equals, in their order.
TEST(Sort, Elements) {
  for (const char *element :
       {"f64", "f16", "bf16", "i8", "i32", "i64", "ui8", "ui64", "i1"})
    for (const char *how : {"", "descending"})
      check(sorted({"3x67", 1}, how, element), {.tolerance = 0});
}

TEST(Sort, NotNumbers) {
  Arrays given = {reference::Array(llvm::ArrayRef<int64_t>{12})};
  given[0].data = {1, NAN, -inf, 0.0, -0.0, NAN, inf, -1, inf, 0.0, NAN, 2};
  for (const char *how : {"", "descending"})
    check(sorted({"12", 0}, how, "f32"), {.tolerance = 0}, &given);
}

TEST(Sort, BetweenOthers) {
  check(program("x: tensor<20x70xf32>, z: tensor<20x70xf32> -> "
                "tensor<20x70xf32>, tensor<20x70xi32>",
                R"(
    %0 = tandem.neg %x : tensor<20x70xf32>
    %v, %i = tandem.sort %0 dim 1 : tensor<20x70xf32> -> tensor<20x70xf32>, tensor<20x70xi64>
    %1 = tandem.mul %v, %z : tensor<20x70xf32>
    %2 = tandem.cast %i : tensor<20x70xi64> to tensor<20x70xi32>
    return %1, %2 : tensor<20x70xf32>, tensor<20x70xi32>)"));
  // The numbers alone.
  check(program("x: tensor<20x70xf32> -> tensor<70x20xi64>", R"(
    %v, %i = tandem.sort %x dim 1 : tensor<20x70xf32> -> tensor<20x70xf32>, tensor<20x70xi64>
    %1 = tandem.permute %i by [1, 0] : tensor<20x70xi64> -> tensor<70x20xi64>
    return %1 : tensor<70x20xi64>)"));
}

//===----------------------------------------------------------------------===//
// scatter
//===----------------------------------------------------------------------===//

namespace {
/// Indices are drawn from eight: some are outside of five rows.
std::string scatter(const std::string &combine, const std::string &table,
                    const std::string &at, const std::string &row,
                    const std::string &element, const std::string &index) {
  std::string x = tensor(table, element), i = tensor(at, index);
  std::string shape = at + (at.empty() || row.empty() ? "" : "x") + row;
  std::string u = tensor(shape, element);
  return program("x: " + x + ", i: " + i + ", u: " + u + " -> " + x,
                 "%y = tandem.scatter " + combine + " %x, %i, %u : " + x +
                     ", " + i + ", " + u + " -> " + x + "\nreturn %y : " + x);
}
} // namespace

TEST(Scatter, Shapes) {
  for (const char *combine : {"set", "add", "mul", "min", "max"}) {
    check(scatter(combine, "5x7", "20", "7", "f32", "i64"),
          {.tolerance = 1e-4});
    check(scatter(combine, "40", "4x9", "", "f32", "i32"), {.tolerance = 1e-4});
    check(scatter(combine, "5x3x4", "2x3", "3x4", "f32", "i64"),
          {.tolerance = 1e-4});
    check(scatter(combine, "5x300", "", "300", "f32", "i8"));
  }
  check(scatter("set", "3000", "50", "", "f32", "i64"), {.tolerance = 0});
}

TEST(Scatter, Elements) {
  for (const char *element :
       {"f64", "f16", "bf16", "i8", "i32", "i64", "ui8", "ui64", "i1"})
    for (const char *combine : {"set", "add", "min", "max"})
      if (std::string(element) != "i1" || std::string(combine) == "set")
        check(scatter(combine, "5x6", "20", "6", element, "i64"),
              {.tolerance = element[0] == 'i' || element[0] == 'u' ? 0 : 2e-2});
}

// A minimum or maximum with NaN is NaN; what is set is not.
TEST(Scatter, NotNumbers) {
  Arrays given(3, reference::Array(llvm::ArrayRef<int64_t>{4}));
  given[0].data = {1, NAN, 3, 4};
  given[1].data = {0, 1, 2, -1};
  given[2].data = {NAN, 2, inf, 5};
  for (const char *combine : {"set", "add", "min", "max"})
    check(scatter(combine, "4", "4", "", "f32", "i32"), {}, &given);
}

TEST(Scatter, BetweenOthers) {
  check(program("x: tensor<7x5xf32>, i: tensor<6xi64>, u: tensor<6x7xf32>, z: "
                "tensor<5x7xf32> -> tensor<5x7xf32>",
                R"(
    %0 = tandem.permute %x by [1, 0] : tensor<7x5xf32> -> tensor<5x7xf32>
    %1 = tandem.exp %u : tensor<6x7xf32>
    %2 = tandem.reverse %i along [0] : tensor<6xi64> -> tensor<6xi64>
    %3 = tandem.scatter max %0, %2, %1 : tensor<5x7xf32>, tensor<6xi64>, tensor<6x7xf32> -> tensor<5x7xf32>
    %4 = tandem.mul %3, %z : tensor<5x7xf32>
    return %4 : tensor<5x7xf32>)"));
}
