//===- OutputsTest.cpp - no output replaces what it should not ------------===//
//
// As a user meets it, with `tandem-run`; tests/cli/files.sh is the same for
// the commands of the compiler.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/FileKind.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"

#include <cmath>

namespace tandem::commands::test {
namespace {

class Outputs : public CommandTest {
protected:
  void SetUp() override {
    CommandTest::SetUp();
    ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
    ASSERT_TRUE(io::writeNpy(path("labels4.npy"), labels(4)).ok());
    Array w = arrayOf<float>(DType::F32, {2, 3}, {-1, 0, 0, 1, 0, 0});
    ASSERT_TRUE(
        io::writeSafetensors(path("w.safetensors"), {{"w", w}}, {}).ok());
    ASSERT_TRUE(io::writeNpz(path("data.npz"),
                             {{"x", features(4)}, {"labels", labels(4)}})
                    .ok());
  }

  Ended evaluate(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "run",     "classifier.tdm", "--params", "w.safetensors",
        "--input", "x=@x4.npy",      "--input",  "labels=@labels4.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  Ended evaluateArchive(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "run",     "classifier.tdm", "--params", "w.safetensors",
        "--input", "x=@data.npz",    "--input",  "labels=@data.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  /// The files of the folder, with what is in them.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> result;
    for (const std::string &name : folder().list())
      result[name] = text(name);
    return result;
  }

