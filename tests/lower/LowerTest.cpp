//===- LowerTest.cpp - kernels compute what the reference says ------------===//
//
// Each case is a function at phase `partition`. It is planned, lowered,
// compiled and run with its items in one range, in ranges of one and of three,
// and the results must agree with the reference and, bit for bit, with each
// other. The same for CUDA, with threads in several orders.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

TEST(Views, BroadcastSlicePadPermute) {
  check(program("x: tensor<5x6xf32>, v: tensor<6xf32> -> tensor<5x6xf32>, "
                "tensor<2x3xf32>, tensor<9x13xf32>, tensor<6x5xf32>",
                R"(
    %0 = tandem.broadcast %v to [5, 6] along [1] : tensor<6xf32> -> tensor<5x6xf32>
    %1 = tandem.add %x, %0 : tensor<5x6xf32>
    %2 = tandem.slice %1 from [1, 0] to [5, 6] step [2, 2] : tensor<5x6xf32> -> tensor<2x3xf32>
    %3 = tandem.neg %2 : tensor<2x3xf32>
    %4 = tandem.exp %1 : tensor<5x6xf32>
    %5 = tandem.pad %4 low [3, 0] high [1, 2] interior [0, 1] with 7.0 : f32 : tensor<5x6xf32> -> tensor<9x13xf32>
    %6 = tandem.permute %1 by [1, 0] : tensor<5x6xf32> -> tensor<6x5xf32>
    %7 = tandem.sin %6 : tensor<6x5xf32>
    return %1, %3, %5, %7 : tensor<5x6xf32>, tensor<2x3xf32>, tensor<9x13xf32>, tensor<6x5xf32>)"));
}

TEST(Views, PadOfSlices) {
  // What the gradient of a slice is; reads outside would crash or show NaN.
  check(program("x: tensor<2x17xf32>, y: tensor<2x15xf32> -> tensor<2x32xf32>",
                R"(
    %0 = tandem.pad %x low [0, 0] high [0, 15] interior [0, 0] with 0.0 : f32 : tensor<2x17xf32> -> tensor<2x32xf32>
    %1 = tandem.pad %y low [0, 17] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<2x15xf32> -> tensor<2x32xf32>
    %2 = tandem.add %0, %1 : tensor<2x32xf32>
    return %2 : tensor<2x32xf32>)"),
        {.kernels = 1});
}

/// What as_strided means: rows by constant indices, and their gradients.
TEST(Views, A16_ElementsByConstantPositions) {
  check(program("x: tensor<2x3xf32>, g: tensor<4x3xf32> -> tensor<4x3xf32>, "
                "tensor<2x3xf32>",
                R"(
    %i = tandem.constant dense<[0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5]> : tensor<12xi64>
    %f = tandem.reshape %x to [6] : tensor<2x3xf32> -> tensor<6xf32>
    %t = tandem.take %f, %i : tensor<6xf32>, tensor<12xi64> -> tensor<12xf32>
    %y = tandem.reshape %t to [4, 3] : tensor<12xf32> -> tensor<4x3xf32>
    %h = tandem.reshape %g to [12] : tensor<4x3xf32> -> tensor<12xf32>
    %d = tandem.take_grad %h, %i to [6] : tensor<12xf32>, tensor<12xi64> -> tensor<6xf32>
    %dx = tandem.reshape %d to [2, 3] : tensor<6xf32> -> tensor<2x3xf32>
    return %y, %dx : tensor<4x3xf32>, tensor<2x3xf32>)"),
        {.kernels = 2});
}

TEST(Views, DetachIsFree) {
  check(program("x: tensor<4x6xf32> -> tensor<24xf32>",
                R"(
    %0 = tandem.exp %x : tensor<4x6xf32>
    %1 = tandem.detach %0 : tensor<4x6xf32>
    %2 = tandem.reshape %1 to [24] : tensor<4x6xf32> -> tensor<24xf32>
    return %2 : tensor<24xf32>)"),
        {.kernels = 1});
}

TEST(Views, ReshapesInsideAndOutside) {
  check(program("x: tensor<4x6xf32>, v: tensor<3xf32> -> tensor<2x2x2x3xf32>, "
                "tensor<24xf32>",
                R"(
    %0 = tandem.exp %x : tensor<4x6xf32>
    %1 = tandem.reshape %0 to [2, 2, 2, 3] : tensor<4x6xf32> -> tensor<2x2x2x3xf32>
    %2 = tandem.broadcast %v to [2, 2, 2, 3] along [3] : tensor<3xf32> -> tensor<2x2x2x3xf32>
    %3 = tandem.mul %1, %2 : tensor<2x2x2x3xf32>
    %4 = tandem.permute %3 by [0, 2, 1, 3] : tensor<2x2x2x3xf32> -> tensor<2x2x2x3xf32>
    %5 = tandem.reshape %0 to [24] : tensor<4x6xf32> -> tensor<24xf32>
    return %4, %5 : tensor<2x2x2x3xf32>, tensor<24xf32>)"));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::string softmax(int64_t rows, int64_t columns) {
  std::string n = std::to_string(rows), m = std::to_string(columns);
  std::string full = "tensor<" + n + "x" + m + "xf32>",
              row = "tensor<" + n + "xf32>";
  std::string to =
      " to [" + n + ", " + m + "] along [0] : " + row + " -> " + full + "\n";
  return program("x: " + full + " -> " + full,
                 "%m = tandem.reduce_max %x over [1] : " + full + " -> " + row +
                     "\n%mb = tandem.broadcast %m" + to +
                     "%c = tandem.sub %x, %mb : " + full +
                     "\n%e = tandem.exp %c : " + full +
                     "\n%s = tandem.reduce_sum %e over [1] : " + full + " -> " +
                     row + "\n%sb = tandem.broadcast %s" + to +
                     "%y = tandem.div %e, %sb : " + full +
                     "\nreturn %y : " + full);
}

TEST(Rows, Softmax) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                               {1, 17},
                               {17, 33},
                               {64, 10},
                               {5, 1000},
                               {2, 20001}})
    check(softmax(rows, columns), {.kernels = 1});
}

