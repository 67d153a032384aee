//===- MetricRowsTest.cpp - what is measured of a training: rows T10, T15, T17
#include "tests/training/TrainingTest.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class MetricRows : public TrainingTest {
protected:
  void SetUp() override {
    TrainingTest::SetUp();
    trace("m", [](Trace &t) { classify(t, 4); });
    EXPECT_RAN(compile("m", "m.tdm", {"--optimizer=sgd:lr=0.5"}));
  }

  /// Labels that training moves away from: each evaluation is worse.
  void writeOpposite() const {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < kRows; ++i)
      labels.push_back(1 - i % 2);
    write("opposite.npy",
          io::test::arrayOf<int64_t>(DType::I64, {kRows}, labels));
  }
  static Words opposite() {
    return {"--eval",         "x=@x.npy",
            "--eval",         "labels=@opposite.npy",
            "--eval-every=1", "--save-best=best.st",
            "--seed=4"};
  }
};

TEST_F(MetricRows, T10_TheBestIsThatOfTheBestMetric) {
  writeOpposite();
  Ended ended =
      train("m.tdm", plus({"--epochs=4", "--save=last.st"}, opposite()));
  EXPECT_RAN(ended);
  EXPECT_RAN(train("m.tdm", {"--epochs=1", "--seed=4", "--save=first.st"}));
  for (const char *name : {"v", "w"}) {
    EXPECT_EQ(tensor("best.st", name), tensor("first.st", name));
    EXPECT_NE(tensor("best.st", name), tensor("last.st", name));
  }
}

TEST_F(MetricRows, T10_PatienceCountsEvaluations) {
  writeOpposite();
  auto steps = [&](const Words &more) {
    Ended ended =
        train("m.tdm", plus(plus({"--epochs=20", "--patience=2",
                                  "--save=last.st", "--json", "--force"},
                                 opposite()),
                            more));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.err.find("stopped early: 2 evaluations were not better"),
              std::string::npos)
        << ended.err;
    return ended.code ? 0 : Json::parse(ended.out)["steps"].get<int>();
  };
  // Five steps a pass; the first evaluation is the best.
  EXPECT_EQ(steps({}), 15);
  Words rarely = opposite();
  Ended ended =
      train("m.tdm",
            {"--epochs=20", "--patience=2", "--json", "--eval", "x=@x.npy",
             "--eval", "labels=@opposite.npy", "--eval-every=3", "--seed=4"});
  EXPECT_RAN(ended);
  EXPECT_EQ(Json::parse(ended.out)["steps"], 45);
}

TEST_F(MetricRows, T10_KeepPrunesTheOldestAndNeverTheBest) {
  writeOpposite();
  EXPECT_RAN(train(
      "m.tdm", plus({"--epochs=4", "--save=s.st", "--save-every=1", "--keep=2"},
                    opposite())));
  EXPECT_RAN(train("m.tdm", {"--epochs=1", "--seed=4", "--save=first.st"}));
  EXPECT_EQ(tensor("best.st", "w"), tensor("first.st", "w"));
  for (int step : {18, 20})
    EXPECT_EQ(exists("s-" + std::to_string(step) + ".st"), step == 20) << step;
  EXPECT_TRUE(exists("s-19.st"));
  EXPECT_FALSE(exists("s-1.st"));
  EXPECT_TRUE(exists("s.st"));
}

// Rows that fill no batch count as often as they are there, labels that are
// ignored not at all.
TEST_F(MetricRows, T15_MetricsDoNotFollowFromTheBatch) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kRows; ++i)
    labels.push_back(i % 5 == 3 ? -100 : i % 3 == 0);
  write("labels.npy", io::test::arrayOf<int64_t>(DType::I64, {kRows}, labels));
  EXPECT_RAN(train("m.tdm", {"--steps=3", "--seed=1", "--save=w.st"}));
  double loss = 0;
  Json accuracy, metrics;
  for (int64_t batch : {1, 7, 32}) {
    std::string name = "b" + std::to_string(batch);
    trace(name, [&](Trace &t) { classify(t, batch); });
    EXPECT_RAN(compile(name, name + ".tdm", {}));
    Ended ended =
        run(TANDEM_RUN,
            plus({"train", name + ".tdm", "--steps=0", "--params=w.st",
                  "--json", "--metric=f1:logits,labels",
                  "--metric=auc:logits,labels", "--metric=ppl=perplexity:loss"},
                 evaluation()));
    EXPECT_RAN(ended);
    Json eval = Json::parse(ended.out)["eval"];
    EXPECT_EQ(eval["rows"], kRows) << batch;
    EXPECT_EQ(eval["counted"], 18) << batch;
    double mean = eval["outputs"]["loss"];
    if (batch == 1) {
      loss = mean;
      accuracy = eval["accuracy"];
      metrics = eval["metrics"];
      EXPECT_EQ(metrics.size(), 3u);
      EXPECT_NEAR(metrics["ppl"], std::exp(mean), 1e-9);
    }
    for (const char *name : {"f1", "auc"})
      EXPECT_EQ(eval["metrics"][name], metrics[name]) << name << batch;
    EXPECT_NEAR(mean, loss, 1e-6) << batch;
    EXPECT_EQ(eval["accuracy"], accuracy) << batch;
  }
}

