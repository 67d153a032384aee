//===- CoreViewTest.cpp - chains of views over layouts --------------------===//
//
// Each view over row-major and other strides is compared with its definition on
// an index space; what cannot be had without a copy, or does not fit, says what
// was expected and what came.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/View.h"

#include <gtest/gtest.h>
#include <string>

using namespace tandem;
using namespace tandem::artifact;

namespace {

using Ints = std::vector<int64_t>;

/// The places of all elements, row-major.
Ints placesOf(const Layout &layout) {
  Ints places = {layout.offset};
  for (int d = 0; d < layout.rank; ++d) {
    Ints next;
    for (int64_t place : places)
      for (int64_t i = 0; i < layout.sizes[d]; ++i)
        next.push_back(place + i * layout.steps[d]);
    places = next;
  }
  return places;
}

Layout after(Layout layout, const std::vector<View> &chain) {
  Status status = applyViews(chain, layout);
  EXPECT_TRUE(status.ok()) << status.message();
  return layout;
}

std::string refusal(Layout layout, const std::vector<View> &chain) {
  Status status = applyViews(chain, layout);
  EXPECT_FALSE(status.ok());
  return status.message();
}

Layout rowMajor(Ints shape) { return Layout::of(DType::F32, shape); }
Layout strided(Ints shape, Ints strides) {
  return Layout::of(DType::F32, shape, strides);
}

TEST(View, ReshapeKeepsTheOrderOfElements) {
  Layout x = rowMajor({2, 3, 4});
  for (Ints shape : {Ints{24}, Ints{6, 4}, Ints{2, 12}, Ints{4, 6},
                     Ints{1, 24, 1}, Ints{3, 2, 2, 2}, Ints{24, 1}})
    EXPECT_EQ(placesOf(after(x, {View::reshape(shape)})), placesOf(x));
  // Rows with gaps: within a row everything is allowed.
  Layout gaps = strided({2, 6}, {10, 1});
  for (Ints shape : {Ints{2, 2, 3}, Ints{2, 1, 6}, Ints{1, 2, 3, 2}})
    EXPECT_EQ(placesOf(after(gaps, {View::reshape(shape)})), placesOf(gaps));
  // Sizes of 1 have any stride.
  Layout ones = strided({4, 1}, {1, 77});
  EXPECT_EQ(placesOf(after(ones, {View::reshape({2, 2})})), placesOf(ones));
  Layout scalar = rowMajor({});
  EXPECT_EQ(after(scalar, {View::reshape({1, 1})}).rank, 2);
  EXPECT_EQ(after(rowMajor({1, 1}), {View::reshape({})}).rank, 0);
  EXPECT_EQ(placesOf(after(rowMajor({0, 3}), {View::reshape({5, 0})})), Ints());
}

TEST(View, A01_ReshapeThatStridesDoNotAllow) {
  EXPECT_EQ(refusal(strided({2, 6}, {10, 1}), {View::reshape({12})}),
            "'reshape': expected strides that let shape [2, 6] be seen as [12] "
            "without a copy, but got strides [10, 1]");
  EXPECT_EQ(refusal(strided({2, 6}, {1, 2}), {View::reshape({3, 4})}),
            "'reshape': expected strides that let shape [2, 6] be seen as "
            "[3, 4] without a copy, but got strides [1, 2]");
  EXPECT_EQ(refusal(rowMajor({2, 3}), {View::reshape({5})}),
            "'reshape': expected the elements of shape [2, 3] but got shape "
            "[5]");
}

TEST(View, PermuteSliceBroadcast) {
  Layout x = rowMajor({2, 3});
  EXPECT_EQ(placesOf(after(x, {View::permute({1, 0})})),
            Ints({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(placesOf(after(x, {View::slice({0, 1}, {2, 3}, {1, 1})})),
            Ints({1, 2, 4, 5}));
  EXPECT_EQ(placesOf(after(x, {View::slice({1, 0}, {2, 3}, {1, 2})})),
            Ints({3, 5}));
  EXPECT_EQ(placesOf(after(x, {View::slice({2, 3}, {2, 3}, {1, 1})})), Ints());
  EXPECT_EQ(placesOf(after(x, {View::broadcast({2, 2, 3}, {1, 2})})),
            Ints({0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(
      placesOf(after(rowMajor({2, 1}), {View::broadcast({2, 2}, {0, 1})})),
      Ints({0, 0, 1, 1}));
  EXPECT_EQ(refusal(x, {View::permute({1, 1})}),
            "'permute': expected a permutation of 2 dimensions but got [1, 1]");
  EXPECT_EQ(refusal(x, {View::slice({0, 0}, {2, 4}, {1, 1})}),
            "'slice': expected a range within dimension 1 of shape [2, 3] but "
            "got [0, 4) by 1");
  EXPECT_EQ(refusal(x, {View::slice({0}, {2}, {1})}),
            "'slice': expected starts, limits and strides for each of 2 "
            "dimensions");
  EXPECT_EQ(refusal(x, {View::broadcast({2, 4}, {0, 1})}),
            "'broadcast': expected dimensions that spread shape [2, 3] over "
            "[2, 4] but got [0, 1]");
}

TEST(View, AsStridedCountsTheOperandRowMajor) {
  View view = View::asStrided({2, 2}, {1, 3}, 1);
  EXPECT_EQ(placesOf(after(rowMajor({2, 3}), {view})), Ints({1, 4, 2, 5}));
  EXPECT_EQ(placesOf(after(strided({6}, {10}), {view})),
            Ints({10, 40, 20, 50}));
  EXPECT_EQ(placesOf(after(rowMajor({6}), {View::asStrided({3}, {-2}, 5)})),
            Ints({5, 3, 1}));
  EXPECT_EQ(refusal(strided({2, 3}, {1, 2}), {view}),
            "'as_strided': expected elements at a constant stride but got "
            "shape [2, 3] with strides [1, 2]");
  EXPECT_EQ(refusal(rowMajor({5}), {view}),
            "'as_strided': expected elements among the 5 of shape [5] but got "
            "sizes [2, 2], strides [1, 3] and offset 1");
  EXPECT_NE(refusal(rowMajor({4}), {View::asStrided({2}, {INT64_MAX}, 1)}), "")
      << "the last place does not fit 64 bits";
}

TEST(View, ChainsOfSeveral) {
  Layout x = strided({4, 6}, {6, 1});
  Layout y = after(x, {View::reshape({2, 2, 6}), View::permute({1, 0, 2}),
                       View::slice({0, 0, 1}, {2, 2, 6}, {1, 1, 2}),
                       View::bitcast(DType::I32), View::detach()});
  EXPECT_EQ(y.dtype, DType::I32);
  EXPECT_EQ(placesOf(y), Ints({1, 3, 5, 13, 15, 17, 7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(refusal(x, {View::bitcast(DType::F64)}),
            "'bitcast': expected a type as wide as 'f32' but got 'f64'");
}

} // namespace