TEST(Rows, SoftmaxOfNaNAndInfinity) {
  Arrays arguments = {reference::Array(llvm::ArrayRef<int64_t>{4, 19})};
  for (int64_t i = 0; i < 4 * 19; ++i)
    arguments[0][i] = static_cast<float>(0.1 * static_cast<double>(i % 23));
  arguments[0][5] = NAN;
  arguments[0][19 + 3] = -INFINITY;
  arguments[0][2 * 19 + 7] = INFINITY;
  arguments[0][3 * 19 + 18] = 88.0;
  check(softmax(4, 19), {}, &arguments);
}

TEST(Rows, CrossEntropy) {
  check(program("x: tensor<33x10xf32>, t: tensor<33xi64> -> tensor<f32>, "
                "tensor<33x10xf32>",
                R"(
    %m = tandem.reduce_max %x over [1] : tensor<33x10xf32> -> tensor<33xf32>
    %mb = tandem.broadcast %m to [33, 10] along [0] : tensor<33xf32> -> tensor<33x10xf32>
    %c = tandem.sub %x, %mb : tensor<33x10xf32>
    %e = tandem.exp %c : tensor<33x10xf32>
    %s = tandem.reduce_sum %e over [1] : tensor<33x10xf32> -> tensor<33xf32>
    %l = tandem.log %s : tensor<33xf32>
    %lb = tandem.broadcast %l to [33, 10] along [0] : tensor<33xf32> -> tensor<33x10xf32>
    %p = tandem.sub %c, %lb : tensor<33x10xf32>
    %i = tandem.iota dim 1 : tensor<33x10xi64>
    %tb = tandem.broadcast %t to [33, 10] along [0] : tensor<33xi64> -> tensor<33x10xi64>
    %hit = tandem.compare eq %i, %tb : tensor<33x10xi64>
    %h = tandem.cast %hit : tensor<33x10xi1> to tensor<33x10xf32>
    %z = tandem.mul %h, %p : tensor<33x10xf32>
    %r = tandem.reduce_sum %z over [1] : tensor<33x10xf32> -> tensor<33xf32>
    %n = tandem.neg %r : tensor<33xf32>
    %loss = tandem.reduce_sum %n over [0] : tensor<33xf32> -> tensor<f32>
    %sm = tandem.exp %p : tensor<33x10xf32>
    %d = tandem.sub %sm, %h : tensor<33x10xf32>
    return %loss, %d : tensor<f32>, tensor<33x10xf32>)"),
        {.kernels = 2});
}

