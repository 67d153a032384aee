//===- ResumeTest.cpp - going on with the same training, or saying so -----===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"

#include <cmath>

namespace tandem::commands::test {
namespace {

class Resume : public CommandTest {
protected:
  /// Writes the artifact with other facts.
  void writeArtifact(const std::function<void(artifact::Manifest &)> &change) {
    auto object = io::readFile(TANDEM_CLASSIFIER_OBJECT);
    ASSERT_TRUE(object.ok());
    artifact::Manifest manifest = classifierManifest();
    change(manifest);
    artifact::ArtifactWriter writer;
    writer.setObject(std::string(io::asText(*object)));
    writer.setManifest(manifest);
    Status status = writer.write(path("classifier.tdm"));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  static artifact::Value &rate(artifact::Manifest &manifest) {
    for (artifact::Value &value : manifest.values)
      if (value.name == "momentum.lr")
        return value;
    return manifest.values[0];
  }

  /// Rewrites a checkpoint with one tensor or some metadata changed.
  void edit(const std::string &name,
            const std::map<std::string, Array> &tensors,
            const std::map<std::string, std::string> &metadata = {}) {
    auto file = io::Safetensors::read(path(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    std::map<std::string, io::ArrayView> views;
    for (const auto &[key, entry] : file->entries())
      views.emplace(key, *file->find(key));
    for (const auto &[key, array] : tensors)
      views[key] = array;
    auto texts = file->metadata();
    for (const auto &[key, value] : metadata) {
      texts.erase(key);
      if (!value.empty())
        texts[key] = value;
    }
    ASSERT_TRUE(io::writeSafetensors(path(name), views, texts).ok());
  }

  std::vector<float> tensor(const std::string &file, const std::string &name) {
    auto read = io::Safetensors::read(path(file));
    EXPECT_TRUE(read.ok()) << read.status().message();
    return io::test::elements<float>(*read->find(name));
  }

  static bool says(const Ended &ended, const std::string &line) {
    return ended.err.find(line + "\n") != std::string::npos;
  }
};

// `train --params CHECKPOINT` brought the old learning rate, moments and step
// count.
TEST_F(Resume, paramsAreNotTheOptimizers) {
  ASSERT_EQ(train({"--epochs=1", "--lr=0.25", "--save=w.st"}).code, 0);
  EXPECT_EQ(tensor("w.st", "momentum.lr"), std::vector<float>{0.25f});
  Ended ended = train({"--steps=1", "--params=w.st", "--save=fine.st"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(tensor("fine.st", "momentum.lr"), std::vector<float>{0.125f});
  // As if the file had the parameters alone.
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(
      io::writeSafetensors(path("w"), {{"w", *file->find("w")}}, {}).ok());
  ASSERT_EQ(train({"--steps=1", "--params=w", "--save=same.st"}).code, 0);
  EXPECT_EQ(bytes("fine.st"), bytes("same.st"));
}

// A forgotten --resume replaced a long training by a short one, and a wrong
// artifact the checkpoint of another model, without a word.
TEST_F(Resume, saysWhichCheckpointIsReplaced) {
  ASSERT_EQ(train({"--steps=4", "--save=w.st"}).code, 0);
  Ended ended = train({"--steps=1", "--resume=w.st", "--save=w.st"});
  EXPECT_EQ(ended.err.find("is replaced"), std::string::npos) << ended.err;
  ended = train({"--steps=1", "--save=w.st"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'w.st', a checkpoint after 5 steps, is "
                          "replaced by a new training; '--resume=w.st' would "
                          "go on from it"))
      << ended.err;
}

TEST_F(Resume, replacesNoCheckpointOfAnotherModel) {
  ASSERT_EQ(train({"--steps=4", "--save=w.st"}).code, 0);
  writeArtifact([](artifact::Manifest &manifest) {
    manifest.graph = std::string(64, 'e');
    manifest.model = "other";
  });
  auto before = bytes("w.st");
  Ended ended = train({"--steps=1", "--save=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("'w.st' is a checkpoint of the model"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(bytes("w.st"), before);
  ended = train({"--steps=1", "--save=w.st", "--force"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(bytes("w.st"), before);
}

TEST_F(Resume, saysThatStatesAreNaN) {
  ASSERT_EQ(train({"--steps=1", "--save=w.st"}).code, 0);
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok());
  const std::string name = "momentum.m:w";
  ASSERT_TRUE(file->find(name));
  std::vector<float> values = tensor("w.st", name);
  values[0] = NAN;
  edit("w.st",
       {{name,
         arrayOf<float>(DType::F32, file->entries().at(name).shape, values)}});
  Ended ended = train({"--steps=1", "--resume=w.st", "--save=v.st"});
  EXPECT_NE(ended.err.find("NaN in the states '" + name + "' at step 2"),
            std::string::npos)
      << ended.err;
}

TEST_F(Resume, saysWhichLearningRateCounts) {
  ASSERT_EQ(train({"--epochs=1", "--lr=0.25", "--save=w.st"}).code, 0);
  const std::string line =
      "note: the learning rate is 0.25, as in 'w.st', and not 0.125, which the "
      "artifact was compiled with; --lr sets another";
  Ended ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_TRUE(says(ended, line)) << ended.err;
  ended = train({"--epochs=1", "--resume=w.st", "--lr=0.5"});
  EXPECT_FALSE(says(ended, line)) << ended.err;
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.err.find("learning rate"), std::string::npos) << ended.err;
}

// A checkpoint with a learning rate of -3 trained with it.
TEST_F(Resume, refusesRatesThatCannotBe) {
  for (float rate : {-3.0f, NAN, INFINITY}) {
    ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
    edit("w.st", {{"momentum.lr", arrayOf<float>(DType::F32, {}, {rate})}});
    Ended ended = train({"--epochs=1", "--resume=w.st"});
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(ended.err.starts_with(
        "tandem-run: error: 'w.st': tensor 'momentum.lr': expected a number of "
        "at least 0 but got "))
        << ended.err;
  }
}

// The first moment of a parameter that is a number was taken for a rate, and
// refused where it is negative.
TEST_F(Resume, momentsOfNumbersMayBeNegative) {
  writeArtifact([](artifact::Manifest &manifest) {
    artifact::Value moment = rate(manifest);
    moment.name = "momentum.m:temperature";
    moment.init = artifact::Init::constant(-0.5);
    manifest.values.push_back(moment);
  });
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  Ended ended = train({"--epochs=1", "--resume=w.st", "--save=w.st"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(tensor("w.st", "momentum.m:temperature"),
            std::vector<float>{-0.5f});
}

// Of a checkpoint with one count of steps no parameter got its count.
TEST_F(Resume, oneCountOfStepsIsThatOfEachParameter) {
  auto counts = [&](const std::string &name, double steps) {
    writeArtifact([&](artifact::Manifest &manifest) {
      artifact::Value count = rate(manifest);
      count.name = name;
      count.init = artifact::Init::constant(steps);
      manifest.values.push_back(count);
    });
  };
  counts("momentum.step", 7);
  ASSERT_EQ(train({"--epochs=1", "--save=one.st"}).code, 0);
  counts("momentum.step:w", 0);
  Ended ended = train({"--epochs=1", "--resume=one.st", "--save=each.st"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(tensor("each.st", "momentum.step:w"), std::vector<float>{7});
}

// A checkpoint of another model resumed without a word.
TEST_F(Resume, refusesAnotherGraph) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  writeArtifact([](auto &manifest) {
    manifest.model = "other";
    manifest.graph = std::string(64, 'd');
  });
  Ended ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: 'w.st' was trained on another graph, of the "
            "model 'classifier' (graph cccccccc), but got 'other' (graph "
            "dddddddd); --params takes its parameters alone; --force goes on "
            "all the same\n");
  ended = train({"--epochs=1", "--resume=w.st", "--force"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'w.st' was trained on another graph, of the "
                          "model 'classifier' (graph cccccccc), but got "
                          "'other' (graph dddddddd)"))
      << ended.err;
  // A name alone is none.
  writeArtifact([](auto &manifest) { manifest.model = "renamed"; });
  ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'w.st' is of the model 'classifier', which is "
                          "called 'renamed' now"))
      << ended.err;
}

// Of another optimizer's checkpoint the message was a list of every tensor of
// this one's.
TEST_F(Resume, saysThatTheOptimizerIsAnother) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  writeArtifact([](artifact::Manifest &manifest) {
    auto rename = [](std::string &name) {
      if (name.starts_with("momentum."))
        name.replace(0, 8, "adamw");
    };
    manifest.optimizer = "adamw";
    for (artifact::Value &value : manifest.values)
      rename(value.name);
    for (artifact::Program &program : manifest.programs) {
      for (artifact::Slot &slot : program.arguments)
        rename(slot.name);
      for (artifact::Slot &slot : program.results)
        rename(slot.name);
    }
  });
  Ended ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: 'w.st' was trained with the optimizer "
            "'momentum', but this artifact's is 'adamw'; --params takes its "
            "parameters alone\n");
  ended = train({"--epochs=1", "--params=w.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// --params of another model listed every parameter that it lacks.
TEST_F(Resume, namesTheFirstOfManyMissingTensors) {
  auto add = [&](int count) {
    writeArtifact([&](artifact::Manifest &manifest) {
      for (int i = 0; i < count; ++i) {
        artifact::Value value = rate(manifest);
        value.role = artifact::Role::Param;
        value.name = "p" + std::to_string(i);
        manifest.values.push_back(value);
      }
    });
  };
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  add(3);
  const std::string first =
      "tandem-run: error: 'w.st': has no tensor 'p0' (f32 []); has no tensor "
      "'p1' (f32 []); has no tensor 'p2' (f32 [])";
  Ended ended = train({"--epochs=1", "--params=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, first + "\n");
  add(11);
  ended = train({"--epochs=1", "--params=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, first + "; in all 11 of 12 tensors are missing\n");
}

// Epochs and steps of 2^63-1 overflowed, and what was saved could not be
// resumed.
TEST_F(Resume, refusesNumbersThatOverflow) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  std::string good = text("w.st");
  const std::string most = "9007199254740992";
  for (const char *key :
       {"epoch", "step", "total_steps", "rows", "batch", "seed"}) {
    bool isSeed = std::string_view(key) == "seed";
    std::string range =
        "from 0 to " + (isSeed ? std::to_string(INT64_MAX) : most);
    for (std::string number :
         {isSeed ? "9223372036854775808" : "9223372036854775807", "-1",
          "18446744073709551616", ""}) {
      io::test::store(path("w.st"), io::test::bytesOf(good));
      if (number.empty())
        number = "x";
      edit("w.st", {}, {{std::string("tandem.") + key, number}});
      Ended ended = train({"--epochs=1", "--resume=w.st", "--save=n.st"});
      EXPECT_EQ(ended.code, 2) << key;
      EXPECT_EQ(ended.err, "tandem-run: error: 'w.st': metadata 'tandem." +
                               std::string(key) + "': expected an integer " +
                               range + " but got '" + number + "'\n");
    }
  }
  // What is counted from there stays within.
  for (auto [key, what, more] :
       {std::tuple("epoch", "epochs", 1), {"total_steps", "steps", 5}}) {
    io::test::store(path("w.st"), io::test::bytesOf(good));
    edit("w.st", {},
         {{std::string("tandem.") + key, most}, {"tandem.total_steps", most}});
    Ended ended = train({"--epochs=1", "--resume=w.st", "--save=n.st"});
    EXPECT_EQ(ended.code, 2) << key;
    EXPECT_NE(ended.err.find("expected at most " + most + " " + what +
                             " of a training but got " + most +
                             " of 'w.st' and " + std::to_string(more) +
                             " more\n"),
              std::string::npos)
        << ended.err;
  }
  io::test::store(path("w.st"), io::test::bytesOf(good));
  edit("w.st", {},
       {{"tandem.epoch", "9007199254740981"},
        {"tandem.total_steps", "9007199254740987"}});
  Ended ended = train({"--epochs=1", "--resume=w.st", "--save=n.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(
      io::Safetensors::read(path("n.st"))->metadata().at("tandem.total_steps"),
      most);
}

// Losses of the pass that was begun were whatever a damaged file had, and so
// was the loss that is printed.
TEST_F(Resume, refusesNumbersThatNoTrainingHas) {
  ASSERT_EQ(train({"--steps=7", "--save=good.st"}).code, 0);
  std::string good = text("good.st");
  auto resumed = [&](const std::map<std::string, std::string> &metadata) {
    io::test::store(path("w.st"), io::test::bytesOf(good));
    edit("w.st", {}, metadata);
    return train({"--epochs=1", "--resume=w.st", "--save=n.st"});
  };
  const std::string missing;
  for (auto [key, value, expected] :
       {std::tuple("loss_sum", std::string("x"), "a number but got 'x'"),
        {"loss_sum", "1 ", "a number but got '1 '"},
        {"loss_sum", missing, "a number but got ''"},
        {"losses", "99", "an integer from 0 to 2 but got '99'"},
        {"shuffle", "99", "an integer from 0 to 1 but got '99'"},
        {"accumulate", "0",
         "an integer from 1 to 9007199254740992 but got '0'"}}) {
    Ended ended = resumed({{std::string("tandem.") + key, value}});
    EXPECT_EQ(ended.code, 2) << key;
    EXPECT_EQ(ended.err, "tandem-run: error: 'w.st': metadata 'tandem." +
                             std::string(key) + "': expected " + expected +
                             "\n");
  }
  for (auto [key, value, passes] :
       {std::tuple("epoch", "0", "0"), {"epoch", "6", "6"}}) {
    Ended ended = resumed({{std::string("tandem.") + key, value}});
    EXPECT_EQ(ended.code, 2) << value;
    EXPECT_TRUE(says(ended, std::string("'tandem.total_steps': 7 steps cannot "
                                        "be those of ") +
                                passes +
                                " passes and of 2 steps of the next "
                                "one"))
        << ended.err;
  }
  Ended ended = resumed({{"tandem.losses", missing}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("has no metadata 'tandem.losses'"),
            std::string::npos)
      << ended.err;
  // Nothing of them is a checkpoint of before, which is said.
  ended = resumed({{"tandem.losses", missing}, {"tandem.loss_sum", missing}});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'w.st' has no losses of the pass that was "
                          "begun: its mean will be that of the steps that "
                          "follow"))
      << ended.err;
  // As is a loss that was infinite, which '--on-nan=report' goes on with.
  ended = resumed({{"tandem.loss_sum", "inf"}});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'w.st' has losses that are not finite in the "
                          "pass that was begun, and so has its mean"))
      << ended.err;
}

TEST_F(Resume, anotherCompilationIsTheSameModel) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  writeArtifact([](auto &manifest) {
    rate(manifest).init = artifact::Init::constant(0.5);
    manifest.producer = "another";
  });
  Ended ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err.find("graph"), std::string::npos) << ended.err;
}

// Data that was shuffled in its file passed even in the middle of a pass.
TEST_F(Resume, seesOtherData) {
  ASSERT_EQ(train({"--steps=7", "--save=mid.st"}).code, 0);
  ASSERT_EQ(train({"--epochs=1", "--save=end.st"}).code, 0);
  Array x = features(22);
  std::vector<std::byte> first(x.bytes.begin(), x.bytes.begin() + 12);
  std::copy(x.bytes.begin() + 12, x.bytes.begin() + 24, x.bytes.begin());
  std::copy(first.begin(), first.end(), x.bytes.begin() + 12);
  ASSERT_TRUE(io::writeNpy(path("x.npy"), x).ok());
  const std::string differs = "was trained on other data: the rows of 'x' "
                              "differ, in what they hold or in their order";
  Ended ended = train({"--epochs=1", "--resume=mid.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: 'mid.st' " + differs +
                           ", and a pass over them was begun; --force goes on "
                           "all the same\n");
  EXPECT_EQ(train({"--epochs=1", "--resume=mid.st", "--force"}).code, 0);
  ended = train({"--epochs=1", "--resume=end.st"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(says(ended, "note: 'end.st' " + differs)) << ended.err;
  // The same rows in a file of another type are the same data.
  ASSERT_TRUE(io::writeNpy(path("x.npy"), features(22)).ok());
  ended = train({"--epochs=1", "--resume=mid.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(Resume, seesAnotherNumberOfRows) {
  ASSERT_EQ(train({"--epochs=1", "--save=end.st"}).code, 0);
  ASSERT_TRUE(io::writeNpy(path("x.npy"), features(40)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels.npy"), labels(40)).ok());
  Ended ended = train({"--epochs=1", "--resume=end.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(
      says(ended, "note: 'end.st' was trained with rows: 22 but got 40"))
      << ended.err;
}

TEST_F(Resume, checkpointsWithoutDigestsGoOnWithANote) {
  ASSERT_EQ(train({"--epochs=2", "--save=whole.st"}).code, 0);
  ASSERT_EQ(train({"--epochs=1", "--save=old.st"}).code, 0);
  edit("old.st", {}, {{"tandem.graph", ""}, {"tandem.data", ""}});
  Ended ended = train({"--epochs=1", "--resume=old.st", "--save=rest.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended, "note: 'old.st' or the artifact does not say which "
                          "graph and data they are of, so that these cannot be "
                          "compared"))
      << ended.err;
  EXPECT_EQ(bytes("rest.st"), bytes("whole.st"));
  // The name is known all the same.
  writeArtifact([](auto &manifest) { manifest.model = "other"; });
  ended = train({"--epochs=1", "--resume=old.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("'old.st' was trained on the model 'classifier' but "
                           "got 'other'; --force goes on all the same"),
            std::string::npos)
      << ended.err;
}

// A digest of the data that was damaged passed for one that is not there.
TEST_F(Resume, saysThatTheDigestOfTheDataIsDamaged) {
  ASSERT_EQ(train({"--epochs=1", "--save=end.st"}).code, 0);
  edit("end.st", {}, {{"tandem.data", "x"}});
  Ended ended = train({"--epochs=1", "--resume=end.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended, "note: 'end.st' does not say which data it was "
                          "trained on: its metadata 'tandem.data' is damaged"))
      << ended.err;
}

// A training without --save ended without a word, and nothing was kept.
TEST_F(Resume, saysThatNothingIsKept) {
  const std::string line =
      "warning: without --save nothing of this training is kept";
  EXPECT_TRUE(says(train({"--epochs=1"}), line));
  EXPECT_FALSE(says(train({"--epochs=1", "--save=w.st"}), line));
}

// `run` without --params used random weights without a word.
TEST_F(Resume, saysThatParametersAreInitial) {
  ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels4.npy"), labels(4)).ok());
  std::vector<std::string> words = {"run",     "classifier.tdm",
                                    "--input", "x=@x4.npy",
                                    "--input", "labels=@labels4.npy"};
  Ended ended = run(words);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "note: without --params the parameters have their "
                       "initial values (--seed 0)\n");
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  words.push_back("--params=w.st");
  EXPECT_EQ(run(words).err, "");
}

// Without them the rest of the pass would be other rows.
TEST_F(Resume, T09_refusesToResumeAPassWithoutItsWeights) {
  std::vector<float> weights(22, 1.0f);
  weights[3] = 0;
  ASSERT_TRUE(
      io::writeNpy(path("w.npy"), arrayOf<float>(DType::F32, {22}, weights))
          .ok());
  ASSERT_EQ(train({"--steps=2", "--weights=@w.npy", "--save=w.st"}).code, 0);
  Ended ended = train({"--steps=2", "--resume=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("the rows of '--weights' differ"), std::string::npos)
      << ended.err;
  EXPECT_EQ(train({"--steps=2", "--resume=w.st", "--weights=@w.npy"}).code, 0);
}

// The order of a buffer is another one than that of all rows, and goes on in
// the middle of a pass.
TEST_F(Resume, T09_goesOnInTheOrderOfItsBuffer) {
  const char *buffer = "--shuffle-buffer=5";
  ASSERT_EQ(train({"--steps=4", buffer, "--save=whole.st"}).code, 0);
  ASSERT_EQ(train({"--steps=4", "--save=all.st"}).code, 0);
  ASSERT_EQ(train({"--steps=2", buffer, "--save=w.st"}).code, 0);
  for (Ended ended :
       {train({"--steps=2", "--resume=w.st"}),
        train({"--steps=2", "--resume=w.st", "--shuffle-buffer=6"})}) {
    EXPECT_EQ(ended.code, 2);
    EXPECT_NE(ended.err.find("the rows of '--shuffle-buffer' differ"),
              std::string::npos)
        << ended.err;
  }
  ASSERT_EQ(train({"--steps=2", "--resume=w.st", buffer, "--save=w.st"}).code,
            0);
  EXPECT_EQ(bytes("w.st"), bytes("whole.st"));
  EXPECT_NE(bytes("all.st"), bytes("whole.st"));
}

// A name says nothing of what is counted.
TEST_F(Resume, T10_comparesTheBestByTheSameMetricAlone) {
  auto best = [&](const char *metric, std::vector<std::string> more) {
    std::vector<std::string> all = {
        "--epochs=1",
        "--eval",
        "x=@x.npy",
        "--eval",
        "labels=@labels.npy",
        std::string("--metric=q=") + metric + ":logits,labels",
        "--best=q",
        "--save=w.st",
        "--save-best=b.st"};
    all.insert(all.end(), more.begin(), more.end());
    return train(all);
  };
  Ended ended = best("top2", {});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ended = best("top2", {"--resume=w.st"});
  EXPECT_EQ(ended.err.find("is by another number"), std::string::npos)
      << ended.err;
  ended = best("f1", {"--resume=w.st"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("is by another number, and is not compared with"),
            std::string::npos)
      << ended.err;
}

} // namespace
} // namespace tandem::commands::test
