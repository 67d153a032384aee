//===- DatasetTest.cpp - batches, orders of rows, accuracy ----------------===//
#include "tools/commands/Dataset.h"
#include "runtime/io/Tensors.h"
#include "tests/runtime/cli/Classifier.h"
#include "tools/commands/Evaluation.h"
#include "tools/commands/RowSource.h"

#include <cmath>
#include <numeric>

namespace tandem::commands::test {
namespace {

using artifact::Program;
using artifact::Role;
using runtime::Tensor;

Tensor tensor(const Array &array) {
  auto result = io::toTensor(array);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

Array labels32(std::vector<int64_t> shape, std::vector<int32_t> values) {
  return arrayOf<int32_t>(DType::I32, std::move(shape), values);
}

artifact::Slot slot(Role role, const char *name, DType dtype,
                    std::vector<int64_t> shape) {
  return {role, name, dtype, std::move(shape), false, ""};
}

/// Inputs x [2, 3] f32, labels [2] i32, scale [] f32, table [5] f32.
Program program() {
  Program p;
  p.name = "step";
  p.arguments = {slot(Role::Input, "x", DType::F32, {2, 3}),
                 slot(Role::Input, "labels", DType::I32, {2}),
                 slot(Role::Input, "scale", DType::F32, {}),
                 slot(Role::Input, "table", DType::F32, {5}),
                 slot(Role::Param, "w", DType::F32, {7})};
  return p;
}

/// Its values: labels are below 10, or -100.
artifact::Manifest manifest() {
  artifact::Manifest m;
  for (const artifact::Slot &slot : program().arguments) {
    artifact::Value &value = m.values.emplace_back();
    value.role = slot.role;
    value.name = slot.name;
    value.dtype = slot.dtype;
    value.shape = slot.shape;
  }
  m.values[1].high = 10;
  m.values[1].ignored = -100;
  return m;
}

std::vector<NamedArray> arrays(int64_t rows) {
  return {{"x", features(rows)},
          {"labels", labels32({rows}, std::vector<int32_t>(rows, 7))},
          {"scale", arrayOf<float>(DType::F32, {}, {2})},
          {"table", arrayOf<float>(DType::F32, {5}, {1, 2, 3, 4, 5})}};
}

Result<Dataset> match(const Program &p, std::vector<NamedArray> given,
                      DataUse use = {}) {
  static const artifact::Manifest values = manifest();
  use.option = "--data";
  return Dataset::match(values, p, std::move(given), use);
}

// Rows of a batch of none were divided by it.
TEST(Dataset, aBatchOfNoRowsIsAnError) {
  Program p = program();
  p.arguments[0].shape[0] = p.arguments[1].shape[0] = 0;
  p.arguments.erase(p.arguments.begin() + 3); // whose 5 could be the batch
  std::vector<NamedArray> given = arrays(3);
  given.pop_back();
  auto data = match(p, std::move(given));
  ASSERT_FALSE(data.ok());
  EXPECT_NE(data.status().message().find("expected one of at least 1"),
            std::string::npos)
      << data.status().message();
}

TEST(Dataset, servesRows) {
  Program p = program();
  auto data = match(p, arrays(5));
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data->rows(), 5);
  EXPECT_EQ(data->batch(), 2);
  const int64_t rows[] = {4, 1};
  ASSERT_TRUE(data->gather(rows).ok());
  ASSERT_EQ(data->arguments().size(), 4u);
  EXPECT_EQ(data->arguments()[0].name, "x");
  const Tensor &x = *data->arguments()[0].tensor, all = tensor(features(5));
  for (int f = 0; f < 3; ++f) {
    EXPECT_EQ(x.at(f), all.at(4 * 3 + f));
    EXPECT_EQ(x.at(3 + f), all.at(3 + f));
  }
  EXPECT_EQ(data->arguments()[2].tensor->at(0), 2);
  EXPECT_EQ(data->arguments()[3].tensor->at(4), 5);
}

/// Two rows of images in f32, each element another number from 1 on.
Result<Dataset> imagesOf(std::vector<int64_t> shape,
                         std::vector<int64_t> mask = {}) {
  Program p;
  p.name = "step";
  static artifact::Manifest values;
  values = {};
  std::vector<NamedArray> given;
  for (const auto &[name, sizes] : {std::pair(std::string("x"), shape),
                                    std::pair(std::string("t"), mask)}) {
    if (sizes.empty())
      continue;
    artifact::Slot &slot = p.arguments.emplace_back();
    slot.name = name;
    slot.shape = sizes;
    artifact::Value &value = values.values.emplace_back();
    value.name = name;
    value.shape = sizes;
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    std::vector<float> numbers(size_t(count), 0);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    given.push_back({name, arrayOf<float>(DType::F32, sizes, numbers)});
  }
  static Program program;
  program = p;
  return Dataset::match(values, program, std::move(given), {"--data"});
}

// Channels behind the pixels were mirrored and cut as if they were columns.
TEST(Dataset, augmentsImagesAlongTheirSidesInEachLayout) {
  // Seeds until each of the rows was mirrored and was not.
  struct Row {
    std::vector<int64_t> shape;
    int64_t height, width, channels; ///< channels behind the pixels
  };
  for (const Row &row :
       {Row{{2, 6, 5, 3}, 6, 5, 3}, Row{{2, 4, 5, 1}, 4, 5, 1},
        Row{{2, 3, 4, 5}, 12, 5, 1}, Row{{2, 6, 5, 4}, 30, 4, 1},
        Row{{2, 6, 5}, 6, 5, 1}, Row{{2, 1, 5, 3}, 5, 3, 1}}) {
    auto data = imagesOf(row.shape);
    ASSERT_TRUE(data.ok()) << data.status().message();
    ASSERT_TRUE(data->augment({"x:flip"}).ok());
    EXPECT_EQ(data->notes().size(),
              row.shape.size() == 4 && row.shape[1] > 3 && row.shape[3] <= 3
                  ? 1u
                  : 0u);
    int64_t elements = row.height * row.width * row.channels;
    int mirrored = 0, same = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      data->beginPass(seed, 0);
      const int64_t rows[] = {0, 1};
      ASSERT_TRUE(data->gather(rows).ok());
      const Tensor &x = *data->arguments()[0].tensor;
      for (int64_t i = 0; i < 2; ++i) {
        bool isSame = true, isMirrored = true;
        for (int64_t at = 0; at < elements; ++at) {
          int64_t c = at % row.channels, w = at / row.channels % row.width,
                  h = at / row.channels / row.width;
          int64_t from = (h * row.width + row.width - 1 - w) * row.channels + c;
          double got = x.at(i * elements + at),
                 first = double(i * elements + 1);
          isSame &= got == first + double(at);
          isMirrored &= got == first + double(from);
        }
        EXPECT_TRUE(isSame || isMirrored)
            << runtime::describe(DType::F32, row.shape);
        mirrored += isMirrored && !isSame;
        same += isSame;
      }
    }
    EXPECT_GT(mirrored, 5);
    EXPECT_GT(same, 5);
  }
  // A crop is less than a side, and not than the channels.
  auto data = imagesOf({2, 6, 5, 3});
  ASSERT_TRUE(data.ok());
  EXPECT_FALSE(data->augment({"x:crop=5"}).ok());
  EXPECT_TRUE(data->augment({"x:crop=4"}).ok());
  // Masks move along the sides of the images, or are refused.
  auto with = [](std::vector<int64_t> mask) {
    auto both = imagesOf({2, 6, 5, 3}, std::move(mask));
    EXPECT_TRUE(both.ok());
    return both->augment({"t:flip", "x:flip"});
  };
  EXPECT_TRUE(with({2, 6, 5}).ok());
  EXPECT_TRUE(with({2, 6, 5, 1}).ok());
  EXPECT_TRUE(with({2, 1, 6, 5}).ok());
  EXPECT_NE(
      with({2, 6, 5, 10})
          .message()
          .find("expected [N, H, W], or 1 or 3 channels behind the pixels, "
                "beside the images [H, W, C] of 'x', but got f32"),
      std::string::npos)
      << with({2, 6, 5, 10}).message();
}

// A name that is not known came without the nearest one.
TEST(Dataset, reportsEveryProblemAtOnce) {
  Program p = program();
  std::vector<NamedArray> given = arrays(5);
  given[0].array = arrayOf<float>(DType::F32, {5, 1}, {1, 2, 3, 4, 5});
  given[1].name = "label";
  given[3].array = arrayOf<float>(DType::F32, {2}, {1, 2});
  EXPECT_EQ(match(p, given).status().message(),
            "--data 'label': program 'step' has no such input (did you mean "
            "'labels'?); it has 'x', 'labels', 'scale', 'table'; "
            "--data 'x': expected f32 [N, 3] but got f32 [5, 1]; "
            "missing --data 'labels' (i32 [N]); "
            "--data 'table': expected f32 [5] but got f32 [2]");
  given = arrays(5);
  given[1].array = labels32({4}, {0, 0, 0, 0});
  EXPECT_EQ(match(p, given).status().message(),
            "--data 'labels': expected 5 rows, as 'x' has, but got 4");
  EXPECT_EQ(match(p, arrays(0)).status().message(),
            "--data: expected at least one row but got none");
}

TEST(Dataset, findsNonFiniteNumbers) {
  Program p = program();
  std::vector<NamedArray> given = arrays(2);
  given[2].array = arrayOf<float>(DType::F32, {}, {NAN});
  auto data = match(p, given);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->nonFinite(),
            std::vector<std::string>{"--data 'scale': element [] is nan"});
}