const char *layerNorm = R"(
    %n = tandem.constant dense<0.0208333333> : tensor<4x5xf32>
    %s = tandem.reduce_sum %x over [2] : tensor<4x5x48xf32> -> tensor<4x5xf32>
    %mean = tandem.mul %s, %n : tensor<4x5xf32>
    %mb = tandem.broadcast %mean to [4, 5, 48] along [0, 1] : tensor<4x5xf32> -> tensor<4x5x48xf32>
    %c = tandem.sub %x, %mb : tensor<4x5x48xf32>
    %c2 = tandem.mul %c, %c : tensor<4x5x48xf32>
    %q = tandem.reduce_sum %c2 over [2] : tensor<4x5x48xf32> -> tensor<4x5xf32>
    %var = tandem.mul %q, %n : tensor<4x5xf32>
    %eps = tandem.constant dense<1.0e-5> : tensor<4x5xf32>
    %ve = tandem.add %var, %eps : tensor<4x5xf32>
    %rstd = tandem.rsqrt %ve : tensor<4x5xf32>
    %rb = tandem.broadcast %rstd to [4, 5, 48] along [0, 1] : tensor<4x5xf32> -> tensor<4x5x48xf32>
    %hat = tandem.mul %c, %rb : tensor<4x5x48xf32>
    %gb = tandem.broadcast %g to [4, 5, 48] along [2] : tensor<48xf32> -> tensor<4x5x48xf32>
)";

TEST(Rows, LayerNorm) {
  check(
      program("x: tensor<4x5x48xf32>, g: tensor<48xf32>, b: tensor<48xf32> -> "
              "tensor<4x5x48xf32>, tensor<4x5xf32>, tensor<4x5xf32>",
              std::string(layerNorm) + R"(
    %bb = tandem.broadcast %b to [4, 5, 48] along [2] : tensor<48xf32> -> tensor<4x5x48xf32>
    %y = tandem.mul %hat, %gb : tensor<4x5x48xf32>
    %z = tandem.add %y, %bb : tensor<4x5x48xf32>
    return %z, %mean, %rstd : tensor<4x5x48xf32>, tensor<4x5xf32>, tensor<4x5xf32>)"),
      {.kernels = 1});
}

static std::string layerNormBackward() {
  return program("x: tensor<4x5x48xf32>, g: tensor<48xf32>, "
                 "dy: tensor<4x5x48xf32> -> "
                 "tensor<4x5x48xf32>, tensor<48xf32>, tensor<48xf32>",
                 std::string(layerNorm) + R"(
    %dh = tandem.mul %dy, %gb : tensor<4x5x48xf32>
    %dhh = tandem.mul %dh, %hat : tensor<4x5x48xf32>
    %s1 = tandem.reduce_sum %dh over [2] : tensor<4x5x48xf32> -> tensor<4x5xf32>
    %s2 = tandem.reduce_sum %dhh over [2] : tensor<4x5x48xf32> -> tensor<4x5xf32>
    %m1 = tandem.mul %s1, %n : tensor<4x5xf32>
    %m2 = tandem.mul %s2, %n : tensor<4x5xf32>
    %m1b = tandem.broadcast %m1 to [4, 5, 48] along [0, 1] : tensor<4x5xf32> -> tensor<4x5x48xf32>
    %m2b = tandem.broadcast %m2 to [4, 5, 48] along [0, 1] : tensor<4x5xf32> -> tensor<4x5x48xf32>
    %t1 = tandem.mul %hat, %m2b : tensor<4x5x48xf32>
    %t2 = tandem.sub %dh, %m1b : tensor<4x5x48xf32>
    %t3 = tandem.sub %t2, %t1 : tensor<4x5x48xf32>
    %dx = tandem.mul %t3, %rb : tensor<4x5x48xf32>
    %t4 = tandem.mul %dy, %hat : tensor<4x5x48xf32>
    %dg = tandem.reduce_sum %t4 over [0, 1] : tensor<4x5x48xf32> -> tensor<48xf32>
    %db = tandem.reduce_sum %dy over [0, 1] : tensor<4x5x48xf32> -> tensor<48xf32>
    return %dx, %dg, %db : tensor<4x5x48xf32>, tensor<48xf32>, tensor<48xf32>)");
}