// A label that is no class counted as a wrong answer of --accuracy, which
// the other metrics refused.
TEST_F(MetricRows, T15_LabelsThatAreNoClassesAreRefused) {
  trace("b", [](Trace &t) {
    Tensor x = t.input("x", {4, 3});
    Tensor labels = t.input("labels", {4}, DType::I64);
    Tensor logits =
        linear(x, t.parameter("w", {2, 3}, Init::uniform(-0.5, 0.5)));
    t.output("logits", logits);
    t.output("loss", crossEntropy(logits, labels, 255));
  });
  EXPECT_RAN(compile("b", "b.tdm", {}));
  EXPECT_RAN(
      run(TANDEM_RUN, plus({"train", "b.tdm", "--steps=0"}, evaluation())));
  std::vector<int64_t> labels(kRows, 1);
  labels[5] = 255;
  write("labels.npy", io::test::arrayOf<int64_t>(DType::I64, {kRows}, labels));
  for (const char *option : {"--accuracy", "--metric 'f1'"}) {
    Words words = {"train",    "b.tdm",  "--steps=0",         "--eval",
                   "x=@x.npy", "--eval", "labels=@labels.npy"};
    bool isMetric = std::string_view(option).starts_with("--metric");
    words.push_back(isMetric ? "--metric=f1:logits,labels"
                             : "--accuracy=logits,labels");
    Ended ended = run(TANDEM_RUN, words);
    EXPECT_EQ(ended.code, 2) << ended.out;
    EXPECT_NE(ended.err.find(std::string(option) +
                             ": expected labels below 2 but element [5] of "
                             "'labels' is 255\n"),
              std::string::npos)
        << ended.err;
  }
}

TEST_F(MetricRows, T17_ANaNInARowNamesRowAndFile) {
  auto x = io::readNpy(path("x.npy"));
  ASSERT_TRUE(x);
  const float nan = NAN;
  std::memcpy(x->bytes.data() + size_t(9 * 3 + 1) * sizeof nan, &nan,
              sizeof nan);
  write("x.npy", *x);
  // Before anything is trained.
  Ended ended = train("m.tdm", {"--epochs=1", "--save=w.st"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("--data 'x': element [9, 1] of 'x.npy' is nan"),
            std::string::npos)
      << ended.err;
  EXPECT_FALSE(exists("w.st"));
  ended = train(
      "m.tdm", {"--steps=5", "--no-shuffle", "--on-nan=report", "--save=w.st"});
  EXPECT_NE(ended.err.find("the loss is nan at step 3, whose batch has the "
                           "rows 8, 9, 10, 11 of --data; NaN or infinity in "
                           "row 9 of --data 'x' ('x.npy')"),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("training goes on"), std::string::npos);
  // Nobody can go on with what came of it.
  EXPECT_EQ(ended.code, 1);
  EXPECT_FALSE(exists("w.st"));
}

TEST_F(MetricRows, T17_SkipLeavesOutTheUpdateOfSuchARow) {
  EXPECT_RAN(
      compile("m", "clip.tdm", {"--optimizer=sgd:lr=0.5", "--clip=norm:1"}));
  auto x = io::readNpy(path("x.npy"));
  ASSERT_TRUE(x);
  const float nan = NAN;
  std::memcpy(x->bytes.data() + size_t(9 * 3) * sizeof nan, &nan, sizeof nan);
  write("x.npy", *x);
  Words two = {"--no-shuffle", "--on-nan=skip", "--seed=0"};
  EXPECT_RAN(train("clip.tdm", plus({"--steps=2", "--save=two.st"}, two)));
  Ended ended = train("clip.tdm", plus({"--steps=3", "--save=three.st"}, two));
  EXPECT_RAN(ended);
  EXPECT_NE(ended.err.find("its update is left out"), std::string::npos)
      << ended.err;
  for (const char *name : {"v", "w"})
    EXPECT_EQ(tensor("two.st", name), tensor("three.st", name));
  // The mean of the pass is that of the other batches; it was NaN.
  EXPECT_NE(ended.out.find("loss = "), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("loss = nan"), std::string::npos) << ended.out;
}

TEST_F(MetricRows, T17_ANaNInAParameterNamesParameterAndStep) {
  EXPECT_RAN(train("m.tdm", {"--steps=1", "--save=w.st"}));
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file);
  std::vector<float> w = tensor("w.st", "w");
  w[3] = NAN;
  io::Array bad = io::test::arrayOf<float>(DType::F32, {2, 5}, w);
  ASSERT_TRUE(io::writeSafetensors(path("bad.st"),
                                   {{"v", *file->find("v")}, {"w", bad}}, {})
                  .ok());
  Ended ended = train("m.tdm", {"--steps=2", "--params=bad.st", "--save=n.st"});
  EXPECT_EQ(ended.code, 1);
  // After a step both parameters would be.
  EXPECT_NE(ended.err.find("NaN or infinity in parameters 'w' before step 1; "
                           "'--on-nan=report' goes on\n"),
            std::string::npos)
      << ended.err;
  EXPECT_FALSE(exists("n.st"));
  ended = train("m.tdm", {"--steps=2", "--params=bad.st", "--on-nan=report"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("parameters 'w' before step 1; training goes on"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(count(ended.err, "the loss is nan at step 1"), 1) << ended.err;
}

} // namespace