// Labels and indices that the model does not take went into it, and poisoned
// the parameters; nobody said which row they were in.
TEST(Dataset, namesTheFirstLabelThatIsOutside) {
  Program p = program();
  auto problem = [&](int32_t label) {
    std::vector<NamedArray> given = arrays(3);
    given[1].array = labels32({3}, {0, 9, label});
    auto data = match(p, given);
    return data ? std::string() : data.status().message();
  };
  const char *expected = "--data 'labels': expected an integer from 0 to 9, or "
                         "-100, which does not count but row 2 is ";
  for (int32_t label : {10, -1, -5, 1000000})
    EXPECT_EQ(problem(label), expected + std::to_string(label));
  EXPECT_EQ(problem(-100), "");
}

// A u8 array of pixels took four times its size in an f32 model.
TEST(Dataset, convertsLargeArraysBatchByBatch) {
  Program p = program();
  std::vector<NamedArray> given = arrays(5);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 15; ++i)
    pixels.push_back(uint8_t(17 * i));
  given[0].array = arrayOf<uint8_t>(DType::U8, {5, 3}, pixels);
  given[0].cast = *io::Cast::parse("/255");
  for (int64_t limit : {0, 1000}) {
    DataUse use;
    use.atOnce = limit;
    auto data = match(p, given, use);
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ(data->array("x")->bytes.size(), limit ? 60u : 15u);
    const int64_t rows[] = {4, 1};
    ASSERT_TRUE(data->gather(rows).ok());
    for (int f = 0; f < 3; ++f)
      EXPECT_EQ(data->arguments()[0].tensor->at(f),
                float(17 * (12 + f) / 255.0));
  }
}

