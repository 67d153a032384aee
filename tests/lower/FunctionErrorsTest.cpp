//===- FunctionErrorsTest.cpp - the last places of functions of f32 -------===//
//
// The greatest error of each function that is computed without libm, over all
// exponents and both signs, in units in the last place of the exact result;
// and what becomes of special numbers. Each is compiled with the host's
// instructions, without any beyond the least of its kind, and for cuda where
// the code is the same.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double rsqrt(double x) { return 1 / std::sqrt(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Function {
  const char *name;
  double (*exact)(double);
  double bound;        ///< as docs and comments state it
  double least = -inf; ///< arguments below are left out
  bool onCuda = false; ///< with the same code as other targets
  bool isFast = false; ///< with --fast-math
  double most = inf;   ///< arguments above are left out
};

/// The distance of a result from what it should be, in units in the last place
/// of that: those of f32, denormals included.
double placesBetween(double got, double exact) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) == std::isnan(got) ? 0 : inf;
  constexpr double largest = std::numeric_limits<float>::max();
  if (std::isinf(got)) // where it would be rounded to that
    return std::abs(exact) >= largest + 0x1p103 && (got > 0) == (exact > 0)
               ? 0
               : inf;
  if (got == 0 && exact == 0)
    return std::signbit(got) == std::signbit(exact) ? 0 : inf;
  if (std::isinf(exact))
    return inf;
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(got - exact) / std::ldexp(1, std::max(exponent - 24, -149));
}

/// Some of all exponents and signs, and what is special.
reference::Array argumentsOf(const Function &function) {
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 inf,
                                 -inf,
                                 nan,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 -0x1p-126,
                                 88.72283,
                                 88.72284,
                                 89,
                                 -87.4,
                                 -103.9,
                                 -103.98,
                                 -104.1,
                                 0.55,
                                 0.9277344,
                                 1,
                                 -1,
                                 2,
                                 0x1.fffffep127,
                                 -0x1.fffffep127};
  for (double &x : numbers)
    x = static_cast<float>(x);
  std::mt19937 random(7);
  for (int exponent = -149; exponent < 128; ++exponent)
    for (int i = 0; i < 150; ++i) {
      double digits = 1 + static_cast<double>(random() >> 9) * 0x1p-23;
      double x = static_cast<float>(std::ldexp(digits, exponent));
      numbers.push_back(i % 2 ? x : -x);
    }
  // Where most of the functions bend.
  for (int i = 0; i < 40000; ++i)
    numbers.push_back(static_cast<float>(
        (static_cast<double>(random()) * 0x1p-32 - 0.5) * (i % 2 ? 6 : 210)));
  llvm::erase_if(numbers, [&](double x) {
    return x < function.least || x > function.most;
  });
  reference::Array array(
      llvm::ArrayRef<int64_t>{static_cast<int64_t>(numbers.size())});
  llvm::copy(numbers, array.data.begin());
  return array;
}

/// This machine, and the least of its kind.
std::vector<std::string> targetsWithBaseline(bool onCuda) {
  std::vector<std::string> targets = {"cpu"};
#ifdef __x86_64__
  targets.push_back("cpu:x86-64");
#endif
  if (onCuda)
    targets.push_back("cuda");
  return targets;
}

class FunctionErrors : public testing::TestWithParam<Function> {};

} // namespace

TEST_P(FunctionErrors, AreBounded) {
  Function function = GetParam();
  Arrays x = {argumentsOf(function)};
  std::string type = "tensor<" + std::to_string(x[0].size()) + "xf32>";
  std::string text = program("x: " + type + " -> " + type,
                             std::string("%y = tandem.") + function.name +
                                 " %x : " + type + "\nreturn %y : " + type);
  for (const std::string &target : targetsWithBaseline(function.onCuda)) {
    SCOPED_TRACE(target);
    Machine machine(text, target, function.isFast);
    ASSERT_EQ(machine.error(), "");
    Arrays y = machine.run("evaluate", x);
    double most = 0, where = 0;
    for (int64_t i = 0; i < x[0].size(); ++i) {
      double places = placesBetween(y[0][i], function.exact(x[0][i]));
      if (places > most) {
        most = places;
        where = x[0][i];
      }
    }
    EXPECT_LE(most, function.bound) << function.name << "(" << where << ")";
    RecordProperty(target, std::to_string(most));
  }
}

