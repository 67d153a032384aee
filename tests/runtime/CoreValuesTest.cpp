//===- CoreValuesTest.cpp - labels and indices that calls refuse ----------===//
//
// What went wrong: a step through the C API took a label beyond its classes,
// said nothing, and its parameters followed a loss that was NaN.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::DType;

namespace {

template <typename T> class Values : public ::testing::Test {};
using Types = ::testing::Types<int32_t, uint32_t>;
TYPED_TEST_SUITE(Values, Types);

template <typename T> constexpr DType typeOf = DType::I32;
template <> constexpr DType typeOf<uint32_t> = DType::U32;

template <typename T>
std::string step(Model &model, const std::vector<T> &labels,
                 std::vector<int64_t> strides = {1}) {
  std::vector<T> copy = labels;
  auto y =
      Tensor::wrap(copy.data(), typeOf<T>, std::vector<int64_t>{8}, strides);
  EXPECT_TRUE(y) << y.status().message();
  Tensor x = sampleX(), loss;
  Status status =
      model.run("step", std::vector<Argument>{{"x", &x}, {"y", &*y}},
                std::vector<Destination>{{"loss", &loss}});
  if (status)
    return "";
  EXPECT_EQ(status.code(), Code::Usage);
  return status.message();
}

TYPED_TEST(Values, OutsideOfTheirRange) {
  using T = TypeParam;
  Model model = modelFor(labelledRegression(typeOf<T>));
  std::vector<T> labels(8, 9);
  EXPECT_EQ(step(model, labels), "");
  labels[7] = 255;
  EXPECT_EQ(step(model, labels), "") << "it does not count";
  labels[3] = 10;
  EXPECT_EQ(step(model, labels),
            "cannot run 'step': input 'y' (index 1): expected integers "
            "from -2 to 9, or 255, which does not count but row 3 is 10");
  labels[3] = T(-2);
  bool isSigned = T(-1) < T(0);
  EXPECT_EQ(step(model, labels) == "", isSigned) << "not the same bits";
  labels[3] = T(-3);
  EXPECT_NE(step(model, labels), "");
}

TYPED_TEST(Values, OfAnyStrides) {
  using T = TypeParam;
  Model model = modelFor(labelledRegression(typeOf<T>));
  // Every second one is a label.
  std::vector<T> labels(16, 77);
  for (size_t i = 0; i < 16; i += 2)
    labels[i] = 1;
  EXPECT_EQ(step(model, labels, {2}), "");
  labels[14] = 12;
  EXPECT_NE(step(model, labels, {2}).find("row 7 is 12"), std::string::npos);
  // One for all rows.
  EXPECT_EQ(step(model, std::vector<T>(1, 1), {0}), "");
  EXPECT_NE(step(model, std::vector<T>(1, 12), {0}).find("row 0 is 12"),
            std::string::npos);
}

TYPED_TEST(Values, OfARefusedCallChangeNothing) {
  using T = TypeParam;
  Model model = modelFor(labelledRegression(typeOf<T>));
  std::vector<float> before = valuesOf(*model.get("w"));
  std::vector<T> labels(8, 100);
  auto y = Tensor::wrap(labels.data(), typeOf<T>, std::vector<int64_t>{8});
  ASSERT_TRUE(y) << y.status().message();
  Tensor x = sampleX(), loss;
  Status status =
      model.run("step", std::vector<Argument>{{"x", &x}, {"y", &*y}},
                std::vector<Destination>{{"loss", &loss}});
  EXPECT_NE(status.message().find("row 0 is 100"), std::string::npos);
  EXPECT_EQ(valuesOf(*model.get("w")), before);
  EXPECT_EQ(model.get("steps")->at(0), 0);
}

/// Rows 1, 3, 5 and 7 are from 0 to 2, rows 2 and 3 from -4 to 1, or 7; the
/// others may be anything.
artifact::Manifest sliced(DType type) {
  artifact::Manifest manifest = labelledRegression(type);
  for (artifact::Value &value : manifest.values)
    if (value.name == "y") {
      value.low = value.high = value.ignored = std::nullopt;
      value.ranges = {{{1}, {8}, {2}, 0, 3, {}}, {{2}, {4}, {1}, -4, 2, 7}};
    }
  return manifest;
}

// Of an input whose slices alone are indices nothing was checked.
TYPED_TEST(Values, OfSlices) {
  using T = TypeParam;
  Model model = modelFor(sliced(typeOf<T>));
  std::vector<T> rows = {99, 2, 7, 1, 99, 0, 99, 2};
  EXPECT_EQ(step(model, rows), "");
  rows[5] = 3;
  EXPECT_EQ(step(model, rows),
            "cannot run 'step': input 'y' (index 1): expected integers "
            "from 0 to 2 but row 5 is 3");
  rows[5] = 0;
  rows[3] = 2; // what the one slice takes, and not the other
  EXPECT_EQ(step(model, rows),
            "cannot run 'step': input 'y' (index 1): expected integers from -4 "
            "to 1, or 7, which does not count but row 3 is 2");
  // Every second element.
  std::vector<T> wide(16, 50);
  for (size_t i = 0; i < 8; ++i)
    wide[2 * i] = 0;
  EXPECT_EQ(step(model, wide, {2}), "");
  wide[14] = 4;
  EXPECT_NE(step(model, wide, {2}).find("row 7 is 4"), std::string::npos);
}

} // namespace
