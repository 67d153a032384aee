//===- PredictTest.cpp - outputs for any number of rows, and no more ------===//
//
// The regression's predictions without its loss, and a program whose launches
// use memory again.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Predict.h"
#include "runtime/artifact/Slice.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <thread>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

Tensor features(int64_t rows) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * 3; ++i)
    values.push_back(float(std::sin(1.7 * double(i))));
  return tensorOf(values, {rows, 3});
}

std::vector<float> predictions(Model &model, int64_t rows) {
  Tensor x = features(rows), pred;
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"pred", &pred}};
  Status status = predict(model, in, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status ? valuesOf(pred) : std::vector<float>();
}

// An output could only be had for whole batches, and with labels for a loss
// that nobody wanted.
TEST(Predict, GivesExactlyTheRows) {
  Model model = modelFor(regression());
  Tensor x = features(8), whole;
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"pred", &whole}};
  ASSERT_TRUE(model.run("evaluate", in, out).ok());
  EXPECT_EQ(predictions(model, 8), valuesOf(whole));
  std::vector<float> all = predictions(model, 21);
  ASSERT_EQ(all.size(), 21u);
  for (int64_t rows : {0, 1, 7, 9, 16})
    EXPECT_EQ(predictions(model, rows),
              std::vector<float>(all.begin(), all.begin() + rows));
}

TEST(Predict, SaysWhatIsWrong) {
  Model model = modelFor(regression());
  Tensor x = features(8), pred, y = filled({5}, 0, 0);
  auto problem = [&](std::vector<Argument> in, std::vector<Destination> out) {
    Status status = predict(model, in, out);
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_EQ(problem({{"x", &x}}, {{"p", &pred}}),
            "program 'evaluate' has no output 'p'; those with rows are 'pred'");
  EXPECT_EQ(problem({}, {{"pred", &pred}}),
            "cannot predict: missing 'x': expected f32 [8, 3], with any number "
            "of rows");
  EXPECT_EQ(problem({{"x", &y}, {"z", &y}}, {{"pred", &pred}}),
            "cannot predict: unknown argument 'z'; 'x': expected f32 [8, 3], "
            "with any number of rows, but got f32 [5]");
  EXPECT_EQ(problem({{"x", &x}}, {{"pred", &y}}),
            "output 'pred': expected f32 [8] but got f32 [5]");
  EXPECT_EQ(problem({{"x", &x}}, {}),
            "expected at least one output to predict");
}

// Outputs were written where calls refuse to: rows over each other, and over a
// parameter.
TEST(Predict, WritesOutputsToElementsOfTheirOwn) {
  Model model = modelFor(regression());
  Tensor x = features(3), one = filled({1}, 0, 0);
  auto repeated = one.view(std::vector<int64_t>{3}, std::vector<int64_t>{0});
  auto w = model.get("w");
  ASSERT_TRUE(repeated && w);
  Argument in[] = {{"x", &x}};
  Destination first[] = {{"pred", &*repeated}}, second[] = {{"pred", &*w}};
  EXPECT_EQ(predict(model, in, first).message(),
            "output 'pred': expected elements that share no memory but got "
            "strides [0]");
  EXPECT_EQ(predict(model, in, second).message(),
            "output 'pred': shares memory with 'w'");
}

// An error named a row of the batch, as if it were one of all.
TEST(Predict, SaysOfWhichRowsItSpeaks) {
  Model model = modelFor(regression());
  auto prediction = Prediction::of(model.manifest(), {"pred"});
  ASSERT_TRUE(prediction);
  auto serve = [](std::span<const int64_t> rows) {
    return std::ranges::count(rows, 9) ? Status::usage("row 1 is 5")
                                       : Status::success();
  };
  std::vector<Tensor> batch(1, *Tensor::zeros(DType::F32, {{8}}));
  auto compute = [&] { return Result(std::span<const Tensor>(batch)); };
  EXPECT_EQ(predict(*prediction, 13, serve, compute).status().message(),
            "rows from 8 to 12: row 1 is 5");
  EXPECT_TRUE(predict(*prediction, 8, serve, compute));
}

// The second of two outputs in one place was what both had.
TEST(Predict, RefusesTwoOutputsInOnePlace) {
  Maker m;
  m.value(Role::Input, "x", {6});
  for (const char *name : {"o", "p"})
    m.value(Role::Output, name, {6});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {6});
  m.launch("mul", {x, x}, m.result(Role::Output, "o", {6}), 6);
  m.launch("add", {x, x}, m.result(Role::Output, "p", {6}), 6);
  Model model = m.load();
  Tensor rows = filled({6}, 3, 0), none, given = filled({6}, 0, 0);
  auto same = given.view(std::vector<int64_t>{6}, std::vector<int64_t>{1});
  ASSERT_TRUE(same);
  Argument in[] = {{"x", &rows}};
  Destination one[] = {{"o", &none}, {"p", &none}};
  Destination two[] = {{"o", &given}, {"p", &*same}};
  for (std::span<Destination> out : {std::span(one), std::span(two)}) {
    Status status = predict(model, in, out);
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_EQ(status.message(), "output 'p': shares memory with 'o'");
  }
  Destination apart[] = {{"o", &none}, {"p", &given}};
  ASSERT_TRUE(predict(model, in, apart).ok());
  EXPECT_EQ(valuesOf(none), std::vector<float>(6, 9));
  EXPECT_EQ(valuesOf(given), std::vector<float>(6, 6));
}

