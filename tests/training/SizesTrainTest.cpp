//===- SizesTrainTest.cpp - `train` with several sizes: rows T13, T14 -----===//
#include "tests/training/TrainingTest.h"

#include "runtime/tandem.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;

namespace {

class SizesTrain : public TrainingTest {
protected:
  void SetUp() override {
    TrainingTest::SetUp();
    for (int64_t batch : {4, 2})
      trace("b" + std::to_string(batch), [&](Trace &t) { classify(t, batch); });
  }
  Ended compileSizes(const Words &more = {}) const {
    return compile(
        "b4", "m.tdm",
        plus({"--variant=b2.mlir", "--optimizer=adamw:lr=0.1"}, more));
  }
};

// Two of 22 rows fill no batch of four, and are a step with their own mean.
TEST_F(SizesTrain, T14_TheLastRowsAreABatchOfTheirOwn) {
  EXPECT_RAN(compileSizes());
  for (const char *batch : {"b4", "b2"})
    EXPECT_RAN(compile(batch, std::string(batch) + ".tdm",
                       {"--optimizer=adamw:lr=0.1"}));
  Ended ended = train("m.tdm", {"--epochs=1", "--seed=5", "--save=all.st",
                                "--no-shuffle", "--json", "--log=l.jsonl"});
  EXPECT_RAN(ended);
  EXPECT_EQ(ended.err.find("left out"), std::string::npos) << ended.err;
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["steps"], 6);

  // The same by artifacts of one size each.
  EXPECT_RAN(train("b4.tdm",
                   {"--epochs=1", "--seed=5", "--save=w.st", "--no-shuffle"}));
  auto x = io::readNpy(path("x.npy"));
  ASSERT_TRUE(x);
  x->bytes.erase(x->bytes.begin(), x->bytes.begin() + 20 * 3 * 4);
  x->shape[0] = 2;
  write("x.npy", *x);
  write("labels.npy", io::test::arrayOf<int64_t>(DType::I64, {2}, {0, 1}));
  EXPECT_RAN(train("b2.tdm", {"--steps=1", "--resume=w.st", "--force",
                              "--save=rest.st", "--no-shuffle"}));
  auto all = io::Safetensors::read(path("all.st")),
       rest = io::Safetensors::read(path("rest.st"));
  ASSERT_TRUE(all && rest);
  for (const auto &[name, entry] : all->entries())
    EXPECT_TRUE(
        std::ranges::equal(all->find(name)->bytes, rest->find(name)->bytes))
        << name;

  // The mean of the pass is over rows.
  std::vector<double> losses;
  std::string log = text("l.jsonl");
  for (size_t at = 0; at < log.size(); at = log.find('\n', at) + 1)
    losses.push_back(
        Json::parse(log.substr(at, log.find('\n', at) - at))["loss"]);
  ASSERT_EQ(losses.size(), 6u);
  double sum = losses[5] * 2;
  for (int i = 0; i < 5; ++i)
    sum += losses[i] * 4;
  EXPECT_NEAR(json["loss"].get<double>(), sum / 22, 1e-5);
}

// A training that is stopped before the last rows goes on with them.
TEST_F(SizesTrain, T14_T09_ResumesBeforeTheLastRows) {
  EXPECT_RAN(compileSizes());
  EXPECT_RAN(train("m.tdm", {"--epochs=2", "--seed=5", "--save=whole.st"}));
  for (const char *cut : {"--steps=5", "--steps=6", "--steps=8"}) {
    EXPECT_RAN(train("m.tdm", {cut, "--seed=5", "--save=part.st", "--force"}));
    int left = 12 - (cut[8] - '0');
    EXPECT_RAN(train("m.tdm", {"--steps=" + std::to_string(left),
                               "--resume=part.st", "--save=part.st"}));
    EXPECT_EQ(bytes("whole.st"), bytes("part.st")) << cut;
  }
}

// Without such a size they are left out, in words, and how not to.
TEST_F(SizesTrain, T14_WithoutThatSizeTheyAreLeftOut) {
  EXPECT_RAN(compile("b4", "b4.tdm", {"--optimizer=adamw:lr=0.1"}));
  Ended ended = train("b4.tdm", {"--epochs=1"});
  EXPECT_RAN(ended);
  EXPECT_NE(ended.err.find("2 of 22 rows do not fill a batch of 4 and are left "
                           "out of each epoch; compiled with --variant for "
                           "batches of 4 and 2, they are trained too\n"),
            std::string::npos)
      << ended.err;
  // Of batches that are added up the mean would be none over rows.
  EXPECT_RAN(compileSizes({"--accumulate"}));
  ended = train("m.tdm", {"--epochs=1", "--accumulate=2"});
  EXPECT_RAN(ended);
  EXPECT_NE(ended.err.find("are left out of each epoch\n"), std::string::npos)
      << ended.err;
}

TEST_F(SizesTrain, T13_CommandsShowAndUseTheSizes) {
  EXPECT_RAN(compileSizes());
  Ended shown = run(TANDEM_RUN, {"inspect", "m.tdm"});
  EXPECT_RAN(shown);
  EXPECT_NE(shown.out.find("b2                   x f32[2, 3], labels i64[2]"),
            std::string::npos)
      << shown.out;
  EXPECT_NE(shown.out.find("step (b2)"), std::string::npos) << shown.out;
  EXPECT_EQ(count(shown.out, "\nupdate "), 1) << shown.out;
  for (int64_t rows : {4, 2, 3}) {
    writeData(rows);
    Ended ended = run(TANDEM_RUN, {"run", "m.tdm", "--input", "x=@x.npy",
                                   "--input", "labels=@labels.npy"});
    EXPECT_EQ(ended.code, rows == 3 ? 2 : 0) << ended.err;
    if (rows == 3)
      EXPECT_NE(ended.err.find("the artifact has 'b4': 'x' f32 [4, 3], "),
                std::string::npos)
          << ended.err;
  }
}