/// Bytes that are read row by row.
struct Streamed : RowSource {
  explicit Streamed(Array array) : array(std::move(array)) {}
  Status read(int64_t row, std::span<std::byte> to) const override {
    std::copy_n(array.bytes.begin() + row * int64_t(to.size()), to.size(),
                to.begin());
    return Status::success();
  }
  std::string nameOf(int64_t row) const override {
    return "'" + std::to_string(row) + "'";
  }
  uint32_t digest() const override { return 0; }
  Array array;
};

// Streamed bytes were not looked at, whatever the cast makes of them; and what
// was named as the row was an element.
TEST(Dataset, looksAtStreamedRows) {
  Program p = program();
  std::vector<NamedArray> given = arrays(5);
  Array pixels = arrayOf<uint8_t>(DType::U8, {5, 3},
                                  std::vector<uint8_t>(15, uint8_t(200)));
  given[0].rows = std::make_shared<Streamed>(pixels);
  given[0].array = {DType::U8, {5, 3}, {}};
  const int64_t rows[] = {4, 1};
  for (const char *cast : {"/255", "*1e38"}) {
    given[0].cast = *io::Cast::parse(cast);
    auto data = match(p, given);
    ASSERT_TRUE(data.ok()) << data.status().message();
    Status status = data->gather(rows);
    EXPECT_EQ(status.ok(), cast == std::string("/255"));
    EXPECT_TRUE(status.ok() ||
                status.message().find("[1, 0]") != std::string::npos)
        << status.message();
  }
}

