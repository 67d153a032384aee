//===- GroupRatesTest.cpp - rates of groups, and what --resume leaves out -===//
#include "tests/training/TrainingTest.h"

using namespace tandem;
using namespace tandem::test;

namespace {

class GroupRates : public TrainingTest {
protected:
  /// x -> v -> w, without what is drawn.
  void SetUp() override {
    TrainingTest::SetUp();
    trace("m", [](Trace &t) {
      Tensor x = t.input("x", {4, 3});
      Tensor labels = t.input("labels", {4}, DType::I64);
      Tensor v = t.parameter("v.weight", {5, 3}, Init::uniform(-0.5, 0.5));
      Tensor b = t.parameter("v.bias", {5}, Init::constant(0));
      Tensor w = t.parameter("w.weight", {2, 5}, Init::uniform(-0.5, 0.5));
      Tensor logits = linear(relu(linear(x, v, b)), w);
      t.output("logits", logits);
      t.output("loss", crossEntropy(logits, labels));
    });
  }

  Ended made(const std::string &name, const Words &more) const {
    return compile("m", name, plus({"--effort=0"}, more));
  }

  float number(const std::string &file, const std::string &name) const {
    auto all = tensor(file, name);
    return all.size() == 1 ? all[0] : NAN;
  }
};

// Rates went by the numbers of groups, so that artifacts with the same groups
// in another order exchanged them in silence.
TEST_F(GroupRates, ratesFollowTheParametersOfTheirGroup) {
  const Words bias = {"--group=.*bias:lr=0.5"},
              weight = {"--group=.*weight:lr=0.01"};
  // A schedule, clipping and an average stand between a rate and its update.
  for (const Words &more :
       {Words{"--optimizer=sgd:lr=0.1"},
        Words{"--optimizer=adamw:lr=0.1", "--clip=norm:1", "--ema=0.9",
              "--lr-schedule=linear:total=20"}}) {
    SCOPED_TRACE(more[0]);
    std::string rate = more.size() == 1 ? "sgd.group" : "adamw.group";
    EXPECT_RAN(made("ab.tdm", plus(more, plus(bias, weight))));
    EXPECT_RAN(made("ba.tdm", plus(more, plus(weight, bias))));
    EXPECT_RAN(train("ab.tdm", {"--steps=7", "--save=ab.st", "--force"}));
    EXPECT_RAN(train("ab.tdm", {"--steps=4", "--resume=ab.st", "--save=same.st",
                                "--force"}));
    Ended other = train("ba.tdm", {"--steps=4", "--resume=ab.st",
                                   "--save=other.st", "--force"});
    EXPECT_RAN(other);
    EXPECT_EQ(count(other.err, "learning rate"), 0) << other.err;
    for (const char *name : {"v.weight", "v.bias", "w.weight"})
      EXPECT_EQ(tensor("same.st", name), tensor("other.st", name)) << name;
    EXPECT_EQ(number("other.st", rate + "1.lr"), 0.01f);
    EXPECT_EQ(number("other.st", rate + "2.lr"), 0.5f);
    // And back again.
    EXPECT_RAN(train("ab.tdm", {"--steps=1", "--resume=other.st",
                                "--save=back.st", "--force"}));
    EXPECT_EQ(number("back.st", rate + "1.lr"), 0.5f);
  }
}

// A checkpoint of before says nothing of its groups.
TEST_F(GroupRates, groupsOfAnOldCheckpointGoByTheirNumbers) {
  EXPECT_RAN(
      made("m.tdm", {"--optimizer=sgd:lr=0.1", "--group=.*bias:lr=0.5"}));
  EXPECT_RAN(train("m.tdm", {"--steps=1", "--save=old.st"}));
  auto file = io::Safetensors::read(path("old.st"));
  ASSERT_TRUE(file.ok());
  auto texts = file->metadata();
  EXPECT_EQ(texts["tandem.rate_groups"], "sgd.group1.lr v.bias\n");
  texts.erase("tandem.rate_groups");
  std::map<std::string, io::ArrayView> views;
  for (const auto &[name, entry] : file->entries())
    views.emplace(name, *file->find(name));
  ASSERT_TRUE(io::writeSafetensors(path("older.st"), views, texts).ok());
  Ended ended = train("m.tdm", {"--steps=1", "--resume=older.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(count(ended.err, "does not say which parameters its groups have"),
            1)
      << ended.err;
}

// A group's rate from the checkpoint was taken without the note that the
// optimizer's has.
TEST_F(GroupRates, aRateThatIsNotTheArtifactsIsSaid) {
  EXPECT_RAN(
      made("a.tdm", {"--optimizer=sgd:lr=0.1", "--group=.*bias:lr=0.01"}));
  EXPECT_RAN(
      made("b.tdm", {"--optimizer=sgd:lr=0.1", "--group=.*bias:lr=0.7"}));
  EXPECT_RAN(train("a.tdm", {"--steps=7", "--save=a.st"}));
  Ended ended = train("b.tdm", {"--steps=1", "--resume=a.st", "--save=b.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(number("b.st", "sgd.group1.lr"), 0.01f);
  EXPECT_EQ(count(ended.err,
                  "note: the learning rate 'sgd.group1.lr' of 'v.bias' is "
                  "0.01, as in 'a.st', and not 0.7, which the artifact was "
                  "compiled with\n"),
            1)
      << ended.err;
  // A group that is new, one of what were several, and one that is gone.
  EXPECT_RAN(
      made("both.tdm", {"--optimizer=sgd:lr=0.1", "--group=.*bias:lr=0.5",
                        "--group=.*weight:lr=0.25"}));
  EXPECT_RAN(made("one.tdm", {"--optimizer=sgd:lr=0.1", "--group=v.*:lr=0.3"}));
  ended = train("both.tdm", {"--steps=1", "--resume=a.st", "--save=both.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(number("both.st", "sgd.group2.lr"), 0.25f);
  EXPECT_EQ(count(ended.err, "has no rate for a group of 'v.weight', "
                             "'w.weight': it is 0.25, which"),
            1)
      << ended.err;
  ended = train("one.tdm", {"--steps=1", "--resume=both.st", "--save=one.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(number("one.st", "sgd.group1.lr"), 0.3f);
  EXPECT_EQ(count(ended.err, "has 'sgd.group1.lr', 'sgd.group2.lr' for what is "
                             "one group here, of 'v.bias', 'v.weight': it is "
                             "0.3, which"),
            1)
      << ended.err;
  EXPECT_EQ(count(ended.err, "has 'sgd.group2.lr', which this artifact does "
                             "not have: they are left behind"),
            1)
      << ended.err;
}

// --lr had no effect where every parameter is in a group with its own, and the
// log had a rate that none was trained by.
TEST_F(GroupRates, aRateThatNoParameterHasIsRefused) {
  EXPECT_RAN(made("all.tdm", {"--optimizer=sgd:lr=0.1",
                              "--group=.*:lr=0.01,lr_schedule=constant"}));
  Ended ended = train("all.tdm", {"--steps=1", "--lr=5"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(count(ended.err, "--lr has no effect: every parameter of 'all.tdm' "
                             "is in a group with a learning rate of its own"),
            1)
      << ended.err;
  EXPECT_RAN(train("all.tdm", {"--steps=2", "--log=all.jsonl"}));
  EXPECT_EQ(count(text("all.jsonl"), "\"loss\""), 2);
  EXPECT_EQ(count(text("all.jsonl"), "\"lr\""), 0) << text("all.jsonl");
  // A group's schedule is computed beside the one that nothing follows.
  EXPECT_RAN(
      made("all.tdm", {"--optimizer=sgd:lr=0.1",
                       "--lr-schedule=linear:total=20", "--group=.*:lr=0.01"}));
  EXPECT_EQ(train("all.tdm", {"--steps=1", "--lr=5"}).code, 2);
  // Its own schedule alone is one of the optimizer's rate.
  EXPECT_RAN(made("all.tdm", {"--optimizer=sgd:lr=0.1",
                              "--group=.*:lr_schedule=linear:total=20"}));
  EXPECT_RAN(train("all.tdm", {"--steps=1", "--lr=5"}));
  EXPECT_RAN(
      made("some.tdm", {"--optimizer=sgd:lr=0.1", "--group=.*bias:lr=0.01"}));
  EXPECT_RAN(train("some.tdm", {"--steps=2", "--lr=5", "--log=some.jsonl"}));
  EXPECT_EQ(count(text("some.jsonl"), "\"lr\": 5"), 2) << text("some.jsonl");
}

// Averages, schedules and noise of a checkpoint were dropped in silence by an
// artifact without them.
TEST_F(GroupRates, whatAnArtifactDoesNotKeepIsSaid) {
  const Words sgd = {"--optimizer=sgd:lr=0.1"};
  EXPECT_RAN(made("plain.tdm", sgd));
  EXPECT_RAN(train("plain.tdm", {"--steps=1", "--save=plain.st"}));
  const std::pair<Words, std::string> rows[] = {
      {{"--ema=0.9"}, "averages 'ema', which this artifact does not keep"},
      {{"--swa=start=1"}, "averages 'swa', which this artifact does not keep"},
      {{"--lr-schedule=linear:total=20"},
       "a count of updates for a schedule of the learning rate, which this"},
      {{"--gradient-noise=0.1"}, "noise of gradients, which this artifact"},
      {{"--loss-scale=dynamic"}, "a scale of the loss, which this artifact"}};
  for (const auto &[options, left] : rows) {
    SCOPED_TRACE(options[0]);
    EXPECT_RAN(made("more.tdm", plus(plus(sgd, options), {"--force"})));
    EXPECT_RAN(train("more.tdm", {"--steps=7", "--save=more.st", "--force"}));
    Ended ended = train("plain.tdm", {"--steps=1", "--resume=more.st"});
    EXPECT_RAN(ended);
    EXPECT_EQ(count(ended.err, "note: 'more.st' has "), 1) << ended.err;
    EXPECT_EQ(count(ended.err, left), 1) << ended.err;
    EXPECT_EQ(count(ended.err, "left behind"), 1) << ended.err;
    // What it has is not left behind.
    ended = train("more.tdm", {"--steps=1", "--resume=more.st"});
    EXPECT_RAN(ended);
    EXPECT_EQ(count(ended.err, "left behind"), 0) << ended.err;
  }
  EXPECT_RAN(made("noise.tdm", plus(sgd, {"--gradient-noise=0.1"})));
  Ended ended = train("noise.tdm", {"--steps=1", "--resume=plain.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(count(ended.err, "note: 'plain.st' has no noise of gradients"), 1)
      << ended.err;
}

// The scale of adapters came from the checkpoint in silence.
TEST_F(GroupRates, aScaleOfAdaptersThatIsNotTheArtifactsIsSaid) {
  const Words sgd = {"--optimizer=sgd:lr=0.1"};
  EXPECT_RAN(made("a.tdm", plus(sgd, {"--lora=v.weight:rank=2,alpha=3"})));
  EXPECT_RAN(made("b.tdm", plus(sgd, {"--lora=v.weight:rank=2,alpha=30"})));
  EXPECT_RAN(train("a.tdm", {"--steps=1", "--save=a.st"}));
  for (const char *how :
       {"--resume=a.st", "--params=a.st", "--init-from=a.st"}) {
    SCOPED_TRACE(how);
    Ended ended = train("a.tdm", {"--steps=1", how});
    EXPECT_RAN(ended);
    EXPECT_EQ(count(ended.err, "alpha"), 0) << ended.err;
    ended = train("b.tdm", {"--steps=1", how});
    EXPECT_RAN(ended);
    EXPECT_EQ(count(ended.err, "the scales of adapters (alpha / rank) are "
                               "those of 'a.st', and not those that the "
                               "artifact was compiled with: 'v.lora_scale' "
                               "1.5 and not 15\n"),
              1)
        << ended.err;
  }
}

} // namespace