  /// Refused with the message, and nothing is touched.
  void expectRefused(const std::function<Ended()> &command,
                     const std::string &message) const {
    auto before = contents();
    Ended ended = command();
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_EQ(ended.err, "tandem-run: error: " + message + "\n");
    EXPECT_EQ(contents(), before) << message;
  }
};

const std::string choose = "; choose another file, or say --force";

// `run --output logits=@w.safetensors` replaced the parameters, @x.npy the
// input, @data.npz:pred the archive with the inputs.
TEST_F(Outputs, ofRunAreNoInputs) {
  expectRefused([&] { return evaluate({"--output=logits=@w.safetensors"}); },
                "--output 'logits' would replace 'w.safetensors', which "
                "--params reads" +
                    choose);
  expectRefused([&] { return evaluate({"--output=logits=@./x4.npy"}); },
                "--output 'logits' would replace './x4.npy', which --input 'x' "
                "reads" +
                    choose);
  expectRefused([&] { return evaluateArchive({"--output=logits=@data.npz"}); },
                "--output 'logits' would replace 'data.npz', which --input "
                "'x' reads" +
                    choose);
  // Files are compared, and not their names.
  std::filesystem::create_symlink("x4.npy", path("soft.npy"));
  std::filesystem::create_hard_link(path("x4.npy"), path("hard.npy"));
  for (const char *name : {"soft.npy", "hard.npy"})
    expectRefused(
        [&] { return evaluate({"--output=logits=@" + std::string(name)}); },
        "--output 'logits' would replace '" + std::string(name) +
            "', which --input 'x' reads" + choose);
  Ended ended = evaluate({"--output=logits=@hard.npy", "--force"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::readNpy(path("hard.npy"))->shape, (std::vector<int64_t>{4, 2}));
}

TEST_F(Outputs, ofRunAreAddedToAnArchive) {
  Ended ended = evaluateArchive({"--output=logits=@data.npz:pred"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::arraysIn(path("data.npz")),
            (std::vector<std::string>{"labels", "pred", "x"}));
  EXPECT_EQ(io::readNpz(path("data.npz"), "x", "")->bytes, features(4).bytes);
  // Not over another one, and not over what is read.
  expectRefused(
      [&] { return evaluateArchive({"--output=logits=@data.npz:pred"}); },
      "--output 'logits' would replace 'pred' in 'data.npz'" + choose);
  expectRefused(
      [&] { return evaluateArchive({"--output=logits=@data.npz:x"}); },
      "--output 'logits' would replace 'data.npz', which --input 'x' reads" +
          choose);
  expectRefused([&] { return evaluate({"--output=logits=@data.npz"}); },
                "--output 'logits' would replace 'data.npz', which holds "
                "'labels', 'pred', 'x' ('@data.npz:NAME' adds to it)" +
                    choose);
  ended = evaluate({"--output=logits=@data.npz:pred", "--force"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::arraysIn(path("data.npz")).size(), 3u);
  // One's own output of an earlier run is replaced.
  for (int i = 0; i < 2; ++i)
    for (const char *file : {"out.npz", "out.npz:logits", "out.safetensors"})
      EXPECT_EQ(evaluate({"--output=logits=@" + std::string(file)}).code, 0)
          << file;
}

// An array or a table that another command reads was replaced by another one of
// its kind: `--output logits=@labels4.npy`, `--output logits=@data.csv`.
TEST_F(Outputs, replaceWhatTheCommandCouldHaveWritten) {
  Array other = arrayOf<float>(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(io::writeNpy(path("other.npy"), other).ok());
  expectRefused([&] { return evaluate({"--output=logits=@other.npy"}); },
                "--output 'logits' would replace 'other.npy': expected rows of "
                "f32 [4, 2] but got f32 [2, 3]" +
                    choose);
  io::test::store(path("data.csv"), io::test::bytesOf("a,b\n1,2\n"));
  expectRefused(
      [&] { return evaluate({"--output=logits=@data.csv"}); },
      "--output 'logits' would replace 'data.csv', a table with other "
      "columns than its own" +
          choose);
  // Twice, its own; and with --force any.
  for (int i = 0; i < 2; ++i)
    for (const char *file : {"own.npy", "own.csv"})
      EXPECT_EQ(evaluate({"--output=logits=@" + std::string(file)}).code, 0);
  for (const char *file : {"other.npy", "data.csv"})
    EXPECT_EQ(
        evaluate({"--output=logits=@" + std::string(file), "--force"}).code, 0);
}

// The next save of the training dropped what was added to its checkpoint.
TEST_F(Outputs, areNotAddedToACheckpoint) {
  ASSERT_EQ(train({"--epochs=1", "--save=trained.safetensors"}).code, 0);
  expectRefused(
      [&] { return evaluate({"--output=logits=@trained.safetensors:pred"}); },
      "--output 'logits' would add to 'trained.safetensors', a checkpoint, "
      "whose training would replace it whole" +
          choose);
}

// A member with '..' in its name was written into the archive, from where it
// may be unpacked over anything.
TEST_F(Outputs, areNoMembersOutsideOfTheirArchive) {
  for (const char *member :
       {"x/../y", "..", "../y", "/y", "x\\..\\y", "\\y", "C:/y", "x/.."}) {
    std::string output = std::string("--output=logits=@p.npz:") + member;
    Ended ended = evaluate({output});
    EXPECT_EQ(ended.code, 2) << member;
    EXPECT_EQ(ended.err.find("tandem-run: error: --output 'logits': expected a "
                             "member of 'p.npz' that is no absolute path and "
                             "has no '..' in it, but got '"),
              0u)
        << ended.err;
    EXPECT_FALSE(std::filesystem::exists(path("p.npz"))) << member;
  }
  Ended ended = evaluate({"--output=logits=@p.npz:x/y..z/.w"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::arraysIn(path("p.npz")), std::vector<std::string>{"x/y..z/.w"});
  // In safetensors a name is no path.
  EXPECT_EQ(evaluate({"--output=logits=@p.safetensors:../y"}).code, 0);
}

TEST_F(Outputs, areOfTheKindThatTheyReplace) {
  io::test::store(path("notes.npy"), io::test::bytesOf("my notes"));
  expectRefused([&] { return evaluate({"--output=logits=@notes.npy"}); },
                "--output 'logits' would replace 'notes.npy': expected an "
                "array (npy) but got a file of another kind" +
                    choose);
  std::filesystem::copy_file(path("classifier.tdm"), path("other.npz"));
  expectRefused([&] { return evaluate({"--output=logits=@other.npz:a"}); },
                "--output 'logits' would replace 'other.npz': expected arrays "
                "(npz) but got an artifact" +
                    choose);
  Ended ended = evaluate({"--output=logits=@other.npz:a", "--force", "--output",
                          "loss=@notes.npy"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::arraysIn(path("other.npz")), std::vector<std::string>{"a"});
  // An empty file and a device are nobody's.
  io::test::store(path("empty.npy"), {});
  std::filesystem::create_symlink("/dev/null", path("null.npy"));
  EXPECT_EQ(
      evaluate({"--output=logits=@empty.npy", "--output", "loss=@null.npy"})
          .code,
      0);
}

// `train --save X.tdm`, `--save x.npy`, `--log X.tdm` and `--log f --save f`
// replaced the artifact, the data and each other, with exit code 0.
TEST_F(Outputs, ofTrainAreNoInputsAndNotEachOther) {
  expectRefused(
      [&] {
        return train({"--epochs=1", "--save=classifier.tdm", "--log=x.npy"});
      },
      "--save would replace 'classifier.tdm', which X.tdm reads; --log would "
      "replace 'x.npy', which --data 'x' reads" +
          choose);
  expectRefused(
      [&] {
        return train({"--epochs=1", "--save=x4.npy", "--log=data.npz"});
      },
      "--save would replace 'x4.npy': expected a checkpoint but got an array "
      "(npy); --log would replace 'data.npz': expected a training's log but "
      "got arrays (npz)" +
          choose);
  for (const char *force : {"--json", "--force"})
    expectRefused(
        [&] {
          return train({"--epochs=1", "--save=f", "--log=./f", force});
        },
        "--save and --log would both write './f'");
  // Weights that were not saved by `train` are somebody's.
  expectRefused(
      [&] {
        return train({"--epochs=1", "--save=w.safetensors"});
      },
      "--save would replace 'w.safetensors': expected a checkpoint but got "
      "tensors (safetensors)" +
          choose);
  expectRefused(
      [&] {
        return train(
            {"--epochs=1", "--params=w.safetensors", "--save=w.safetensors"});
      },
      "--save would replace 'w.safetensors', which --params reads" + choose);
  EXPECT_EQ(train({"--epochs=1", "--params=w.safetensors",
                   "--save=w.safetensors", "--force"})
                .code,
            0);
}

// What `train --save a.st` had written was "not a usable artifact" for
// `inspect`, which looked at the name.
TEST_F(Outputs, ofTrainAreInspectedWhateverTheirNames) {
  ASSERT_EQ(train({"--epochs=1", "--save=a.st"}).code, 0);
  Ended ended = run({"inspect", "a.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("training stands after 1 epochs"))
      << ended.out;
  std::filesystem::copy_file(path("classifier.tdm"), path("b.safetensors"));
  ended = run({"inspect", "b.safetensors"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("classifier"), std::string::npos) << ended.out;
  io::test::store(path("c.safetensors"), io::test::bytesOf("12345678{"));
  ended = run({"inspect", "c.safetensors"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err.find("artifact"), std::string::npos) << ended.err;
}

TEST_F(Outputs, ofTrainReplaceThoseOfAnEarlierTraining) {
  for (int i = 0; i < 2; ++i) {
    Ended ended = train({"--epochs=1", "--save=c.st", "--log=c.jsonl"});
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  // Going on with a checkpoint replaces it.
  Ended ended =
      train({"--epochs=1", "--resume=c.st", "--save=c.st", "--log=c.jsonl"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(io::Safetensors::read(path("c.st"))->metadata().at("tandem.epoch"),
            "2");
  std::vector<std::string> names = folder().list();
  for (const std::string &name : names)
    EXPECT_EQ(name.find(".tandem-"), name.npos) << name;
}

// NaN was saved over a good checkpoint, with exit code 0.
TEST_F(Outputs, ofTrainAreNoNaNs) {
  ASSERT_EQ(train({"--epochs=1", "--save=good.st"}).code, 0);
  std::string good = text("good.st");
  for (const char *policy : {"--on-nan=stop", "--on-nan=report"}) {
    Ended ended = train({"--epochs=20", "--resume=good.st", "--save=good.st",
                         "--lr=1e6", policy});
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_EQ(text("good.st"), good) << policy;
  }
  // On the way, what is finite is saved, and the rest passed over.
  Ended ended = train({"--epochs=20", "--save=w.st", "--save-every=1",
                       "--lr=1e6", "--on-nan=report"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("warning: not saved to 'w.st' at step "),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("error: not saved to 'w.st' at step 100: NaN or "
                           "infinity in the parameters 'w'\n"),
            std::string::npos)
      << ended.err;
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok());
  for (float w : io::test::elements<float>(*file->find("w")))
    EXPECT_TRUE(std::isfinite(w));
  for (const std::string &name : folder().list())
    EXPECT_EQ(name.find(".tandem-"), name.npos) << name;
}

} // namespace
} // namespace tandem::commands::test