// The angles of rotary embeddings are positions, so thousands: MLIR's sin and
// cos were off by 5e-4 there. Time stamps are 1e9, of which both were NaN.
TEST(Angles, AreReducedBeforeTheirPolynomials) {
  reference::Array x(llvm::ArrayRef<int64_t>{60000});
  std::mt19937 random(3);
  for (size_t i = 0; i < x.data.size(); ++i) {
    double most = i % 3 == 0   ? 7
                  : i % 3 == 1 ? 2e5
                               : std::ldexp(1.0, 18 + int(i % 110));
    x.data[i] = static_cast<float>(
        (static_cast<double>(random()) * 0x1p-31 - 1) * most);
  }
  // Vectors without an angle that is far, too.
  for (size_t i = 30000; i < 40000; ++i)
    x.data[i] = static_cast<float>(static_cast<double>(i) * 0.01);
  x.data[0] = -0.0;
  x.data[1] = 7912;
  x.data[2] = inf;
  x.data[3] = -inf;
  x.data[4] = std::nan("");
  x.data[5] = std::numeric_limits<float>::max();
  x.data[6] = 0x1.f37c8ap+95; // of f32 the nearest to a multiple of pi / 2
  std::string type = "tensor<60000xf32>";
  for (const char *name : {"sin", "cos"}) {
    std::string text = program("x: " + type + " -> " + type,
                               std::string("%y = tandem.") + name +
                                   " %x : " + type + "\nreturn %y : " + type);
    for (const std::string &target : targetsWithBaseline(true)) {
      SCOPED_TRACE(std::string(name) + " for " + target);
      Machine machine(text, target, /*isFast=*/false);
      ASSERT_EQ(machine.error(), "");
      Arrays y = machine.run("evaluate", {x});
      EXPECT_EQ(std::signbit(y[0][0]), name[0] == 's');
      for (int i : {2, 3, 4})
        EXPECT_TRUE(std::isnan(y[0][i])) << i;
      double near = 0, far = 0;
      for (size_t i = 5; i < x.data.size(); ++i) {
        double exact = name[0] == 's' ? std::sin(x[i]) : std::cos(x[i]);
        double error = std::abs(y[0][i] - exact);
        if (std::abs(x[i]) <= 2e5)
          near = std::max(near, error);
        else // far ones are rounded from more digits
          far = std::max(far, error / std::abs(exact));
      }
      EXPECT_LE(near, 1.5e-7);
      EXPECT_LE(far, 6.1e-8);
    }
  }
}