// What NumPy divided is f64, and was refused as no f32 holds it exactly.
TEST(Dataset, roundsDoublesWithANote) {
  Program p = program();
  std::vector<NamedArray> given = arrays(2);
  given[0].array =
      arrayOf<double>(DType::F64, {2, 3}, {1, 2, 0.1, 1.0 / 3, 5, 6});
  auto data = match(p, given);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data->notes(),
            std::vector<std::string>{"--data 'x': f64 is rounded to f32: "
                                     "element [0, 2] of f64 is 0.1"});
  const int64_t rows[] = {1, 0};
  ASSERT_TRUE(data->gather(rows).ok());
  EXPECT_EQ(data->arguments()[0].tensor->at(0), float(1.0 / 3));
  given[0].array = arrayOf<double>(DType::F64, {2, 3}, {1, 2, 3, 4, 1e300, 6});
  EXPECT_EQ(match(p, given).status().message(),
            "--data 'x': expected f32 but got f64: element [1, 1] of f64 is "
            "1e+300, which is too large for f32");
}

TEST(Dataset, shufflesByPassAndSeedAlone) {
  std::vector<int64_t> sorted = rowOrder(100, false, 1, 0);
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(sorted[size_t(i)], i);
  std::vector<int64_t> first = rowOrder(100, true, 1, 0);
  EXPECT_EQ(first, rowOrder(100, true, 1, 0));
  EXPECT_NE(first, rowOrder(100, true, 1, 1));
  EXPECT_NE(first, rowOrder(100, true, 2, 0));
  EXPECT_NE(first, sorted);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, sorted);
}

TEST(Dataset, shufflesEvenly) {
  // Each of the 24 orders of 4 rows in 2400 passes about 100 times.
  std::map<std::vector<int64_t>, int> seen;
  for (int64_t epoch = 0; epoch < 2400; ++epoch)
    ++seen[rowOrder(4, true, 0, epoch)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto &[order, count] : seen) {
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 150);
  }
}

TEST(Dataset, shufflesInABuffer) {
  std::vector<int64_t> sorted = rowOrder(100, false, 1, 0);
  std::vector<int64_t> first = rowOrder(100, true, 1, 0, 8);
  EXPECT_EQ(first, rowOrder(100, true, 1, 0, 8));
  EXPECT_NE(first, rowOrder(100, true, 1, 1, 8));
  EXPECT_NE(first, rowOrder(100, true, 1, 0, 9));
  // No row before it was read, and each once.
  int64_t farthest = 0;
  for (int64_t i = 0; i < 100; ++i)
    farthest = std::max(farthest, first[size_t(i)] - i);
  EXPECT_EQ(farthest, 7);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, sorted);
  // In a buffer of 2 the first row is 0 or 1, and comes with each that is left.
  std::map<std::vector<int64_t>, int> seen;
  for (int64_t epoch = 0; epoch < 800; ++epoch)
    ++seen[rowOrder(4, true, 0, epoch, 2)];
  EXPECT_EQ(seen.size(), 8u);
  for (const auto &[order, count] : seen)
    EXPECT_NEAR(count, 100, 50);
}