TEST_F(SizesTrain, T13_TheCApiShowsAndUsesTheSizes) {
  EXPECT_RAN(compileSizes());
  tdm_model *model = nullptr;
  ASSERT_EQ(tdm_model_load(path("m.tdm").c_str(), nullptr, &model), TDM_OK)
      << tdm_last_error();
  ASSERT_EQ(tdm_size_count(model), 2u);
  EXPECT_STREQ(tdm_size_at(model, 0), "b4");
  EXPECT_STREQ(tdm_size_at(model, 1), "b2");
  EXPECT_EQ(tdm_size_at(model, 2), nullptr);
  EXPECT_STREQ(tdm_last_error(), "expected a size below 2 but got 2");
  // Each program has its name once.
  std::vector<std::string> programs;
  for (size_t i = 0; i < tdm_program_count(model); ++i)
    programs.emplace_back(tdm_program_at(model, i));
  EXPECT_EQ(std::ranges::count(programs, "step"), 1);
  for (size_t size : {0, 1})
    for (size_t i = 0; i < tdm_value_count(model); ++i) {
      tdm_value value = TDM_VALUE_INIT, first = TDM_VALUE_INIT;
      ASSERT_EQ(tdm_size_value_at(model, size, i, &value), TDM_OK);
      ASSERT_EQ(tdm_value_at(model, i, &first), TDM_OK);
      EXPECT_STREQ(value.name, first.name);
      if (std::string(value.name) == "x")
        EXPECT_EQ(value.shape[0], size ? 2 : 4);
    }
  for (int64_t rows : {4, 2, 3}) {
    const int64_t shape[] = {rows, 3};
    std::vector<float> x(size_t(rows) * 3, 0.5f);
    std::vector<int64_t> labels(static_cast<size_t>(rows), 1);
    tdm_tensor *xs = nullptr, *ys = nullptr;
    ASSERT_EQ(tdm_tensor_wrap(x.data(), TDM_F32, 2, shape, nullptr, &xs),
              TDM_OK);
    ASSERT_EQ(tdm_tensor_wrap(labels.data(), TDM_I64, 1, shape, nullptr, &ys),
              TDM_OK);
    tdm_argument inputs[] = {{"x", xs}, {"labels", ys}};
    tdm_status status = tdm_step(model, inputs, 2, nullptr, 0);
    EXPECT_EQ(status, rows == 3 ? TDM_USAGE : TDM_OK) << tdm_last_error();
    if (rows == 3)
      EXPECT_NE(std::string(tdm_last_error()).find("the artifact has 'b4': "),
                std::string::npos)
          << tdm_last_error();
    tdm_tensor_free(xs);
    tdm_tensor_free(ys);
  }
  tdm_model_free(model);
}

// Data with rows of another size are for another one's programs.
TEST_F(SizesTrain, T13_RowsOfTheDataChooseTheSize) {
  for (int64_t length : {3, 6})
    trace("s" + std::to_string(length), [&](Trace &t) {
      Tensor x = t.input("x", {4, length});
      Tensor w = t.parameter("w", {1}, Init::constant(0.5));
      Tensor y = x * w;
      t.output("y", y);
      t.output("loss", mean(y * y));
    });
  EXPECT_RAN(
      compile("s3", "s.tdm", {"--variant=s6.mlir", "--optimizer=sgd:lr=0.1"}));
  for (int64_t length : {3, 6, 5}) {
    std::vector<float> x(8 * length, 1);
    write("x.npy", io::test::arrayOf<float>(DType::F32, {8, length}, x));
    Ended ended =
        run(TANDEM_RUN, {"train", "s.tdm", "--data", "x=@x.npy", "--steps=2",
                         "--eval", "x=@x.npy", "--save=w.st", "--force"});
    EXPECT_EQ(ended.code, length == 5 ? 2 : 0) << ended.err;
    ended = run(TANDEM_RUN, {"predict", "s.tdm", "--data", "x=@x.npy",
                             "--params=w.st", "--output=y=@y.npy"});
    EXPECT_EQ(ended.code, length == 5 ? 2 : 0) << ended.err;
    if (length == 5)
      continue;
    auto y = io::readNpy(path("y.npy"));
    ASSERT_TRUE(y);
    EXPECT_EQ(y->shape, (std::vector<int64_t>{8, length}));
    std::filesystem::remove(path("y.npy"));
  }
}

TEST_F(SizesTrain, T13_WhatIsNoSizeIsRefused) {
  Ended ended = compile("b4", "m.tdm", {"--variant=batch=2"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--variant=batch=2 is for models with symbolic "
                           "dimensions"),
            std::string::npos)
      << ended.err;
  trace("other", [](Trace &t) {
    Tensor x = t.input("x", {2, 3});
    t.output("loss",
             mean(linear(x, t.parameter("v", {5, 2 + 1}, Init::constant(1)))));
  });
  ended = compile("b4", "m.tdm", {"--variant=other.mlir"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("size 'other': sizes share parameters and states"),
            std::string::npos)
      << ended.err;
  EXPECT_FALSE(exists("m.tdm"));
}

} // namespace
