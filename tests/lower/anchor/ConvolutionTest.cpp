//===- ConvolutionTest.cpp - convolutions on the cpu ----------------------===//
#include "tests/lower/anchor/ConvolutionKernel.h"
#include "tests/lower/anchor/KernelCheck.h"

using namespace tandem::test;

static std::string list(std::vector<int64_t> numbers, const char *between) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? between : "") + std::to_string(numbers[i]);
  return text;
}

/// Whether Winograd's method can compute it. Where it does hangs on the length
/// of vectors, so that its errors are allowed (WinogradTest.cpp).
static bool isForWinograd(const Convolution &c) {
  return c.kh == 3 && c.kw == 3 && c.stride[0] == 1 && c.stride[1] == 1 &&
         c.dilation[0] == 1 && c.dilation[1] == 1 && c.groups == 1;
}

/// Checks the convolution and both gradients.
static void check(const Convolution &c, int vectorBits = 0,
                  bool hasEnd = false) {
  double errors = isForWinograd(c) ? 3 : 1;
  for (ConvolutionPass pass : kConvolutionPasses)
    checkKernel(convolutionKernel(c, pass, hasEnd),
                {errors * termsOf(c, pass), vectorBits});
}

TEST(Convolution, Pointwise) {
  check({2, 20, 5, 7, 13, 1, 1});
  check({1, 1, 1, 1, 1, 1, 1});
  check({3, 70, 4, 4, 65, 1, 1});
}

