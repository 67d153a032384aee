//===- MetricTest.cpp - row T15: metrics by their definitions -------------===//
#include "tools/commands/Metrics.h"

#include "tests/runtime/io/Bytes.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::commands;
using artifact::DType;

namespace {

constexpr int64_t kRows = 45;

/// Scores with equal ones among them, from a fixed sequence.
double scoreOf(int64_t i) { return double(mix(uint64_t(i)) % 9) - 4; }
int64_t labelOf(int64_t row, int64_t classes) {
  uint64_t drawn = mix(uint64_t(row) + 1000);
  return drawn % 7 == 0 ? -100 : int64_t(drawn / 7 % uint64_t(classes));
}

artifact::Slot slotOf(std::vector<int64_t> shape) {
  artifact::Slot slot;
  slot.role = artifact::Role::Output;
  slot.name = "out";
  slot.dtype = DType::F32;
  slot.shape = std::move(shape);
  return slot;
}

NamedArray labelsOf(int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < kRows; ++row)
    labels.push_back(labelOf(row, classes));
  return {"y", io::test::arrayOf<int64_t>(DType::I64, {kRows}, labels)};
}

NamedArray targetsOf() {
  std::vector<float> targets;
  for (int64_t i = 0; i < kRows * 3; ++i)
    targets.push_back(float(scoreOf(i + 7)) + 100);
  return {"y", io::test::arrayOf<float>(DType::F32, {kRows, 3}, targets)};
}

/// The metric of `kRows` rows of `width` scores, in batches of `batch`; width
/// 0: one score without a dimension.
double valueOf(const std::string &text, const NamedArray &array, int64_t width,
               int64_t batch) {
  auto metric = Metric::parse(text);
  EXPECT_TRUE(metric) << metric.status().message();
  std::vector<int64_t> shape = {batch};
  if (width)
    shape.push_back(width);
  artifact::Slot slot = slotOf(shape);
  Status status = metric->bind(slot, kRows, batch, &array, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  for (int64_t first = 0; first < kRows; first += batch) {
    auto output = runtime::Tensor::zeros(DType::F32, shape);
    EXPECT_TRUE(output);
    int64_t each = std::max(width, int64_t(1));
    for (int64_t i = 0; i < batch * each; ++i)
      output->mutableData<float>()[i] = float(scoreOf(first * each + i));
    metric->add(*output, first, std::min(batch, kRows - first));
  }
  return metric->value();
}

/// Expects `value` of batches of any size, all with the same bits.
void expectMetric(const std::string &text, const NamedArray &array,
                  int64_t width, double value) {
  double first = valueOf(text, array, width, 1);
  EXPECT_NEAR(first, value, 1e-12) << text;
  for (int64_t batch : {7, 32})
    EXPECT_EQ(valueOf(text, array, width, batch), first) << text << batch;
}

/// The best class of a row; of equal scores the first one.
int64_t bestOf(int64_t row, int64_t classes) {
  int64_t best = 0;
  for (int64_t c = 1; c < classes; ++c)
    if (scoreOf(row * classes + c) > scoreOf(row * classes + best))
      best = c;
  return best;
}

TEST(Metric, T15_TopCountsLabelsAmongTheLargestScores) {
  NamedArray labels = labelsOf(5);
  for (int64_t most : {1, 3}) {
    double right = 0, counted = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      int64_t label = labelOf(row, 5);
      if (label < 0)
        continue;
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t c = 0; c < 5; ++c)
        order.emplace_back(-scoreOf(row * 5 + c), c);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < most; ++i)
        right += order[size_t(i)].second == label;
      ++counted;
    }
    expectMetric("top" + std::to_string(most) + ":out,y", labels, 5,
                 right / counted);
  }
}

