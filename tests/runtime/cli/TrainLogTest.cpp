//===- TrainLogTest.cpp - the log of a training ---------------------------===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"
#include "tools/commands/Log.h"

#include <filesystem>

namespace tandem::commands::test {
namespace {

class TrainLog : public CommandTest {};

// A training that failed before its first step emptied the log of another.
TEST_F(TrainLog, emptiesALogWithItsFirstLine) {
  ASSERT_EQ(train({"--epochs=1", "--log=log.jsonl"}).code, 0);
  std::string before = text("log.jsonl");
  Log log;
  ASSERT_TRUE(log.open(path("log.jsonl"), Log::Then::Replace, 0.5).ok());
  EXPECT_EQ(text("log.jsonl"), before);
  log.step(1, 1, *runtime::Tensor::zeros(artifact::DType::F32, {}), 0.25);
  ASSERT_TRUE(log.close().ok());
  EXPECT_EQ(text("log.jsonl"),
            "{\"epoch\": 1, \"step\": 1, \"loss\": 0, \"lr\": 0.5, "
            "\"seconds\": 0.250000}\n");
}

// A new training replaced the log of another without a word.
TEST_F(TrainLog, keepsTheLogOfAnotherTraining) {
  ASSERT_EQ(train({"--steps=2", "--log=log.jsonl"}).code, 0);
  std::string first = text("log.jsonl");
  Ended ended = train({"--steps=3", "--log=log.jsonl"});
  ASSERT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("note: the log of another training in 'log.jsonl' "
                           "is kept as 'log.jsonl.1'\n"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(text("log.jsonl.1"), first);
  std::string second = text("log.jsonl");
  EXPECT_EQ(std::count(second.begin(), second.end(), '\n'), 3);
  // The next one has the next number; --force keeps none.
  ASSERT_EQ(train({"--steps=1", "--log=log.jsonl"}).code, 0);
  EXPECT_EQ(text("log.jsonl.1"), first);
  EXPECT_EQ(text("log.jsonl.2"), second);
  ASSERT_EQ(train({"--steps=1", "--log=log.jsonl", "--force"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("log.jsonl.3")));
}

// Lines of another training were added to without a word.
TEST_F(TrainLog, saysThatTheLogEndsElsewhere) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  ASSERT_EQ(train({"--steps=3", "--log=log.jsonl"}).code, 0);
  Ended ended = train({"--epochs=1", "--resume=w.st", "--log=log.jsonl"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("the log 'log.jsonl' ends at step 3, and this "
                           "training goes on after step 5"),
            std::string::npos)
      << ended.err;
  // Now it ends at step 10.
  ASSERT_EQ(train({"--epochs=2", "--save=w.st"}).code, 0);
  ended = train({"--epochs=1", "--resume=w.st", "--log=log.jsonl"});
  EXPECT_EQ(ended.err.find("the log"), std::string::npos) << ended.err;
}

// A kill left half a line, and the next line was appended to it.
TEST_F(TrainLog, cutsATornLineOfTheLog) {
  ASSERT_EQ(train({"--steps=3", "--save=w.st", "--log=log.jsonl"}).code, 0);
  std::string whole = text("log.jsonl");
  io::test::store(path("log.jsonl"),
                  io::test::bytesOf(whole + "{\"epoch\": 1, \"st"));
  Ended ended = train({"--steps=1", "--resume=w.st", "--log=log.jsonl"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("the last line of the log 'log.jsonl' was cut off"),
            std::string::npos)
      << ended.err;
  EXPECT_TRUE(text("log.jsonl")
                  .starts_with(whole + "{\"epoch\": 1, \"step\": 4, \"loss\""));
}

// A loss of power leaves zeros where lines were not on disk.
TEST_F(TrainLog, cutsZerosOfTheLog) {
  ASSERT_EQ(train({"--steps=3", "--save=w.st", "--log=log.jsonl"}).code, 0);
  std::string whole = text("log.jsonl");
  io::test::store(path("log.jsonl"),
                  io::test::bytesOf(whole + std::string(99, '\0') + "4}\n"));
  Ended ended = train({"--steps=1", "--resume=w.st", "--log=log.jsonl"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(text("log.jsonl")
                  .starts_with(whole + "{\"epoch\": 1, \"step\": 4, \"loss\""));
}

// Lines were written when the buffer was full, and a checkpoint before its log.
TEST_F(TrainLog, keepsALogThatIsNotBehindItsCheckpoint) {
  Log log;
  ASSERT_TRUE(log.open(path("l.jsonl"), Log::Then::Replace, 0.5).ok());
  log.step(1, 1, *runtime::Tensor::zeros(artifact::DType::F32, {}), 0.25);
  ASSERT_TRUE(log.sync().ok());
  EXPECT_EQ(lastStepOf(path("l.jsonl")), 1);
}

// A log on a full disk took the weights along: nothing was saved.
TEST_F(TrainLog, savesWhereTheLogCannotBeWritten) {
  for (std::string more : {"--seed=1", "--save-every=2"}) {
    Ended ended = train({"--steps=9", more, "--save=w.st", "--log=/dev/full"});
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_NE(ended.err.find("error: cannot write '/dev/full': No space left "
                             "on device; what was trained is saved to 'w.st'"),
              std::string::npos)
        << ended.err;
    size_t warned = ended.err.find("; training goes on without a log");
    EXPECT_NE(warned, std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("without a log", warned + 30), ended.err.npos);
    auto file = io::Safetensors::read(path("w.st"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->metadata().at("tandem.total_steps"), "9");
    std::filesystem::remove(path("w.st"));
  }
}

} // namespace
} // namespace tandem::commands::test