TEST(Dataset, drawsRowsByWeights) {
  Program p = program();
  constexpr int64_t rows = 4, passes = 1000;
  auto data = match(p, arrays(rows));
  ASSERT_TRUE(data.ok());
  auto weights = [](std::vector<float> values) {
    return NamedArray{
        "weights",
        arrayOf<float>(DType::F32, {int64_t(values.size())}, values)};
  };
  for (auto wrong :
       {weights({1, 2, 3}), weights({1, -1, 0, 1}), weights({0, 0, 0, 0}),
        weights({1, NAN, 0, 1}), weights({1, INFINITY, 0, 1})})
    EXPECT_NE(match(p, arrays(rows))->drawBy(wrong).message().find("--weights"),
              std::string::npos);
  // A sum that overflows was said not to be above 0.
  NamedArray large{"weights",
                   arrayOf<double>(DType::F64, {rows}, {1e308, 1e308, 0, 1})};
  EXPECT_NE(match(p, arrays(rows))
                ->drawBy(std::move(large))
                .message()
                .find("a sum that f64 holds, up to 1.797e+308, but got inf"),
            std::string::npos);
  // Of weights that f64 hardly holds the first was drawn half as often.
  constexpr double least = 4.9406564584124654e-324;
  auto small = match(p, arrays(rows));
  ASSERT_TRUE(small
                  ->drawBy(NamedArray{
                      "weights", arrayOf<double>(DType::F64, {rows},
                                                 {least, least, least, least})})
                  .ok());
  std::vector<int64_t> drawn(rows);
  for (int64_t pass = 0; pass < passes; ++pass)
    for (int64_t row : small->order(true, 7, pass))
      ++drawn[size_t(row)];
  for (int64_t count : drawn)
    EXPECT_NEAR(double(count), 1000, 110);
  ASSERT_TRUE(data->drawBy(weights({0, 3, 1, 0})).ok());
  std::vector<int64_t> counts(rows);
  for (int64_t pass = 0; pass < passes; ++pass) {
    auto order = data->order(true, 7, pass);
    ASSERT_EQ(order.size(), size_t(rows));
    EXPECT_EQ(order, data->order(true, 7, pass));
    for (int64_t row : order)
      ++counts[size_t(row)];
  }
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_NEAR(double(counts[1]), 3000, 110); // 4 standard deviations
  int same = 0;
  for (int64_t pass = 0; pass < 20; ++pass)
    same += data->order(true, 7, pass) == data->order(true, 8, pass);
  EXPECT_LT(same, 20);
}

// Together they have each row of a pass once, but those that are over.
TEST(Dataset, sharesAreEquallyLargeAndApart) {
  Program p = program();
  constexpr int64_t rows = 11, of = 3;
  auto whole = match(p, arrays(rows));
  ASSERT_TRUE(whole.ok());
  for (bool shuffle : {false, true})
    for (int64_t pass = 0; pass < 4; ++pass) {
      std::vector<int64_t> order = whole->order(shuffle, 7, pass);
      for (int64_t index = 0; index < of; ++index) {
        auto one = match(p, arrays(rows));
        ASSERT_TRUE(one.ok());
        one->take({index, of});
        EXPECT_EQ(one->rows(), 3);
        std::vector<int64_t> expected;
        for (int64_t i = index; i < 9; i += of)
          expected.push_back(order[size_t(i)]);
        EXPECT_EQ(one->order(shuffle, 7, pass), expected);
      }
    }
  auto share = RowShare::parse("2/3");
  ASSERT_TRUE(share.ok());
  EXPECT_EQ(share->index, 2);
  EXPECT_EQ(share->of, 3);
  for (const char *wrong :
       {"", "1", "/", "1/", "/2", "3/3", "-1/3", "0/0", "0/-2", "0/3 ", " 0/3",
        "0/1000001", "0x1/3", "0/99999999999999999999"})
    EXPECT_FALSE(RowShare::parse(wrong).ok()) << wrong;
}

TEST(Accuracy, countsTheLargestScore) {
  auto accuracy = Accuracy::parse("logits,labels");
  ASSERT_TRUE(accuracy.ok());
  Tensor logits = tensor(
      arrayOf<float>(DType::F32, {5, 2}, {0, 1, 3, 2, 1, 1, NAN, 9, 0, 1}));
  artifact::Slot slotOfLogits =
      slot(Role::Output, "logits", DType::F32, {5, 2});
  Array rows = labels32({5}, {0, 0, 0, 0, 0});
  ASSERT_TRUE(accuracy->check(slotOfLogits, 5, 5, rows).ok());
  // Right; right; a tie, which goes to 0; NaN is wrong; not counted.
  accuracy->add(logits, labels32({7}, {9, 9, 1, 0, 0, 1, -1}), 2, 5);
  EXPECT_EQ(accuracy->counted(), 4);
  EXPECT_EQ(accuracy->right(), 3);
  EXPECT_FALSE(accuracy->manyPerRow());
  // Only as many rows as are real.
  accuracy->add(logits, labels32({5}, {0, 0, 0, 0, 0}), 0, 1);
  EXPECT_EQ(accuracy->counted(), 5);
  EXPECT_EQ(accuracy->right(), 3);
}