// The lock was taken for each batch: rows of two parameters.
TEST(Predict, IsOneCallBesideOtherThreads) {
  Model model = modelFor(regression());
  auto b = model.get("b");
  ASSERT_TRUE(b);
  Tensor x = filled({64 * 8, 3}, 0, 0);
  std::atomic<bool> isDone = false;
  std::thread writer([&] {
    std::vector<int64_t> shape(b->shape().begin(), b->shape().end());
    for (int value = 0; !isDone; value = 1 - value)
      EXPECT_TRUE(model.set("b", filled(shape, float(value), 0)).ok());
  });
  for (int i = 0; i < 100; ++i) {
    Tensor pred;
    Argument in[] = {{"x", &x}};
    Destination out[] = {{"pred", &pred}};
    Status status = predict(model, in, out);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> all = valuesOf(pred);
    EXPECT_EQ(std::ranges::count(all, all[0]), std::ssize(all));
  }
  isDone = true;
  writer.join();
}

TEST(Predict, RefusesWhatHasNoRows) {
  Maker m;
  m.value(Role::Input, "x", {6});
  m.value(Role::Input, "s", {});
  m.value(Role::Output, "o", {6});
  m.value(Role::Output, "t", {});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {6});
  int64_t s = m.argument(Role::Input, "s", {});
  m.launch("mul", {x, x}, m.result(Role::Output, "o", {6}), 6);
  m.launch("mul", {s, s}, m.result(Role::Output, "t", {}), 1);
  Model model = m.load();
  Tensor rows = filled({6}, 2, 0), t;
  std::vector<Argument> in = {{"x", &rows}};
  std::vector<Destination> out = {{"t", &t}};
  EXPECT_EQ(predict(model, in, out).message(),
            "output 't' has no row for each of the inputs: its type is f32 []; "
            "those with rows are 'o'");
}

TEST(Predict, UpdatesNothing) {
  Model model = modelFor(regression());
  EXPECT_EQ(model.runWanted("step", {}, {}).message(),
            "cannot run a part of 'step': it updates values");
}

/// a = x * x in the arena, o = a + y; then the arena again: b = y * y, and
/// p = b + b.
Maker reusing() {
  Maker m;
  for (const char *name : {"x", "y"})
    m.value(Role::Input, name, {6});
  for (const char *name : {"o", "p"})
    m.value(Role::Output, name, {6});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {6});
  int64_t y = m.argument(Role::Input, "y", {6});
  int64_t part = m.arena(24);
  m.launch("mul", {x, x}, part, 6);
  m.launch("add", {part, y}, m.result(Role::Output, "o", {6}), 6);
  m.launch("mul", {y, y}, part, 6);
  m.launch("add", {part, part}, m.result(Role::Output, "p", {6}), 6);
  return m;
}

TEST(Slice, FollowsMemoryThatIsUsedAgain) {
  Maker m = reusing();
  const artifact::Program &program = m.manifest.programs[0];
  using Flags = std::vector<char>;
  artifact::Slice o = artifact::sliceOf(program, {"o"});
  EXPECT_EQ(o.launches, (Flags{1, 1, 0, 0}));
  EXPECT_EQ(o.needs, (Flags{1, 1}));
  artifact::Slice p = artifact::sliceOf(program, {"p"});
  EXPECT_EQ(p.launches, (Flags{0, 0, 1, 1}));
  EXPECT_EQ(p.needs, (Flags{0, 1}));
  EXPECT_EQ(artifact::sliceOf(program, {"o", "p"}).launches,
            (Flags{1, 1, 1, 1}));
}

// A kernel that reads an input for another of its results got no memory for it.
TEST(Slice, GivesZerosForWhatDoesNotMatter) {
  Maker m = reusing();
  m.manifest.programs[0].results[0].inputs = {"x"};
  Model model = m.load();
  Tensor x = filled({6}, 3, 0), o;
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"o", &o}};
  Status status = model.runWanted("evaluate", in, out);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(o), std::vector<float>(6, 9));
  Destination other[] = {{"p", &o}};
  EXPECT_EQ(model.runWanted("evaluate", in, other).message(),
            "cannot run 'evaluate': missing input 'y' (index 1): expected f32 "
            "[6]");
}

} // namespace