TEST(Convolution, Same) {
  check({2, 5, 9, 11, 7, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({1, 130, 7, 7, 20, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({2, 3, 8, 20, 4, 5, 5, {1, 1}, {2, 2, 2, 2}});
}

TEST(Convolution, Valid) {
  check({2, 3, 9, 10, 4, 3, 2});
  check({1, 2, 5, 5, 3, 5, 5});
}

TEST(Convolution, Strides) {
  check({2, 3, 15, 14, 10, 7, 7, {2, 2}, {3, 3, 3, 3}});
  check({2, 6, 8, 9, 5, 1, 1, {2, 2}});
  check({1, 4, 12, 13, 6, 3, 2, {3, 2}, {1, 0, 1, 1}});
  check({1, 4, 6, 6, 3, 2, 2, {4, 4}}); // pixels that no window sees
}

TEST(Convolution, DilationAndUnevenPadding) {
  check({2, 3, 11, 12, 4, 3, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}});
  check({1, 3, 10, 12, 4, 2, 3, {2, 1}, {0, 3, 1, 0}, {1, 3}});
}

TEST(Convolution, Groups) {
  check({2, 6, 7, 7, 9, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3});
  check({2, 8, 7, 7, 8, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 8}); // depthwise
  check({1, 12, 5, 5, 6, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
}

TEST(Convolution, Depthwise) {
  check({3, 5, 18, 35, 5, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5});
  check({2, 4, 33, 32, 4, 5, 5, {2, 1}, {2, 2, 2, 2}, {1, 1}, 4});
  check({1, 3, 9, 40, 3, 3, 2, {1, 1}, {0, 2, 3, 0}, {2, 3}, 3});
  check({2, 3, 12, 20, 3, 7, 7, {1, 1}, {3, 3, 3, 3}, {1, 1}, 3});
  for (const char *element : {"f64", "bf16"})
    check({2, 4, 8, 19, 4, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4, element});
  check({2, 4, 8, 19, 4, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4}, 256);
}

/// Lines that fill half of a vector or less have shorter ones, and all lines of
/// a plane are finished at once.
TEST(Convolution, DepthwiseOfShortLines) {
  for (bool hasEnd : {false, true}) {
    auto check = [&](const Convolution &c) { ::check(c, 0, hasEnd); };
    check({3, 5, 4, 4, 5, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}, 5});
    check({2, 5, 7, 7, 5, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5});
    check({2, 5, 7, 7, 5, 5, 5, {2, 2}, {2, 2, 2, 2}, {1, 1}, 5});
    check({2, 3, 14, 13, 3, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 3});
    check({2, 6, 9, 5, 6, 3, 4, {1, 2}, {0, 1, 2, 1}, {2, 1}, 3});
    check({1, 4, 30, 3, 4, 7, 3, {1, 1}, {3, 3, 1, 1}, {1, 1}, 4});
    check({2, 19, 7, 7, 19, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 19});
    check({2, 3, 1, 1, 3, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3});
    check({2, 3, 2, 6, 3, 3, 3, {1, 1}, {3, 3, 3, 3}, {1, 1}, 3});
    check({2, 5, 6, 7, 10, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5});
    ::check({2, 9, 7, 7, 9, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 9}, 128,
            hasEnd);
    ::check({2, 5, 9, 4, 5, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5}, 256,
            hasEnd);
    for (const char *element : {"f64", "bf16"})
      check({2, 4, 7, 6, 4, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4, element});
  }
}

/// Planes whose vectors reach over the ends of lines: of several vectors, the
/// last of one pixel or of all, in two parts; with fewer and with more lines of
/// the result, and taps that see nothing but padding.
TEST(Convolution, DepthwiseOfSmallImages) {
  for (bool hasEnd : {false, true})
    for (int bits : {0, 256}) {
      auto check = [&](const Convolution &c) { ::check(c, bits, hasEnd); };
      check({3, 5, 14, 14, 5, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}, 5});
      check({1, 3, 16, 16, 3, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3});
      check({3, 17, 7, 7, 17, 3, 3, {1, 1}, {0, 0, 1, 1}, {1, 1}, 17});
      check({1, 7, 5, 7, 7, 3, 3, {1, 1}, {4, 3, 1, 1}, {1, 1}, 7});
      check({3, 2, 9, 11, 2, 3, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}, 2});
      check({2, 3, 1, 1, 3, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}, 3});
      check({2, 3, 13, 1, 3, 3, 1, {1, 1}, {1, 1, 0, 0}, {1, 1}, 3});
      check({1, 3, 4, 8, 3, 2, 3, {1, 1}, {0, 1, 1, 1}, {1, 1}, 3, "f64"});
      // A regression: strides over lines of which each tap sees one.
      check({6, 1, 9, 9, 1, 1, 1, {2, 1}, {0, 0, 0, 0}, {2, 2}, 1});
      check({2, 5, 9, 8, 5, 1, 3, {2, 1}, {0, 0, 1, 1}, {1, 1}, 5});
      check({2, 3, 10, 7, 3, 1, 3, {3, 1}, {1, 1, 1, 1}, {1, 1}, 3});
    }
}

/// The first layer of a network, whose filters are cut into tiles of which the
/// last is short.
TEST(Convolution, ShortSumsOfManyFilters) {
  for (bool hasEnd : {false, true})
    for (int bits : {0, 256}) {
      auto check = [&](const Convolution &c) { ::check(c, bits, hasEnd); };
      check({1, 3, 13, 35, 32, 3, 3, {2, 2}, {1, 1, 1, 1}});
      check({3, 3, 20, 19, 19, 3, 3, {1, 1}, {1, 1, 1, 1}});
      check({1, 1, 7, 40, 64, 5, 5, {2, 1}, {2, 2, 2, 2}});
      check({2, 3, 23, 37, 61, 3, 3, {2, 2}});
      check({1, 3, 5, 50, 33, 3, 3, {1, 2}, {0, 1, 1, 0}, {1, 1}, 1, "f64"});
    }
}

/// Blocks of lines and of images, bands of planes of which the last is short,
/// several blocks of k, packed and plain factors; with strides vectors that are
/// on part of a line, on one or on several.
TEST(Convolution, PointwiseBlocks) {
  check({1, 20, 24, 56, 70, 1, 1});
  check({4, 300, 7, 7, 33, 1, 1});
  check({2, 33, 14, 14, 130, 1, 1});
  check({8, 40, 4, 4, 24, 1, 1, {2, 2}});
  check({4, 18, 8, 8, 100, 1, 1, {2, 2}});
  check({2, 24, 16, 16, 27, 1, 1, {2, 2}});
  check({1, 260, 32, 32, 13, 1, 1, {2, 2}});
  check({1, 15, 8, 128, 40, 1, 1, {2, 2}});
  check({2, 40, 14, 14, 40, 1, 1, {2, 2}});
  check({2, 48, 8, 8, 64, 1, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}, 2});
  check({2, 64, 6, 8, 48, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
  for (const char *element : {"f64", "bf16", "f16"}) {
    check({2, 20, 8, 8, 24, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, element});
    check({2, 20, 8, 8, 24, 1, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1, element});
  }
  for (int bits : {128, 256}) {
    check({2, 20, 8, 8, 24, 1, 1}, bits);
    check({2, 20, 8, 8, 24, 1, 1, {2, 2}}, bits);
  }
}

/// Planes whose lines fill no vectors, in blocks of which the last has less:
/// one block of k and several, groups, and vectors of two widths.
TEST(Convolution, PointwiseBlocksWithinPlanes) {
  for (bool hasEnd : {false, true}) {
    auto check = [&](const Convolution &c, int bits = 0) {
      ::check(c, bits, hasEnd);
    };
    check({3, 20, 27, 27, 24, 1, 1});
    check({1, 300, 19, 19, 33, 1, 1});
    check({1, 9000, 5, 5, 13, 1, 1});
    check({2, 32, 1, 1003, 26, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
    check({2, 17, 35, 35, 13, 1, 1}, 256);
    check({2, 17, 21, 23, 60, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, "f64"});
    check({1, 40, 29, 29, 30, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, "bf16"});
  }
}

/// Strides whose pixels a slice has first: of lines that fill no vectors, of
/// other strides than two, with groups and pixels that nobody sees.
TEST(Convolution, PointwiseOfThinImages) {
  check({2, 128, 28, 28, 256, 1, 1, {2, 2}});
  check({1, 192, 21, 30, 320, 1, 1, {3, 1}});
  check({2, 256, 19, 17, 256, 1, 1, {1, 4}, {0, 0, 0, 0}, {1, 1}, 2});
  check({1, 160, 14, 26, 200, 1, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1, "f64"});
}

/// A regression: the next block's rows are packed in rounds of k, of which
/// there were fewer than rows where blocks of k are no whole rounds.
TEST(Convolution, PointwiseBlocksOfKThatAreNoWholeRounds) {
  check({6, 300, 7, 7, 28, 1, 1});
  check({6, 605, 7, 7, 28, 1, 1});
}

/// Sums so long that tiles have three vectors: blocks that are whole panels or
/// leave two vectors, with masks, with strides, of several blocks of k.
TEST(Convolution, PointwisePanelsOfThree) {
  check({1, 140, 24, 24, 20, 1, 1});
  check({2, 150, 16, 16, 149, 1, 1});
  check({4, 200, 7, 7, 30, 1, 1});
  check({1, 300, 32, 32, 150, 1, 1, {2, 2}});
  check({4, 131, 8, 16, 17, 1, 1, {2, 2}});
  check({2, 320, 12, 8, 30, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
  check({2, 260, 8, 8, 33, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, "f64"});
}

/// Vectors of pixels: of both phases, lines that fill no tile, several bands
/// and blocks of planes, taps that no pixel of a phase sees.
TEST(Convolution, FewPlanes) {
  check({1, 3, 31, 30, 12, 7, 7, {2, 2}, {3, 3, 3, 3}});
  check({1, 3, 70, 66, 9, 3, 3, {2, 2}, {1, 1, 1, 1}});
  check({1, 2, 5, 300, 4, 3, 5, {1, 2}, {1, 1, 2, 2}});
  check({1, 8, 13, 21, 8, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({2, 10, 11, 17, 6, 3, 3, {2, 1}, {1, 0, 2, 0}, {1, 2}, 2});
  check({1, 5, 12, 40, 17, 1, 1, {2, 2}});
  check({1, 4, 9, 36, 5, 1, 1, {3, 2}, {1, 1, 0, 1}});
  check({2, 6, 20, 34, 12, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 6});
  check({1, 3, 50, 19, 3, 5, 5, {3, 2}, {2, 2, 2, 2}, {1, 1}, 3});
  check({2, 4, 60, 56, 4, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4});
  check({1, 2, 9, 33, 2, 2, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}, 2});
  for (const char *element : {"f64", "bf16", "f16"}) {
    check({1, 3, 18, 34, 9, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, element});
    check({1, 4, 9, 19, 4, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4, element});
  }
  for (int bits : {128, 256}) {
    check({1, 3, 18, 34, 9, 3, 3, {2, 2}, {1, 1, 1, 1}}, bits);
    check({1, 4, 9, 19, 4, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4}, bits);
  }
}

/// A regression: of nine 16-bit numbers, the last was stored with 32 bits
/// (tandem-single-lane-stores, compiler/emit/passes/Passes.h).
TEST(Convolution, FiltersOfOnePlane) {
  for (int bits : {128, 256})
    for (const char *element : {"f16", "bf16"})
      for (ConvolutionPass pass : kConvolutionPasses) {
        Convolution c{1, 1,      17,           50,     7, 3,
                      3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, element};
        Tolerance tolerance{3 * termsOf(c, pass), bits};
        tolerance.alwaysUsual = true;
        checkKernel(convolutionKernel(c, pass), tolerance);
      }
}

TEST(Convolution, ManyBlocksOfK) {
  check({1, 150, 4, 5, 10, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({30, 3, 8, 8, 130, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({2, 4, 40, 40, 6, 3, 3, {1, 1}, {1, 1, 1, 1}});
}

TEST(Convolution, VectorsOfFilters) {
  // Several panels; planes and pixels in blocks, of which the last are short.
  check({3, 40, 6, 5, 70, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({40, 20, 4, 4, 33, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({1, 17, 67, 35, 16, 3, 3, {1, 1}, {1, 1, 1, 1}});
  check({2, 11, 35, 33, 32, 3, 3, {1, 1}, {0, 1, 2, 0}});
  check({9, 33, 9, 9, 48, 3, 3, {2, 2}, {1, 1, 1, 1}});
  check({2, 32, 40, 41, 20, 3, 3, {2, 2}, {1, 1, 1, 1}});
  check({5, 100, 8, 8, 24, 1, 1, {2, 2}});
  check({3, 24, 17, 16, 20, 5, 4, {3, 2}, {2, 1, 1, 2}});
  check({2, 12, 19, 18, 12, 7, 7, {2, 1}, {3, 3, 3, 3}, {1, 2}});
  check({2, 40, 7, 8, 72, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2});
  check({1, 20, 12, 12, 20, 3, 3, {1, 1}, {4, 4, 4, 4}, {2, 2}});
  check({1, 20, 3, 3, 20, 3, 3, {4, 4}, {1, 1, 1, 1}});
}

TEST(Convolution, Elements) {
  for (const char *element : {"f64", "bf16", "f16"}) {
    check({2, 20, 7, 6, 18, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, element});
    check({2, 20, 7, 6, 18, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, element});
  }
  for (const char *element : {"f64", "bf16", "f16"})
    check({2, 5, 7, 6, 6, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, element});
  check({1, 4, 9, 9, 4, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 2, "bf16"});
}

/// Pairs of planes and of images, where the processor multiplies pairs: odd
/// numbers of them, the last block of few; bands of lines, phases, groups, taps
/// in loops, several panels, single pixels.
TEST(Convolution, PairsOfBf16) {
  auto checkPairs = [](Convolution c) {
    c.element = "bf16";
    check(c);
  };
  checkPairs({3, 41, 6, 5, 70, 3, 3, {2, 2}, {1, 1, 1, 1}});
  checkPairs({9, 33, 9, 9, 47, 3, 3, {2, 2}, {1, 1, 1, 1}});
  checkPairs({2, 32, 40, 41, 20, 3, 3, {2, 2}, {1, 1, 1, 1}});
  checkPairs({5, 101, 8, 8, 24, 1, 1, {2, 2}});
  checkPairs({3, 25, 17, 16, 21, 5, 4, {3, 2}, {2, 1, 1, 2}});
  checkPairs({2, 13, 19, 18, 12, 7, 7, {2, 1}, {3, 3, 3, 3}, {1, 2}});
  checkPairs({3, 42, 7, 8, 74, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}, 2});
  checkPairs({1, 21, 12, 12, 19, 3, 3, {1, 1}, {4, 4, 4, 4}, {2, 2}});
  checkPairs({1, 20, 3, 3, 20, 3, 3, {4, 4}, {1, 1, 1, 1}});
  checkPairs({3, 17, 67, 35, 16, 5, 3, {2, 1}, {1, 1, 1, 1}});
  checkPairs({40, 300, 4, 4, 33, 1, 1});
  checkPairs({7, 259, 5, 3, 70, 1, 1});
  checkPairs({2, 33, 14, 14, 130, 1, 1});
  checkPairs({4, 300, 8, 8, 33, 1, 1, {2, 2}});
  checkPairs({2, 24, 16, 16, 27, 1, 1, {2, 2}});
  checkPairs({1, 1031, 6, 8, 48, 1, 1});
  checkPairs({2, 64, 6, 8, 48, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
  checkPairs({2, 66, 6, 8, 90, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
}

/// Where a plan makes gradients of filters in parts, a part is not rounded.
TEST(Convolution, SumsOfPartsAreOfF32) {
  for (const char *element : {"bf16", "f16"}) {
    auto checkSums = [&](Convolution c) {
      c.element = element;
      c.givesSums = true;
      checkKernel(convolutionKernel(c, ConvolutionPass::FilterGrad),
                  {3 * termsOf(c, ConvolutionPass::FilterGrad)});
    };
    checkSums({4, 64, 8, 8, 64, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4});
    checkSums({4, 64, 9, 8, 32, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 2});
    checkSums({2, 48, 6, 7, 32, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
    checkSums({2, 12, 12, 20, 24, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}, 4});
    checkSums({2, 8, 12, 20, 8, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8});
  }
}

TEST(Convolution, PairsOfBf16WithEnds) {
  for (ConvolutionPass pass : kConvolutionPasses) {
    Convolution c{3, 21, 9, 9, 19, 5, 5, {2, 2}, {2, 2, 2, 2}};
    c.element = "bf16";
    checkKernel(convolutionKernel(c, pass, /*hasEnd=*/true),
                {termsOf(c, pass) + 2});
    c.kh = c.kw = 1;
    checkKernel(convolutionKernel(c, pass, /*hasEnd=*/true),
                {termsOf(c, pass) + 2});
  }
}

TEST(Convolution, NarrowVectors) {
  for (int bits : {128, 256}) {
    check({2, 5, 9, 11, 7, 3, 3, {1, 1}, {1, 1, 1, 1}}, bits);
    check({1, 4, 9, 8, 5, 3, 3, {2, 2}, {1, 1, 1, 1}}, bits);
  }
}

TEST(Convolution, Epilogue) {
  checkKernel(kernelModule({"tensor<2x3x9x10xf32>", "tensor<5x3x3x3xf32>",
                            "tensor<5xf32>", "tensor<2x5x9x10xf32>"},
                           {"tensor<2x5x9x10xf32>"}, R"(
    %y = tandem.conv2d %0, %1 strides [1, 1] padding [1, 1, 1, 1] : tensor<2x3x9x10xf32>, tensor<5x3x3x3xf32> -> tensor<2x5x9x10xf32>
    %b = tandem.broadcast %2 to [2, 5, 9, 10] along [1] : tensor<5xf32> -> tensor<2x5x9x10xf32>
    %s = tandem.add %y, %b : tensor<2x5x9x10xf32>
    %r = tandem.relu %s : tensor<2x5x9x10xf32>
    %z = tandem.add %r, %3 : tensor<2x5x9x10xf32>
    tandem.yield %z : tensor<2x5x9x10xf32>)"),
              {27});
  checkKernel(kernelModule({"tensor<2x4x6x6xf32>", "tensor<2x5x6x6xf32>",
                            "tensor<5x4x3x3xf32>"},
                           {"tensor<5x4x3x3xf32>"}, R"(
    %y = tandem.conv2d_filter_grad %0, %1 to [5, 4, 3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<2x4x6x6xf32>, tensor<2x5x6x6xf32> -> tensor<5x4x3x3xf32>
    %z = tandem.sub %2, %y : tensor<5x4x3x3xf32>
    tandem.yield %z : tensor<5x4x3x3xf32>)"),
              {72});
}

/// `op` of operands of types `a` and `b`, with a bias, relu and a residual
/// behind it; and the same in another order of dimensions.
static void checkEnds(const std::string &op, const std::string &a,
                      const std::string &b, std::vector<int64_t> shape,
                      double terms) {
  auto tensor = [](std::vector<int64_t> shape) {
    return "tensor<" + list(shape, "x") + "xf32>";
  };
  std::string y = tensor(shape), bias = tensor({shape[1]});
  std::string sum =
      "%y = tandem." + op + " : " + a + ", " + b + " -> " + y +
      "\n%b = tandem.broadcast %2 to [" + list(shape, ", ") +
      "] along [1] : " + bias + " -> " + y + "\n%s = tandem.add %y, %b : " + y +
      "\n%r = tandem.relu %s : " + y + "\n%z = tandem.add %r, %3 : " + y;
  checkKernel(
      kernelModule({a, b, bias, y}, {y}, sum + "\ntandem.yield %z : " + y),
      {terms});
  std::string last = tensor({shape[0], shape[2], shape[3], shape[1]});
  checkKernel(
      kernelModule({a, b, bias, y}, {last},
                   sum + "\n%p = tandem.permute %z by [0, 2, 3, 1] : " + y +
                       " -> " + last + "\ntandem.yield %p : " + last),
      {terms});
}

TEST(Convolution, EndsOfPixels) {
  std::string plain = " strides [1, 1] padding [0, 0, 0, 0]",
              halves = " strides [2, 2] padding [0, 0, 0, 0]",
              padded = " strides [2, 2] padding [1, 1, 1, 1] groups 3";
  // Windows of one pixel: one block of k, several, every second pixel, and
  // those between them.
  checkEnds("conv2d %0, %1" + plain, "tensor<2x20x7x9xf32>",
            "tensor<31x20x1x1xf32>", {2, 31, 7, 9}, 20);
  checkEnds("conv2d %0, %1" + plain, "tensor<2x300x4x8xf32>",
            "tensor<20x300x1x1xf32>", {2, 20, 4, 8}, 300);
  checkEnds("conv2d %0, %1" + halves, "tensor<2x20x16x32xf32>",
            "tensor<14x20x1x1xf32>", {2, 14, 8, 16}, 20);
  checkEnds("conv2d_input_grad %0, %1 to [2, 24, 8, 16]" + halves,
            "tensor<2x40x4x8xf32>", "tensor<40x24x1x1xf32>", {2, 24, 8, 16},
            40);
  // Few planes: of one phase and of two.
  checkEnds("conv2d %0, %1" + padded, "tensor<2x3x11x37xf32>",
            "tensor<3x1x3x3xf32>", {2, 3, 6, 19}, 9);
  checkEnds("conv2d_input_grad %0, %1 to [2, 3, 11, 37]" + padded,
            "tensor<2x3x6x19xf32>", "tensor<3x1x3x3xf32>", {2, 3, 11, 37}, 9);
}

/// Functions behind sums: a vector of them is finished as its elements are, in
/// every method, also where vectors have the end of one image and the beginning
/// of the next one, and under masks.
TEST(Convolution, FunctionsBehindSums) {
  auto check = [](const std::string &op, const std::string &a,
                  const std::string &b, std::vector<int64_t> shape,
                  double terms, int bits) {
    std::string y = "tensor<" + list(shape, "x") + "xf32>";
    std::string bias = "tensor<" + std::to_string(shape[1]) + "xf32>";
    checkKernel(
        kernelModule({a, b, bias, y}, {y},
                     "%y = tandem." + op + " : " + a + ", " + b + " -> " + y +
                         "\n%b = tandem.broadcast %2 to [" + list(shape, ", ") +
                         "] along [1] : " + bias + " -> " + y +
                         "\n%s = tandem.add %y, %b : " + y +
                         "\n%g = tandem.sigmoid %s : " + y +
                         "\n%m = tandem.mul %s, %g : " + y +
                         "\n%e = tandem.tanh %3 : " + y +
                         "\n%z = tandem.add %m, %e : " + y +
                         "\ntandem.yield %z : " + y),
        {4 * terms, bits});
  };
  for (int bits : {128, 256, 512}) {
    // Windows of one pixel: one block of k, several; of whole images together.
    check("conv2d %0, %1", "tensor<2x20x7x9xf32>", "tensor<31x20x1x1xf32>",
          {2, 31, 7, 9}, 20, bits);
    check("conv2d %0, %1", "tensor<4x260x7x7xf32>", "tensor<14x260x1x1xf32>",
          {4, 14, 7, 7}, 260, bits);
    // Few planes, planes of their own, and gathered windows.
    check("conv2d %0, %1 strides [2, 2] padding [1, 1, 1, 1] groups 3",
          "tensor<2x3x11x37xf32>", "tensor<3x1x3x3xf32>", {2, 3, 6, 19}, 9,
          bits);
    check("conv2d %0, %1 padding [2, 2, 2, 2] groups 5", "tensor<2x5x7x7xf32>",
          "tensor<5x1x5x5xf32>", {2, 5, 7, 7}, 25, bits);
    check("conv2d %0, %1 padding [1, 1, 1, 1]", "tensor<2x8x9x10xf32>",
          "tensor<20x8x3x3xf32>", {2, 20, 9, 10}, 3 * 72, bits);
  }
}

/// Vectors over the ends of images, which are shared by what is read, stored
/// and finished: blocks of all images and of some, groups, several blocks of k,
/// what is read ahead of the last image; and where masks would be branches.
TEST(Convolution, PixelsOfImagesThatFollowEachOther) {
  check({8, 14, 7, 7, 17, 1, 1});
  check({16, 14, 7, 7, 14, 1, 1});
  check({3, 20, 5, 5, 17, 1, 1});
  check({6, 130, 5, 7, 16, 1, 1});
  check({4, 300, 7, 7, 14, 1, 1});
  check({4, 32, 7, 7, 28, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
  for (const char *element : {"f64", "bf16", "f16"})
    for (int bits : {256, 512})
      check({4, 14, 7, 7, 15, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, element},
            bits);
  for (int bits : {128, 256})
    check({8, 14, 7, 7, 17, 1, 1}, bits);
}

TEST(Convolution, ViewsBefore) {
  // Channels last in memory; an image without strides.
  checkKernel(kernelModule({"tensor<2x8x9x6xf32>", "tensor<5x6x3x3xf32>"},
                           {"tensor<2x5x8x9xf32>"}, R"(
    %x = tandem.permute %0 by [0, 3, 1, 2] : tensor<2x8x9x6xf32> -> tensor<2x6x8x9xf32>
    %y = tandem.conv2d %x, %1 strides [1, 1] padding [1, 1, 1, 1] : tensor<2x6x8x9xf32>, tensor<5x6x3x3xf32> -> tensor<2x5x8x9xf32>
    tandem.yield %y : tensor<2x5x8x9xf32>)"),
              {54});
  checkKernel(kernelModule({"tensor<2x3x6x7xf32>", "tensor<4x3x3x3xf32>"},
                           {"tensor<2x4x7x7xf32>"}, R"(
    %x = tandem.pad %0 low [0, 0, 1, 0] high [0, 0, 2, 2] interior [0, 0, 0, 0] with 0.25 : f32 : tensor<2x3x6x7xf32> -> tensor<2x3x9x9xf32>
    %y = tandem.conv2d %x, %1 : tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x7x7xf32>
    tandem.yield %y : tensor<2x4x7x7xf32>)"),
              {27});
}
