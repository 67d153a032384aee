//===- ResumeRowsTest.cpp - going on with a training: rows T09, T18 -------===//
#include "tests/training/TrainingTest.h"

#include "runtime/artifact/ArtifactReader.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;

namespace {

class ResumeRows : public TrainingTest {
protected:
  artifact::Manifest manifestOf(const std::string &name) const {
    auto reader = artifact::ArtifactReader::open(path(name));
    EXPECT_TRUE(reader) << reader.status().message();
    return reader ? reader->manifest() : artifact::Manifest();
  }
};

// Images that are changed as they are read are the same when a training goes
// on, in the middle of a pass, too.
TEST_F(ResumeRows, T09_AugmentedImagesAreThoseOfTheUndisturbedRun) {
  trace("m", [](Trace &t) {
    Tensor x = t.input("x", {4, 1, 3, 3});
    Tensor labels = t.input("labels", {4}, DType::I64);
    Tensor w = t.parameter("w", {2, 9}, Init::uniform(-0.5, 0.5));
    Tensor logits = linear(x.view({4, 9}), w);
    t.output("logits", logits);
    t.output("loss", crossEntropy(logits, labels));
  });
  EXPECT_RAN(compile("m", "m.tdm", {"--optimizer=sgd:lr=0.1"}));
  std::vector<float> pixels;
  for (int64_t i = 0; i < kRows * 9; ++i)
    pixels.push_back(float(i * 37 % 19) / 16);
  write("x.npy",
        io::test::arrayOf<float>(DType::F32, {kRows, 1, 3, 3}, pixels));
  Words augmented = {"--augment=x:flip,crop=1"};
  EXPECT_RAN(train("m.tdm", {"--steps=14", "--seed=3", "--save=plain.st"}));
  EXPECT_RAN(train(
      "m.tdm", plus({"--steps=14", "--seed=3", "--save=whole.st"}, augmented)));
  EXPECT_RAN(train(
      "m.tdm", plus({"--steps=7", "--seed=3", "--save=part.st"}, augmented)));
  Ended other = train("m.tdm", {"--steps=7", "--resume=part.st"});
  EXPECT_EQ(other.code, 2) << "without it the rows are others: " << other.err;
  EXPECT_RAN(
      train("m.tdm", plus({"--steps=7", "--resume=part.st", "--save=part.st"},
                          augmented)));
  EXPECT_NE(tensor("whole.st", "w"), tensor("plain.st", "w"));
  EXPECT_EQ(tensor("whole.st", "w"), tensor("part.st", "w"));
  // Images follow from the seed where rows do not: --seed had "no effect".
  Words inOrder = {"--steps=7", "--no-shuffle", "--params=plain.st"};
  for (const char *seed : {"--seed=1", "--seed=2"})
    EXPECT_RAN(train("m.tdm", plus(plus(inOrder, augmented),
                                   {seed, std::string("--save=") + seed[7]})));
  EXPECT_NE(tensor("1", "w"), tensor("2", "w"));
  for (const char *wrong : {"--augment=labels:flip", "--augment=y:flip",
                            "--augment=x:crop=3", "--weights=@x.npy"})
    EXPECT_EQ(train("m.tdm", {"--steps=1", wrong}).code, 2) << wrong;
}

// Everything that a step depends on is in a checkpoint: what it adds up, draws,
// averages and scales by, which rows are left, and the best of the metrics. The
// cuts are in the middle of a pass, of an accumulation, and of both.
TEST_F(ResumeRows, T09_GoesOnWithTheBitsOfTheUndisturbedRun) {
  trace("m", [](Trace &t) { classify(t, 4); });
  EXPECT_RAN(
      compile("m", "m.tdm",
              {"--optimizer=adamw:lr=0.05", "--accumulate",
               "--lr-schedule=cosine:warmup=2,total=9",
               "--loss-scale=dynamic:interval=2,init=1024", "--ema=0.75"}));
  Words recorded =
      plus({"--accumulate=2", "--eval-every=1", "--average=ema"}, evaluation());
  // Five batches a pass, of which each pass has three updates.
  EXPECT_RAN(train("m.tdm", plus({"--steps=15", "--seed=3", "--save=whole.st",
                                  "--save-best=best.st", "--log=whole.jsonl"},
                                 recorded)));
  for (int cut : {1, 4, 5, 7, 11}) {
    SCOPED_TRACE(cut);
    std::filesystem::remove(path("parts.jsonl"));
    std::filesystem::remove(path("part-best.st"));
    Words part = plus(
        {"--save=part.st", "--save-best=part-best.st", "--log=parts.jsonl"},
        recorded);
    // What it evaluates at its end is no part of the undisturbed run.
    EXPECT_RAN(train("m.tdm", {"--steps=" + std::to_string(cut), "--seed=3",
                               "--accumulate=2", "--save=part.st",
                               "--log=parts.jsonl", "--force"}));
    EXPECT_RAN(train("m.tdm", plus({"--steps=" + std::to_string(15 - cut),
                                    "--resume=part.st"},
                                   part)));
    auto whole = io::Safetensors::read(path("whole.st")),
         rest = io::Safetensors::read(path("part.st"));
    ASSERT_TRUE(whole && rest);
    ASSERT_EQ(whole->entries().size(), rest->entries().size());
    for (const auto &[name, entry] : whole->entries()) {
      auto one = whole->find(name), other = rest->find(name);
      ASSERT_TRUE(other) << name;
      EXPECT_TRUE(std::ranges::equal(one->bytes, other->bytes)) << name;
    }
    for (const char *key : {"tandem.epoch", "tandem.step", "tandem.seed",
                            "tandem.total_steps", "tandem.rows"})
      EXPECT_EQ(whole->metadata().at(key), rest->metadata().at(key)) << key;
    // The losses, rates and scales of all steps.
    auto steps = [&](const std::string &log) {
      std::string lines, text = untimed(log);
      for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        if (line.find("\"loss\"") != std::string::npos &&
            line.find("eval") == std::string::npos)
          lines += line + "\n";
        at = end + 1;
      }
      return lines;
    };
    EXPECT_EQ(count(steps("whole.jsonl"), "\n"), 15);
    EXPECT_EQ(steps("whole.jsonl"), steps("parts.jsonl"));
  }
}