TEST(Rows, LayerNormBackward) {
  check(layerNormBackward(), {.tolerance = 1e-5});
}

// With rows enough for parts of sums: on either target one kernel makes dx and
// the parts.
TEST(Rows, LayerNormBackwardOfManyRows) {
  std::string text = layerNormBackward();
  for (auto [from, to] :
       {std::pair{"4x5x48x", "8x64x768x"},
        std::pair{"[4, 5, 48]", "[8, 64, 768]"}, std::pair{"4x5x", "8x64x"},
        std::pair{"<48x", "<768x"}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
      text.replace(at, std::strlen(from), to);
  check(text, {.tolerance = 1e-4});
  EXPECT_EQ(Machine(text).kernels("evaluate").size(), 3u);
  EXPECT_EQ(Machine(text, "cuda").kernels("evaluate").size(), 2u);
}

// One pass over the rows makes dx, and parts of dg and db, each of which is
// added up in a kernel of its own; with something expensive that several levels
// need.
TEST(Rows, PartialResults) {
  struct Case {
    int64_t rows, columns;
    const char *element;
    double tolerance;
  };
  for (auto [rows, columns, element, tolerance] :
       {Case{520, 517, "f32", 1e-4}, Case{264, 1001, "f64", 1e-10},
        Case{768, 344, "bf16", 0.1}}) {
    std::string kept = "tensor<" + std::to_string(rows) + "x" + element + ">";
    std::string row = "tensor<" + std::to_string(columns) + "x" + element + ">";
    std::string full = "tensor<" + std::to_string(rows) + "x" +
                       std::to_string(columns) + "x" + element + ">";
    std::string shape =
        " to [" + std::to_string(rows) + ", " + std::to_string(columns) + "] ";
    auto ofRows = [&](const char *to, const char *from) {
      return std::string(to) + " = tandem.broadcast " + from + shape +
             "along [0] : " + kept + " -> " + full + "\n";
    };
    auto sum = [&](const char *to, const char *from, bool overRow) {
      return std::string(to) + " = tandem.reduce_sum " + from + " over " +
             (overRow ? "[1]" : "[0]") + " : " + full + " -> " +
             (overRow ? kept : row) + "\n";
    };
    auto op = [&](const char *text) { return text + (" : " + full + "\n"); };
    std::string text = program(
        "x: " + full + ", dy: " + full + ", g: " + row + " -> " + full + ", " +
            row + ", " + row,
        "%n = tandem.constant dense<0.001> : " + kept + "\n" +
            sum("%s", "%x", true) + "%m = tandem.mul %s, %n : " + kept + "\n" +
            ofRows("%mb", "%m") + op("%c = tandem.sub %x, %mb") +
            op("%t = tandem.tanh %c") + "%gb = tandem.broadcast %g" + shape +
            "along [1] : " + row + " -> " + full + "\n" +
            op("%d = tandem.mul %dy, %gb") + op("%dt = tandem.mul %d, %t") +
            sum("%q", "%dt", true) + "%qm = tandem.mul %q, %n : " + kept +
            "\n" + ofRows("%qb", "%qm") + op("%e = tandem.mul %t, %qb") +
            op("%dx = tandem.sub %d, %e") + op("%p = tandem.mul %dy, %t") +
            sum("%dg", "%p", false) + sum("%db", "%dy", false) +
            "return %dx, %dg, %db : " + full + ", " + row + ", " + row);
    check(text, {.tolerance = tolerance});
    EXPECT_EQ(Machine(text).kernels("evaluate").size(), 3u);
    // Both sums of the parts are small, and returned: one kernel. The parts of
    // f64 are too many for registers.
    if (element != std::string("f64")) {
      EXPECT_EQ(Machine(text, "cuda").kernels("evaluate").size(), 2u);
    }
  }
}

TEST(Rows, BatchStatisticsOverChannels) {
  check(program("x: tensor<3x5x4x7xf32> -> tensor<3x5x4x7xf32>, tensor<5xf32>",
                R"(
    %n = tandem.constant dense<0.0119047619> : tensor<5xf32>
    %s = tandem.reduce_sum %x over [0, 2, 3] : tensor<3x5x4x7xf32> -> tensor<5xf32>
    %mean = tandem.mul %s, %n : tensor<5xf32>
    %mb = tandem.broadcast %mean to [3, 5, 4, 7] along [1] : tensor<5xf32> -> tensor<3x5x4x7xf32>
    %c = tandem.sub %x, %mb : tensor<3x5x4x7xf32>
    %c2 = tandem.mul %c, %c : tensor<3x5x4x7xf32>
    %q = tandem.reduce_sum %c2 over [0, 2, 3] : tensor<3x5x4x7xf32> -> tensor<5xf32>
    %r = tandem.rsqrt %q : tensor<5xf32>
    %rb = tandem.broadcast %r to [3, 5, 4, 7] along [1] : tensor<5xf32> -> tensor<3x5x4x7xf32>
    %y = tandem.mul %c, %rb : tensor<3x5x4x7xf32>
    return %y, %mean : tensor<3x5x4x7xf32>, tensor<5xf32>)"),
        {.kernels = 1});
}

/// 64 rows at a time behind a product: where these are no rows of its tiles, it
/// does not add them up.
TEST(Rows, SumsBehindProducts) {
  check(program("x: tensor<128x64xf32>, w: tensor<64x10xf32>, z: "
                "tensor<128x10xf32> -> tensor<2x10xf32>",
                R"(
    %y = tandem.matmul %x, %w : tensor<128x64xf32>, tensor<64x10xf32> -> tensor<128x10xf32>
    %m = tandem.mul %y, %z : tensor<128x10xf32>
    %r = tandem.reshape %m to [2, 64, 10] : tensor<128x10xf32> -> tensor<2x64x10xf32>
    %s = tandem.reduce_sum %r over [1] : tensor<2x64x10xf32> -> tensor<2x10xf32>
    return %s : tensor<2x10xf32>)"),
        {.tolerance = 1e-4});
  check(program("x: tensor<5x64x64xf32>, w: tensor<5x64x10xf32>, z: "
                "tensor<5x64x10xf32> -> tensor<5x10xf32>",
                R"(
    %y = tandem.matmul %x, %w : tensor<5x64x64xf32>, tensor<5x64x10xf32> -> tensor<5x64x10xf32>
    %m = tandem.mul %y, %z : tensor<5x64x10xf32>
    %s = tandem.reduce_sum %m over [1] : tensor<5x64x10xf32> -> tensor<5x10xf32>
    return %s : tensor<5x10xf32>)"),
        {.tolerance = 1e-4});
}

TEST(Rows, IntegersAndNarrowTypes) {
  check(program("x: tensor<7x33xi32>, h: tensor<7x33xbf16> -> tensor<7xi32>, "
                "tensor<7xi32>, tensor<7xbf16>, tensor<7xbf16>",
                R"(
    %0 = tandem.reduce_sum %x over [1] : tensor<7x33xi32> -> tensor<7xi32>
    %1 = tandem.reduce_min %x over [1] : tensor<7x33xi32> -> tensor<7xi32>
    %2 = tandem.reduce_sum %h over [1] : tensor<7x33xbf16> -> tensor<7xbf16>
    %3 = tandem.reduce_max %h over [1] : tensor<7x33xbf16> -> tensor<7xbf16>
    return %0, %1, %2, %3 : tensor<7xi32>, tensor<7xi32>, tensor<7xbf16>, tensor<7xbf16>)"),
        {.tolerance = 1e-2});
}

TEST(Rows, MeanOfMillions) {
  // All of one sign: a running sum in f32 would be off in the third digit.
  check(program("x: tensor<2048x2048xf32> -> tensor<f32>",
                R"(
    %s = tandem.reduce_sum %x over [0, 1] : tensor<2048x2048xf32> -> tensor<f32>
    %n = tandem.constant dense<2.38418579e-07> : tensor<f32>
    %m = tandem.mul %s, %n : tensor<f32>
    return %m : tensor<f32>)"),
        {.tolerance = 1e-6, .low = 0.5, .high = 1.5});
}

TEST(Rows, LongVectorThatDoesNotSplit) {
  check(program("x: tensor<1000003xf32> -> tensor<f32>",
                R"(
    %s = tandem.reduce_sum %x over [0] : tensor<1000003xf32> -> tensor<f32>
    return %s : tensor<f32>)"),
        {.tolerance = 1e-6, .low = 0.5, .high = 1.5});
}

// Large ones ask for what they will read; odd sizes, in all three forms.

TEST(Large, ElementsAhead) {
  check(program("x: tensor<1031x1033xf32>, h: tensor<1031x2066xbf16> -> "
                "tensor<1031x1033xf32>, tensor<1031x2066xbf16>",
                R"(
    %y = tandem.exp %x : tensor<1031x1033xf32>
    %g = tandem.neg %h : tensor<1031x2066xbf16>
    return %y, %g : tensor<1031x1033xf32>, tensor<1031x2066xbf16>)"),
        {.tolerance = 1e-5});
}

TEST(Large, RowsAndColumnsAhead) {
  check(program("x: tensor<1031x1033xf32> -> tensor<1031xf32>, "
                "tensor<1033xf32>, tensor<1031xf32>",
                R"(
    %rows = tandem.reduce_sum %x over [1] : tensor<1031x1033xf32> -> tensor<1031xf32>
    %columns = tandem.reduce_max %x over [0] : tensor<1031x1033xf32> -> tensor<1033xf32>
    %e = tandem.slice %x from [0, 3] to [1031, 1030] step [1, 1] : tensor<1031x1033xf32> -> tensor<1031x1027xf32>
    %r = tandem.reduce_max %e over [1] : tensor<1031x1027xf32> -> tensor<1031xf32>
    return %rows, %columns, %r : tensor<1031xf32>, tensor<1033xf32>, tensor<1031xf32>)"),
        {.tolerance = 1e-5, .low = 0.5, .high = 1.5});
}

//===----------------------------------------------------------------------===//
// Updates in place
//===----------------------------------------------------------------------===//

TEST(InPlace, MomentumBehindAMatrixProduct) {
  // Both updates overwrite their arguments in the kernel of the product.
  Machine machine(R"(
module @m attributes {tandem.phase = "partition"} {
  func.func @step(%x: tensor<33x17xf32> {tandem.role = #tandem.role<input "x">}, %d: tensor<33x70xf32> {tandem.role = #tandem.role<input "d">}, %w: tensor<17x70xf32> {tandem.role = #tandem.role<param "w">}, %m: tensor<17x70xf32> {tandem.role = #tandem.role<state "m">}) -> (tensor<17x70xf32> {tandem.role = #tandem.role<update of "w">}, tensor<17x70xf32> {tandem.role = #tandem.role<update of "m">}) {
    %g = tandem.matmul %x, %d {transpose_lhs} : tensor<33x17xf32>, tensor<33x70xf32> -> tensor<17x70xf32>
    %a = tandem.constant dense<0.9> : tensor<17x70xf32>
    %b = tandem.constant dense<0.01> : tensor<17x70xf32>
    %0 = tandem.mul %m, %a : tensor<17x70xf32>
    %1 = tandem.add %0, %g : tensor<17x70xf32>
    %2 = tandem.mul %1, %b : tensor<17x70xf32>
    %3 = tandem.sub %w, %2 : tensor<17x70xf32>
    return %3, %1 : tensor<17x70xf32>, tensor<17x70xf32>
  }
})");
  ASSERT_EQ(machine.error(), "");
  ASSERT_EQ(machine.kernels("step").size(), 1u);
  InPlaceAttr pairs = machine.kernels("step")[0].getInPlaceAttr();
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs.getPairs().size(), 2u);
  Arrays arguments = machine.randomArguments("step", 3);
  Arrays expected = machine.reference("step", arguments);
  for (int64_t longest : {0, 1})
    compare(machine.run("step", arguments, longest), expected, 5e-6);
}

TEST(InPlace, DyingInputsOfTheArena) {
  // The middle values overwrite each other; rows overwrite what they normalize.
  check(program("x: tensor<40x24xf32>, w: tensor<24x24xf32> -> "
                "tensor<40x24xf32>",
                R"(
    %0 = tandem.matmul %x, %w : tensor<40x24xf32>, tensor<24x24xf32> -> tensor<40x24xf32>
    %s = tandem.reduce_sum %0 over [1] : tensor<40x24xf32> -> tensor<40xf32>
    %b = tandem.broadcast %s to [40, 24] along [0] : tensor<40xf32> -> tensor<40x24xf32>
    %1 = tandem.sub %0, %b : tensor<40x24xf32>
    %2 = tandem.tanh %1 : tensor<40x24xf32>
    %3 = tandem.matmul %2, %w : tensor<40x24xf32>, tensor<24x24xf32> -> tensor<40x24xf32>
    return %3 : tensor<40x24xf32>)"),
        {.tolerance = 2e-5, .kernels = 3});
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

TEST(Columns, Sums) {
  for (const char *columns : {"1", "3", "16", "17", "64", "100", "1030"}) {
    std::string n = columns;
    std::string full = "tensor<33x" + n + "xf32>",
                one = "tensor<" + n + "xf32>";
    check(
        program("x: " + full + " -> " + one + ", " + one + ", " + full,
                "%e = tandem.exp %x : " + full +
                    "\n%s = tandem.reduce_sum %e over [0] : " + full + " -> " +
                    one + "\n%m = tandem.reduce_max %x over [0] : " + full +
                    " -> " + one + "\n%r = tandem.sqrt %s : " + one +
                    "\nreturn %r, %m, %e : " + one + ", " + one + ", " + full));
  }
}

TEST(Columns, TallSums) {
  check(program("x: tensor<65536x10xf32>, y: tensor<5000x40xf32> -> "
                "tensor<10xf32>, tensor<40xf32>",
                R"(
    %0 = tandem.reduce_sum %x over [0] : tensor<65536x10xf32> -> tensor<10xf32>
    %1 = tandem.reduce_sum %y over [0] : tensor<5000x40xf32> -> tensor<40xf32>
    return %0, %1 : tensor<10xf32>, tensor<40xf32>)"),
        {.tolerance = 1e-6, .low = 0.5, .high = 1.5});
}

TEST(Columns, NormalizedOverOuterDimensions) {
  check(program("x: tensor<3x4x7x20xf32> -> tensor<3x4x7x20xf32>",
                R"(
    %s = tandem.reduce_sum %x over [0, 1, 2] : tensor<3x4x7x20xf32> -> tensor<20xf32>
    %n = tandem.constant dense<0.0119047619> : tensor<20xf32>
    %mean = tandem.mul %s, %n : tensor<20xf32>
    %mb = tandem.broadcast %mean to [3, 4, 7, 20] along [3] : tensor<20xf32> -> tensor<3x4x7x20xf32>
    %c = tandem.sub %x, %mb : tensor<3x4x7x20xf32>
    %c2 = tandem.mul %c, %c : tensor<3x4x7x20xf32>
    %q = tandem.reduce_sum %c2 over [0, 1, 2] : tensor<3x4x7x20xf32> -> tensor<20xf32>
    %r = tandem.rsqrt %q : tensor<20xf32>
    %rb = tandem.broadcast %r to [3, 4, 7, 20] along [3] : tensor<20xf32> -> tensor<3x4x7x20xf32>
    %y = tandem.mul %c, %rb : tensor<3x4x7x20xf32>
    return %y : tensor<3x4x7x20xf32>)"),
        {.kernels = 1});
}

TEST(Columns, MiddleDimension) {
  check(program("x: tensor<3x19x6xf32> -> tensor<3x6xf32>",
                R"(
    %s = tandem.reduce_min %x over [1] : tensor<3x19x6xf32> -> tensor<3x6xf32>
    return %s : tensor<3x6xf32>)"),
        {.kernels = 1});
}

} // namespace