// A mask of -100, as windows of Swin have, made denormal weights, by which a
// product took 30 times as long on some processors.
TEST(Softmax, HasNoDenormalWeights) {
  const int64_t rows = 6, columns = 512;
  reference::Array x(llvm::ArrayRef<int64_t>{rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i)
    x.data[size_t(i)] =
        static_cast<float>(-120.0 * double(i % columns) / columns);
  x.data[3 * columns + 7] = std::nan("");
  x.data[4 * columns + 7] = inf;
  std::fill_n(x.data.begin() + 5 * columns, columns, -inf);
  std::string text = program("x: tensor<6x512xf32> -> tensor<6x512xf32>", R"(
    %m = tandem.reduce_max %x over [1] : tensor<6x512xf32> -> tensor<6xf32>
    %b = tandem.broadcast %m to [6, 512] along [0] : tensor<6xf32> -> tensor<6x512xf32>
    %d = tandem.sub %x, %b : tensor<6x512xf32>
    %y = tandem.exp %d : tensor<6x512xf32>
    return %y : tensor<6x512xf32>)");
  for (const std::string &target : targetsWithBaseline(/*onCuda=*/false)) {
    SCOPED_TRACE(target);
    Machine machine(text, target, /*fastMath=*/false);
    ASSERT_EQ(machine.error(), "");
    Arrays y = machine.run("evaluate", {x});
    for (int64_t i = 0; i < rows * columns; ++i) {
      double got = y[0][i], exact = std::exp(x[i]);
      if (i / columns > 2) {
        bool isBelow = i / columns == 4 && i % columns != 7;
        EXPECT_TRUE(isBelow ? got == 0 : std::isnan(got)) << i;
      } else if (x[i] < -87.33654) {
        EXPECT_EQ(got, 0) << x[i];
      } else {
        EXPECT_LE(placesBetween(got, exact), 1.1) << x[i];
        EXPECT_GE(got, 0x1p-126) << x[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, FunctionErrors,
    testing::Values(Function{"exp", std::exp, 1.1},
                    Function{"log", std::log, 0.9, -inf, true},
                    Function{"log1p", std::log1p, 1.5, -inf, true},
                    Function{"tanh", std::tanh, 1.8},
                    Function{"erf", std::erf, 1.8, -inf, true},
                    Function{"rsqrt", rsqrt, 1.5},
                    Function{"sigmoid", sigmoid, 2.5},
                    Function{"exp", std::exp, 5, -8, false, true, 8},
                    Function{"exp", std::exp, 25, -87, false, true, 87},
                    Function{"tanh", std::tanh, 2.5, -inf, false, true},
                    Function{"sigmoid", sigmoid, 6, -8, false, true, 8}),
    [](const auto &info) {
      return info.param.name + std::to_string(info.index);
    });

// Small numbers of f64 too: log1p was log(1 + x) on a CPU, and so were what is
// made of it.
TEST(Doubles, KeepTheirDigits) {
  struct OfDouble {
    const char *name;
    long double (*exact)(long double);
    double least, most;
  };
  auto inverseRoot = [](long double x) { return 1 / std::sqrt(x); };
  const OfDouble functions[] = {
      {"log1p", std::log1p, -1, inf}, {"expm1", std::expm1, -inf, inf},
      {"exp", std::exp, -inf, inf},   {"log", std::log, 0, inf},
      {"tanh", std::tanh, -inf, inf}, {"erf", std::erf, -inf, inf},
      {"sin", std::sin, -inf, inf},   {"rsqrt", inverseRoot, 0, inf}};
  for (const OfDouble &function : functions) {
    std::vector<double> numbers;
    std::mt19937_64 random(5);
    for (int exponent = -70; exponent < 8; ++exponent)
      for (int i = 0; i < 40; ++i) {
        double x = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                              exponent);
        x = i % 2 ? x : -x;
        if (x > function.least && x < function.most)
          numbers.push_back(x);
      }
    reference::Array x(
        llvm::ArrayRef<int64_t>{static_cast<int64_t>(numbers.size())});
    llvm::copy(numbers, x.data.begin());
    std::string type = "tensor<" + std::to_string(x.size()) + "xf64>";
    std::string text = program("x: " + type + " -> " + type,
                               std::string("%y = tandem.") + function.name +
                                   " %x : " + type + "\nreturn %y : " + type);
    for (const char *target : {"cpu", "cuda"}) {
      SCOPED_TRACE(std::string(function.name) + " for " + target);
      Machine machine(text, target, /*isFast=*/false);
      ASSERT_EQ(machine.error(), "");
      Arrays y = machine.run("evaluate", {x});
      long double most = 0;
      double where = 0;
      for (int64_t i = 0; i < x.size(); ++i) {
        long double exact = function.exact(x[i]);
        long double error = std::abs((y[0][i] - exact) / exact) * 0x1p52L;
        if (!(error <= most)) {
          most = error;
          where = x[i];
        }
      }
      EXPECT_LE(most, 2.5) << "at " << where;
    }
  }
}

/// A quotient by a number of the row is the one that a division gives, to the
/// last bit: also halfway between two denormal numbers.
TEST(Quotients, OfRowsAreExact) {
  constexpr int64_t kRows = 64, kColumns = 192;
  const std::vector<int64_t> shape = {kRows, kColumns};
  Arrays in = {reference::Array(shape), reference::Array(shape)};
  std::mt19937 random(3);
  auto number = [&](int low, int high) {
    int exponent = low + static_cast<int>(random() % (high - low));
    double digits = 1 + static_cast<double>(random() >> 9) * 0x1p-23;
    return static_cast<double>(static_cast<float>(
        std::ldexp(random() % 2 ? digits : -digits, exponent)));
  };
  const double special[] = {0.0,     -0.0,     inf,        -inf, std::nan(""),
                            0x1p100, 0x1p-149, 0x1.8p-148, 3.0,  -7.0};
  // The divisor is the sum of its row, where all else is 0.
  auto divisor = [&](int64_t r) -> double & {
    return in[1].data[r * kColumns + 5];
  };
  for (int64_t r = 0; r < kRows; ++r) {
    divisor(r) = r < 10   ? special[r]
                 : r < 24 ? static_cast<double>(2 * r - 17) // 3, 5, ...
                          : number(-149, 128);
    for (int64_t j = 0; j < kColumns; ++j)
      in[0].data[r * kColumns + j] =
          j < 10       ? special[j]
          : j % 3 == 0 ? static_cast<double>(2 * j + 1) * 0x1p-149
          : r % 2 == 0 ? number(-149, -100)
                       : number(-149, 128);
  }
  std::string x = "tensor<64x192xf32>", row = "tensor<64xf32>";
  std::string text =
      program("x: " + x + ", d: " + x + " -> " + x,
              "%s = tandem.reduce_sum %d over [1] : " + x + " -> " + row +
                  "\n%w = tandem.broadcast %s to [64, 192] along [0] : " + row +
                  " -> " + x + "\n%y = tandem.div %x, %w : " + x +
                  "\nreturn %y : " + x);
  Machine machine(text, "cpu", false);
  ASSERT_EQ(machine.error(), "");
  Arrays y = machine.run("evaluate", in);
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    auto by = static_cast<float>(divisor(i / kColumns));
    float exact = static_cast<float>(in[0].data[i]) / (by == 0 ? 0 : by);
    EXPECT_EQ(std::isnan(y[0].data[i]), std::isnan(exact));
    if (std::isnan(exact))
      continue;
    EXPECT_EQ(y[0].data[i], exact) << in[0].data[i] << " / " << by;
    EXPECT_EQ(std::signbit(y[0].data[i]), std::signbit(exact));
  }
}