TEST(Accuracy, countsWholeRowsOfSequences) {
  auto accuracy = Accuracy::parse("logits,labels");
  // Predictions 1 0 / 1 1 / 0 0.
  Tensor logits = tensor(arrayOf<float>(DType::F32, {3, 2, 2},
                                        {0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0}));
  Array labels = labels32({3, 2}, {1, -1, 1, 0, -5, -1});
  artifact::Slot slotOfLogits =
      slot(Role::Output, "logits", DType::F32, {3, 2, 2});
  EXPECT_FALSE(accuracy->check(slotOfLogits, 3, 3, labels).ok());
  accuracy = Accuracy::parse("logits,labels,-1");
  ASSERT_TRUE(accuracy->check(slotOfLogits, 3, 3, labels).ok());
  accuracy->add(logits, labels, 0, 3);
  EXPECT_TRUE(accuracy->manyPerRow());
  EXPECT_EQ(accuracy->counted(), 3);
  EXPECT_EQ(accuracy->right(), 2);
  EXPECT_EQ(accuracy->countedRows(), 2);
  EXPECT_EQ(accuracy->rightRows(), 1);
}

// Scores [N, C, T], as cross entropy takes them, were refused; `predict
// --argmax` took the largest over T.
TEST(Accuracy, findsScoresOnAxisOne) {
  auto accuracy = *Accuracy::parse("logits,labels");
  // Predictions 1 0 1.
  Array scores = arrayOf<float>(DType::F32, {1, 2, 3}, {0, 5, 1, 1, 4, 2});
  Array labels = labels32({1, 3}, {1, 0, 0});
  artifact::Slot logits = slot(Role::Output, "logits", DType::F32, {1, 2, 3});
  ASSERT_TRUE(accuracy.check(logits, 1, 1, labels).ok());
  accuracy.add(tensor(scores), labels, 0, 1);
  EXPECT_EQ(accuracy.counted(), 3);
  EXPECT_EQ(accuracy.right(), 2);
}

TEST(Accuracy, checksItsArrays) {
  for (const char *text : {"logits", ",labels", "logits,", "a,b,", "a,b,1,2"})
    EXPECT_EQ(Accuracy::parse(text).status().message(),
              std::string("--accuracy: expected LOGITS,LABELS or "
                          "LOGITS,LABELS,AXIS but got '") +
                  text + "'");
  auto accuracy = *Accuracy::parse("logits,labels");
  artifact::Slot logits = slot(Role::Output, "logits", DType::F32, {4, 5, 2});
  Array right = labels32({1, 5}, {0, 0, 0, 0, 0});
  Array real = arrayOf<float>(DType::F32, {1, 5}, {0, 0, 0, 0, 0});
  EXPECT_TRUE(accuracy.check(logits, 1, 4, right).ok());
  EXPECT_EQ(accuracy.check(logits, 1, 4, std::nullopt).message(),
            "--accuracy: missing --eval 'labels'");
  EXPECT_EQ(
      accuracy.check(logits, 2, 4, right).message(),
      "--accuracy: expected 'labels' to be integers [2, 5] or, with scores "
      "on axis 1, [2, 2] for 'logits' (f32 [4, 5, 2]) but got i32 [1, "
      "5]");
  EXPECT_FALSE(accuracy.check(logits, 1, 4, real).ok());
  auto none = *Accuracy::parse("logits,labels,3");
  EXPECT_EQ(none.check(logits, 1, 4, right).message(),
            "--accuracy: expected an axis of 'logits', from 1 to 2, but got "
            "'3'");
  logits.shape = {4, 5, 5};
  EXPECT_EQ(accuracy.check(logits, 1, 4, right).message(),
            "--accuracy: the scores of 'logits' (f32 [4, 5, 5]) may be on axis "
            "1 or on the last; expected 'logits,labels,1' or "
            "'logits,labels,-1'");
  logits.shape = {4};
  EXPECT_EQ(accuracy.check(logits, 1, 4, right).message(),
            "--accuracy: expected 'logits' to have the shape [4, ..., scores] "
            "but got f32 [4]");
}

} // namespace
} // namespace tandem::commands::test