// A share of the rows goes on with its own rest of the pass.
TEST_F(ResumeRows, T09_AShardGoesOnWithItsOwnRows) {
  trace("m", [](Trace &t) { classify(t, 4); });
  EXPECT_RAN(compile("m", "m.tdm", {"--optimizer=sgd:lr=0.5"}));
  auto run = [&](const char *steps, const char *shard, Words more) {
    return train("m.tdm", plus({steps, shard}, more));
  };
  for (const char *shard : {"--shard=0/2", "--shard=1/2"}) {
    std::string name = std::string(shard) + ".st"; // of a folder: the slash
    name[name.find('/')] = '-';
    const std::string save = "--save=" + name;
    EXPECT_RAN(run("--steps=5", shard, {"--seed=3", save}));
    EXPECT_RAN(
        run("--steps=3", shard, {"--seed=3", "--save=part.st", "--force"}));
    Ended other =
        run("--steps=2", shard[8] == '0' ? "--shard=1/2" : "--shard=0/2",
            {"--resume=part.st"});
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("'--shard'"), std::string::npos) << other.err;
    EXPECT_RAN(run("--steps=2", shard, {"--resume=part.st", "--save=part.st"}));
    EXPECT_EQ(bytes(name), bytes("part.st"));
  }
  EXPECT_NE(bytes("--shard=0-2.st"), bytes("--shard=1-2.st"));
}

// Of a checkpoint between evaluations the best of before is known.
TEST_F(ResumeRows, T09_KnowsTheBestOfBefore) {
  trace("m", [](Trace &t) { classify(t, 4); });
  EXPECT_RAN(compile("m", "m.tdm", {"--optimizer=sgd:lr=0.5"}));
  Words recorded = plus({"--eval-every=1", "--best=loss"}, evaluation());
  EXPECT_RAN(train("m.tdm", plus({"--epochs=4", "--seed=1", "--save=whole.st",
                                  "--save-best=best.st"},
                                 recorded)));
  EXPECT_RAN(train("m.tdm", plus({"--epochs=2", "--seed=1", "--save=part.st",
                                  "--save-best=other.st"},
                                 recorded)));
  EXPECT_RAN(train("m.tdm", plus({"--epochs=2", "--resume=part.st",
                                  "--save=part.st", "--save-best=other.st"},
                                 recorded)));
  EXPECT_EQ(bytes("whole.st"), bytes("part.st"));
  EXPECT_EQ(bytes("best.st"), bytes("other.st"));
}

TEST_F(ResumeRows, T18_FrozenItHasNoMemoryAndUnfrozenAFreshState) {
  trace("m", [](Trace &t) { classify(t, 4); });
  EXPECT_RAN(compile("m", "all.tdm", {"--optimizer=adamw:lr=0.1"}));
  EXPECT_RAN(
      compile("m", "head.tdm", {"--optimizer=adamw:lr=0.1", "--freeze=v"}));
  artifact::Manifest head = manifestOf("head.tdm"), all = manifestOf("all.tdm");
  ASSERT_TRUE(head.stepMemory && all.stepMemory);
  auto gives = [](const artifact::Manifest &m, const std::string &name) {
    return std::ranges::any_of(
        m.findProgram("backward")->results, [&](const artifact::Slot &slot) {
          return slot.role == artifact::Role::Grad && slot.name == name;
        });
  };
  EXPECT_TRUE(gives(all, "v"));
  EXPECT_FALSE(gives(head, "v"));
  EXPECT_TRUE(all.findValue("adamw.m:v"));
  for (const artifact::Value &value : head.values)
    EXPECT_FALSE(value.name.ends_with(":v")) << value.name;
  EXPECT_LT(head.stepMemory->states, all.stepMemory->states);

  EXPECT_RAN(train("head.tdm", {"--steps=3", "--seed=2", "--save=w.st"}));
  EXPECT_RAN(train("head.tdm", {"--steps=1", "--seed=2", "--save=one.st"}));
  EXPECT_EQ(tensor("w.st", "v"), tensor("one.st", "v"));
  EXPECT_NE(tensor("w.st", "w"), tensor("one.st", "w"));

  const std::string fresh = "has no states of the optimizer for 'v', which no "
                            "update moved until now: they begin anew\n";
  Ended ended = train("all.tdm", {"--steps=2", "--resume=w.st", "--save=w.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(count(ended.err, fresh), 1) << ended.err;
  EXPECT_EQ(tensor("w.st", "adamw.step:w"), std::vector<float>{5});
  EXPECT_EQ(tensor("w.st", "adamw.step:v"), std::vector<float>{2});
  EXPECT_NE(tensor("w.st", "v"), tensor("one.st", "v"));
  // It is said once: now there is a state.
  ended = train("all.tdm", {"--steps=1", "--resume=w.st", "--save=w.st"});
  EXPECT_RAN(ended);
  EXPECT_EQ(ended.err.find("begin anew"), std::string::npos) << ended.err;
  EXPECT_EQ(tensor("w.st", "adamw.step:v"), std::vector<float>{3});
}

} // namespace