/// The metric of one row of integers.
template <typename T>
double valueOfIntegers(const std::string &text, DType dtype,
                       std::vector<int64_t> shape, std::vector<T> scores,
                       const NamedArray &array) {
  auto metric = Metric::parse(text);
  EXPECT_TRUE(metric) << metric.status().message();
  artifact::Slot slot = slotOf(shape);
  slot.dtype = dtype;
  Status status = metric->bind(slot, shape[0], shape[0], &array, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  auto output = runtime::Tensor::zeros(dtype, shape);
  EXPECT_TRUE(output);
  std::copy(scores.begin(), scores.end(), output->mutableData<T>());
  metric->add(*output, 0, shape[0]);
  return metric->value();
}

// They went through f64, in which 2^53 + 1 and 2^63 + 1 are other ones.
TEST(Metric, comparesIntegersAsTheyAre) {
  constexpr int64_t large = int64_t(1) << 53;
  constexpr uint64_t huge = uint64_t(1) << 63;
  std::vector<int64_t> ofSigned = {large, large + 1, 1};
  std::vector<uint64_t> ofUnsigned = {huge, huge + 1, 1};
  const std::vector<int64_t> shape = {1, 3};
  auto scores = runtime::Tensor::zeros(DType::I64, shape);
  std::copy(ofSigned.begin(), ofSigned.end(), scores->mutableData<int64_t>());
  EXPECT_EQ(argmax(*scores, 1, 0), 1);
  scores = runtime::Tensor::zeros(DType::U64, shape);
  std::copy(ofUnsigned.begin(), ofUnsigned.end(),
            scores->mutableData<uint64_t>());
  EXPECT_EQ(argmax(*scores, 1, 0), 1);
  NamedArray label = {"y", io::test::arrayOf<int64_t>(DType::I64, {1}, {1})};
  for (const char *text : {"top1:out,y", "f1:out,y"}) {
    EXPECT_EQ(valueOfIntegers(text, DType::I64, {1, 3}, ofSigned, label), 1);
    EXPECT_EQ(valueOfIntegers(text, DType::U64, {1, 3}, ofUnsigned, label), 1);
  }
  NamedArray target = {
      "y", io::test::arrayOf<int64_t>(DType::I64, {1}, {-large - 1})};
  EXPECT_EQ(
      valueOfIntegers<int64_t>("mae:out,y", DType::I64, {1}, {-large}, target),
      1);
  NamedArray labels = {"y",
                       io::test::arrayOf<int64_t>(DType::I64, {2}, {0, 1})};
  EXPECT_EQ(valueOfIntegers<int64_t>("auc:out,y", DType::I64, {2},
                                     {large, large + 1}, labels),
            1);
  EXPECT_EQ(valueOfIntegers<uint64_t>("auc:out,y", DType::U64, {2, 2},
                                      {huge, huge, huge, huge + 1}, labels),
            1);
}

TEST(Metric, T15_F1AndIoUAreMeansOverTheClassesThatOccur) {
  double f1 = 0, iou = 0;
  for (int64_t c = 0; c < 4; ++c) {
    double both = 0, either = 0, sum = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      int64_t label = labelOf(row, 4);
      if (label < 0)
        continue;
      bool is = label == c, says = bestOf(row, 4) == c;
      both += is && says;
      either += is || says;
      sum += is + says;
    }
    f1 += 2 * both / sum / 4;
    iou += both / either / 4;
  }
  expectMetric("f1:out,y", labelsOf(4), 4, f1);
  expectMetric("iou:out,y", labelsOf(4), 4, iou);
}

TEST(Metric, T15_AreaUnderTheCurveCountsPairs) {
  for (int64_t width : {0, 2}) {
    double pairs = 0, right = 0;
    auto score = [&](int64_t row) {
      return width ? scoreOf(row * 2 + 1) - scoreOf(row * 2) : scoreOf(row);
    };
    for (int64_t one = 0; one < kRows; ++one)
      for (int64_t zero = 0; zero < kRows; ++zero) {
        if (labelOf(one, 2) != 1 || labelOf(zero, 2) != 0)
          continue;
        ++pairs;
        right += score(one) > score(zero)    ? 1
                 : score(one) == score(zero) ? 0.5
                                             : 0;
      }
    expectMetric("auc:out,y", labelsOf(2), width, right / pairs);
  }
}

TEST(Metric, T15_OneScoreIsOfClassOneAboveZero) {
  double both = 0, sum = 0;
  for (int64_t row = 0; row < kRows; ++row)
    if (int64_t label = labelOf(row, 2); label >= 0) {
      both += label == 1 && scoreOf(row) > 0;
      sum += (label == 1) + (scoreOf(row) > 0);
    }
  expectMetric("f1:out,y", labelsOf(2), 0, 2 * both / sum);
}

// As losses of logits read them.
TEST(Metric, T15_LabelsOfOneScoreMayBeFloats) {
  std::vector<float> bits;
  for (int64_t row = 0; row < kRows; ++row)
    bits.push_back(labelOf(row, 2) == 1);
  auto labels = [&] {
    return NamedArray{"y", io::test::arrayOf<float>(DType::F32, {kRows}, bits)};
  };
  double both = 0, sum = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    bool is = bits[size_t(row)] == 1, says = scoreOf(row) > 0;
    both += is && says;
    sum += is + says;
  }
  expectMetric("f1:out,y", labels(), 0, 2 * both / sum);
  bits[3] = 0.5;
  NamedArray half = labels();
  auto metric = Metric::parse("auc:out,y");
  ASSERT_TRUE(metric.ok());
  EXPECT_NE(metric->bind(slotOf({8}), kRows, 8, &half, nullptr)
                .message()
                .find("expected labels of 0 and 1 but element [3] of 'y' is "
                      "0.5"),
            std::string::npos);
}

TEST(Metric, T15_ErrorsAreOfAllElements) {
  double error = 0, squares = 0, mean = 0, about = 0, count = kRows * 3;
  for (int64_t i = 0; i < kRows * 3; ++i)
    mean += (scoreOf(i + 7) + 100) / count;
  for (int64_t i = 0; i < kRows * 3; ++i) {
    double target = scoreOf(i + 7) + 100, off = target - scoreOf(i);
    error += std::fabs(off) / count;
    squares += off * off;
    about += (target - mean) * (target - mean);
  }
  expectMetric("mae:out,y", targetsOf(), 3, error);
  double r2 = valueOf("r2:out,y", targetsOf(), 3, 1);
  EXPECT_NEAR(r2, 1 - squares / about, 1e-9 * std::fabs(r2));
  for (int64_t batch : {7, 32})
    EXPECT_EQ(valueOf("r2:out,y", targetsOf(), 3, batch), r2) << batch;
}

TEST(Metric, NothingCountedIsNoNumber) {
  NamedArray none = labelsOf(2);
  std::memset(none.array.bytes.data(), -1, none.array.bytes.size());
  for (const char *text : {"top1:out,y", "f1:out,y", "auc:out,y", "iou:out,y"})
    EXPECT_TRUE(std::isnan(valueOf(text, none, 2, 7))) << text;
}

TEST(Metric, WhatDoesNotFitIsRefused) {
  auto refused = [](const char *text, const NamedArray *array,
                    std::vector<int64_t> shape) {
    auto metric = Metric::parse(text);
    if (!metric)
      return metric.status().message();
    return metric->bind(slotOf(std::move(shape)), kRows, 8, array, nullptr)
        .message();
  };
  NamedArray labels = labelsOf(4), targets = targetsOf();
  for (const char *text : {"f1", "f1:", "f1:out", "f1:out,y,1,2", "mae:out,y,1",
                           "perplexity:out,y", "=f1:out,y", "a,b=f1:out,y"})
    EXPECT_NE(refused(text, &labels, {8, 4}).find("--metric: expected"),
              std::string::npos)
        << text;
  for (const char *text : {"top:out,y", "top0:out,y", "topx:o,y", "f2:out,y"})
    EXPECT_NE(refused(text, &labels, {8, 4}).find("there is no kind"),
              std::string::npos)
        << text;
  EXPECT_NE(refused("f1:out,y", nullptr, {8, 4}).find("missing --eval 'y'"),
            std::string::npos);
  EXPECT_NE(refused("f1:out,y", &labels, {8, 3}).find("labels below 3 but"),
            std::string::npos);
  EXPECT_NE(refused("auc:out,y", &labels, {8, 4}).find("those of 2 classes"),
            std::string::npos);
  EXPECT_NE(refused("top5:out,y", &labels, {8, 4}).find("at most 4"),
            std::string::npos);
  EXPECT_NE(refused("f1:out,y", &targets, {8, 4}).find("to be integers"),
            std::string::npos);
  EXPECT_NE(refused("mae:out,y", &targets, {8, 4}).find("to have the shape"),
            std::string::npos);
  EXPECT_NE(refused("perplexity:out", nullptr, {8}).find("a mean over rows"),
            std::string::npos);
}

} // namespace
