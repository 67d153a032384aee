//===- TrainCommandTest.cpp - `tandem-run train` as a user runs it --------===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"

#include <cmath>
#include <filesystem>
#include <regex>
#include <sys/resource.h>
#include <sys/stat.h>

namespace tandem::commands::test {
namespace {

class TrainCommand : public CommandTest {
protected:
  std::vector<std::string> evaluation() const {
    return {"--eval", "x=@x.npy", "--eval", "labels=@labels.npy",
            "--accuracy=logits,labels"};
  }

  /// A log without the seconds of its lines.
  std::string untimed(const std::string &name) const {
    return std::regex_replace(text(name), std::regex(", \"seconds\": [^}]*"),
                              "");
  }

  static std::vector<std::string> plus(std::vector<std::string> a,
                                       const std::vector<std::string> &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

const char *const leftOut = "note: 2 of 22 rows do not fill a batch of 4 and "
                            "are left out of each epoch; compiled with ";

/// Of the 22 rows: what they are and their CRC32.
const char *const dataDigests =
    R"({"labels":"i32 [22] 11b2a2ba","x":"f32 [22, 3] 85b60087"})";

TEST_F(TrainCommand, learns) {
  Ended ended =
      train(plus({"--epochs=20", "--seed=0", "--json"}, evaluation()));
  ASSERT_EQ(ended.code, 0) << ended.err;
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["epochs"], 20);
  EXPECT_EQ(json["steps"], 100);
  EXPECT_EQ(json["batch"], 4);
  EXPECT_LT(json["loss"], 0.2);
  EXPECT_EQ(json["eval"]["rows"], 22);
  EXPECT_EQ(json["eval"]["counted"], 22) << "only real rows count";
  EXPECT_EQ(json["eval"]["accuracy"], 1.0);
  EXPECT_LT(json["eval"]["outputs"]["loss"], 0.2);
  EXPECT_FALSE(json.contains("saved"));
}

TEST_F(TrainCommand, printsResultsAndProgress) {
  Ended ended = train(plus(
      {"--epochs=2", "--report-interval=3", "--save=w.st", "--eval-every=1"},
      evaluation()));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err.find(leftOut), 0u) << ended.err;
  for (const char *part :
       {"\nepoch 1/2  step 3/5  loss ", "\nepoch 2/2  step 1/5  loss ",
        "\nepoch 2/2  step 4/5  loss ", "\nepoch 2/2  step 5/5  loss ",
        " samples/s  0:00 left\n", "\nepoch 1  eval.loss "})
    EXPECT_NE(ended.err.find(part), std::string::npos) << part << ended.err;
  EXPECT_EQ(ended.err.find('\r'), std::string::npos);
  for (const char *part : {"loss = ", "\neval.loss = ", "\neval.accuracy = ",
                           " of 22)\n", "\nsaved to 'w.st'\n"})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << ended.out;
}

/// What a terminal of `columns` shows in the end; fails where a line is wider.
std::vector<std::string> screenOf(const std::string &text, size_t columns) {
  std::vector<std::string> lines(1);
  size_t row = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      if (!lines[row].starts_with("note: ") &&
          !lines[row].starts_with("warning: ")) {
        EXPECT_LT(lines[row].size(), columns) << lines[row];
      }
      if (++row == lines.size())
        lines.emplace_back();
    } else if (text.compare(i, 2, "\x1b[") == 0) {
      size_t end = text.find_first_of("ABCDHJKhlm", i);
      if (text[end] == 'A')
        row -= std::min(row, size_t(std::stoi(text.substr(i + 2))));
      else
        EXPECT_EQ(text[end], 'J') << "the mode of the terminal is changed";
      if (text[end] == 'J') {
        lines.resize(row + 1);
        lines[row].clear();
      }
      i = end;
    } else if (text[i] != '\r') {
      lines[row] += text[i];
    }
  }
  return lines;
}

TEST_F(TrainCommand, drawsAViewOnATerminal) {
  ::setenv("TERM", "xterm", 1);
  ::setenv("LC_ALL", "C", 1);
  Start terminal;
  terminal.terminal = true;
  Ended ended = train(
      plus({"--epochs=8", "--tui", "--eval-every=1"}, evaluation()), terminal);
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::vector<std::string> screen = screenOf(ended.err, 80);
  size_t at = 0;
  for (const char *part :
       {"  epoch 8  step 40  40/40  ", "loss ", "learning rate ", "samples/s ",
        "memory ", "eval loss ", "eval accuracy "}) {
    while (at < screen.size() && screen[at].find(part) == std::string::npos)
      ++at;
    EXPECT_LT(at, screen.size()) << part << "\n" << ended.err;
  }
  // The last frame has all eight evaluations.
  for (const std::string &line : screen)
    if (line.starts_with("eval loss ")) {
      EXPECT_EQ(line.size() - line.find_last_of(' ') - 1, 8u) << line;
    }
  // Lines that are said in between stay above it.
  EXPECT_NE(std::ranges::find_if(
                screen,
                [](const auto &line) { return line.starts_with("epoch 7  "); }),
            screen.end())
      << ended.err;
  // Elsewhere it is said that it cannot be drawn.
  ended = train({"--epochs=2", "--tui"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--tui draws on a terminal, but stderr is none"),
            std::string::npos)
      << ended.err;
  ::setenv("TERM", "dumb", 1);
  ended = train({"--epochs=2", "--tui"}, terminal);
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("but TERM is 'dumb'"), std::string::npos);
  ::unsetenv("LC_ALL");
}

TEST_F(TrainCommand, rewritesALineOnATerminal) {
  Start terminal;
  terminal.terminal = true;
  Ended ended = train({"--epochs=2"}, terminal);
  ASSERT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("\r\x1b[Kepoch 1/2  step 1/5"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(ended.err.ends_with("\r\x1b[K")) << ended.err;
}

TEST_F(TrainCommand, sameSeedSameBitsForAnyThreads) {
  auto losses = [&](const char *threads, const char *seed) {
    Ended ended = train({"--epochs=3", threads, seed, "--log=log.jsonl"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return untimed("log.jsonl");
  };
  std::string one = losses("--threads=1", "--seed=5");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 15);
  EXPECT_EQ(one.find("{\"epoch\": 1, \"step\": 1, \"loss\": "), 0u);
  EXPECT_NE(one.find(", \"lr\": 0.125"), std::string::npos);
  EXPECT_EQ(one, losses("--threads=1", "--seed=5"));
  EXPECT_EQ(one, losses("--threads=2", "--seed=5"));
  EXPECT_NE(one, losses("--threads=1", "--seed=6"));
}

TEST_F(TrainCommand, resumesBitwise) {
  ASSERT_EQ(
      train({"--epochs=2", "--seed=3", "--save=whole.st", "--log=whole.jsonl"})
          .code,
      0);
  ASSERT_EQ(
      train({"--epochs=1", "--seed=3", "--save=half.st", "--log=parts.jsonl"})
          .code,
      0);
  Ended ended = train({"--epochs=1", "--resume=half.st", "--save=rest.st",
                       "--log=parts.jsonl"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(bytes("whole.st"), bytes("rest.st"));
  EXPECT_EQ(untimed("whole.jsonl"), untimed("parts.jsonl"));
  EXPECT_NE(bytes("whole.st"), bytes("half.st"));

  // In the middle of a pass, too; the pass counts as one.
  ASSERT_EQ(train({"--steps=7", "--seed=3", "--save=seven.st"}).code, 0);
  ASSERT_EQ(train({"--epochs=1", "--resume=seven.st", "--save=end.st"}).code,
            0);
  EXPECT_EQ(bytes("whole.st"), bytes("end.st"));
}

// Opened once to see whether it can be written, and once to write it: who read
// the pipe found its end in between, and the command waited for ever.
TEST_F(TrainCommand, savesToNoPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  Ended ended = train({"--steps=1", "--save=pipe"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--save: expected a file but got the pipe 'pipe': a "
                           "checkpoint is written more than once"),
            std::string::npos)
      << ended.err;
}

// Options that never came to anything were taken in silence.
TEST_F(TrainCommand, saysWhatThisTrainingEndsBefore) {
  Ended ended = train({"--steps=4", "--save=w.st", "--save-every=4"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("--save-every=4 saves nothing before the end: this "
                           "training does the steps 1 to 4"),
            std::string::npos)
      << ended.err;
  ended = train({"--steps=4", "--save=w.st", "--save-every=3"});
  EXPECT_EQ(ended.err.find("--save-every"), std::string::npos) << ended.err;
}

TEST_F(TrainCommand, keepsEverythingInTheCheckpoint) {
  ASSERT_EQ(train({"--steps=7", "--seed=9", "--lr=0.25", "--save=w.st"}).code,
            0);
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->entries().size(), 3u);
  EXPECT_EQ(io::test::elements<float>(*file->find("momentum.lr")),
            std::vector<float>{0.25f});
  auto metadata = file->metadata();
  EXPECT_GT(std::stod(metadata["tandem.loss_sum"]), 0); // of two steps
  metadata.erase("tandem.loss_sum");
  std::map<std::string, std::string> wanted = {{"model", "classifier"},
                                               {"losses", "2"},
                                               {"epoch", "1"},
                                               {"step", "2"},
                                               {"total_steps", "7"},
                                               {"seed", "9"},
                                               {"rows", "22"},
                                               {"batch", "4"},
                                               {"shuffle", "1"},
                                               {"accumulate", "1"},
                                               {"graph", std::string(64, 'c')},
                                               {"data", dataDigests}};
  EXPECT_EQ(metadata.size(), wanted.size());
  for (const auto &[key, value] : wanted)
    EXPECT_EQ(metadata["tandem." + key], value) << key;
  // What was trained can be run.
  ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels4.npy"), labels(4)).ok());
  writeClassifier(path("inference.tdm"), false);
  Ended ended = run({"run", "inference.tdm", "--params=w.st.safetensors",
                     "--input", "x=@x4.npy", "--input", "labels=@labels4.npy"});
  EXPECT_EQ(ended.code, 1);
  ended = run({"run", "inference.tdm", "--params=w.st", "--input", "x=@x4.npy",
               "--input", "labels=@labels4.npy"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(TrainCommand, refusesToResumeWhatDoesNotFit) {
  ASSERT_EQ(train({"--steps=7", "--seed=9", "--save=w.st"}).code, 0);
  Ended ended =
      train({"--epochs=1", "--resume=w.st", "--seed=8", "--no-shuffle"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: 'w.st' was trained with --seed 9 but got 8; "
            "'w.st' was trained with shuffling\n");
  ASSERT_TRUE(io::writeNpy(path("x.npy"), features(40)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels.npy"), labels(40)).ok());
  ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: 'w.st' was trained with rows: 22 "
                       "but got 40\n");
  Array w = arrayOf<float>(DType::F32, {2, 3}, {0, 0, 0, 0, 0, 0});
  ASSERT_TRUE(io::writeSafetensors(path("w.st"), {{"w", w}}, {}).ok());
  ended = train({"--epochs=1", "--resume=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("'w.st': has no metadata 'tandem.epoch'; expected a "
                           "checkpoint that 'train --save' wrote"),
            std::string::npos)
      << ended.err;
}

TEST_F(TrainCommand, savesWhenInterrupted) {
  for (int signal : {SIGINT, SIGTERM}) {
    Start start;
    start.watch = [signal](pid_t, const std::string &err) {
      return err.find("loss") != std::string::npos ? signal : 0;
    };
    Ended ended = train(
        {"--epochs=100000000", "--save=w.st", "--report-interval=50"}, start);
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(ended.err.find("tandem-run: error: interrupted at epoch "),
              std::string::npos);
    EXPECT_NE(ended.err.find("; saved to 'w.st'; to go on: '--resume=w.st "
                             "--save=w.st --epochs="),
              std::string::npos)
        << ended.err;
    auto file = io::Safetensors::read(path("w.st"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    int64_t total = std::stoll(file->metadata().at("tandem.total_steps"));
    EXPECT_GE(total, 50);
    EXPECT_EQ(std::stoll(file->metadata().at("tandem.epoch")), total / 5);
    EXPECT_EQ(std::stoll(file->metadata().at("tandem.step")), total % 5);
    // Going on is as if nothing had happened.
    std::string steps = std::to_string(total);
    ASSERT_EQ(train({"--steps=" + steps, "--save=same.st"}).code, 0);
    EXPECT_EQ(bytes("same.st"), bytes("w.st"));
  }
}

TEST_F(TrainCommand, saysWhenNothingWasSaved) {
  Start start;
  start.watch = [](pid_t, const std::string &err) {
    return err.find("step") != std::string::npos ? SIGINT : 0;
  };
  Ended ended = train({"--steps=1000000000", "--report-interval=50"}, start);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("; nothing was saved, since there is no --save\n"),
            std::string::npos)
      << ended.err;
}

TEST_F(TrainCommand, keepsTheOldCheckpoint) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  std::vector<std::byte> old = bytes("w.st");
  std::vector<std::string> before = folder().list();

  // No room: once it trains, files may not grow to a checkpoint's size.
  Start full;
  full.watch = [](pid_t child, const std::string &err) {
    if (err.find("loss") == std::string::npos)
      return 0;
    struct rlimit limit = {100, 100};
    EXPECT_EQ(::prlimit(child, RLIMIT_FSIZE, &limit, nullptr), 0);
    return SIGINT;
  };
  Ended ended = train(
      {"--epochs=100000000", "--save=w.st", "--report-interval=50"}, full);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("interrupted at epoch "), std::string::npos);
  EXPECT_TRUE(ended.err.ends_with("w.st': File too large\n")) << ended.err;
  EXPECT_EQ(bytes("w.st"), old);
  EXPECT_EQ(folder().list(), before);

  // A folder that may not be written: known before the first step.
  ::chmod(folder().path().c_str(), 0555);
  ended = train({"--epochs=1", "--save=new.st"}, asUser());
  ::chmod(folder().path().c_str(), 0755);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "tandem-run: error: cannot write 'new.st': Permission "
                       "denied\n");
  EXPECT_EQ(folder().list(), before);
}

TEST_F(TrainCommand, savesOnTheWay) {
  // Killed without a chance to save, it leaves the last whole checkpoint.
  Start start;
  start.watch = [](pid_t, const std::string &err) {
    return err.find("step") != std::string::npos ? SIGKILL : 0;
  };
  Ended ended = train({"--steps=1000000000", "--save=w.st", "--save-every=5",
                       "--report-interval=12"},
                      start);
  EXPECT_EQ(ended.code, -SIGKILL);
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  int64_t total = std::stoll(file->metadata().at("tandem.total_steps"));
  EXPECT_GE(total, 10);
  EXPECT_EQ(total % 5, 0);
}

TEST_F(TrainCommand, takesRowsInTheirOrderWhenAsked) {
  ASSERT_EQ(train({"--steps=1", "--save=w.st"}).code, 0);
  auto losses = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs=1", "--params=w.st", "--log=l.jsonl"});
    EXPECT_EQ(train(more).code, 0);
    return untimed("l.jsonl");
  };
  std::string inOrder = losses({"--no-shuffle"});
  EXPECT_EQ(inOrder, losses({"--no-shuffle"}));
  // No other use was left for --seed, which was taken without a word.
  Ended ended =
      train({"--epochs=1", "--params=w.st", "--no-shuffle", "--seed=2"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--seed has no effect"), std::string::npos)
      << ended.err;
  EXPECT_NE(inOrder, losses({"--seed=1"}));
  EXPECT_NE(losses({"--seed=1"}), losses({"--seed=2"}));
}

TEST_F(TrainCommand, trainsOnNaNAndSaysSoOnce) {
  Array x = features(22);
  float nan = NAN;
  std::memcpy(&x.bytes[8 * 12], &nan, 4);
  ASSERT_TRUE(io::writeNpy(path("x.npy"), x).ok());
  Ended ended =
      train({"--epochs=3", "--json", "--log=log.jsonl", "--on-nan=report"});
  EXPECT_EQ(ended.code, 0);
  auto count = [&](const char *what) {
    std::regex wanted(what);
    const char *err = ended.err.c_str(), *end = err + ended.err.size();
    return std::distance(std::cregex_iterator(err, end, wanted), {});
  };
  EXPECT_EQ(count("warning: --data 'x': .* .8, 0. of 'x.npy' is nan\n"), 1);
  EXPECT_EQ(count("warning: the loss is nan at step "), 1) << ended.err;
  EXPECT_TRUE(Json::parse(ended.out)["loss"].is_null());
  EXPECT_NE(text("log.jsonl").find("\"loss\": null, "), std::string::npos);
}

// A loss that was NaN was warned of, and the parameters, all NaN by then,
// replaced a good checkpoint.
TEST_F(TrainCommand, stopsWhereALossIsNoNumber) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  std::vector<std::byte> good = bytes("w.st");
  Ended ended =
      train({"--epochs=50", "--resume=w.st", "--save=w.st", "--lr=1e6"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find(": error: the loss is "), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find(", whose batch has the rows "), std::string::npos);
  EXPECT_NE(ended.err.find("of --data; 'w.st' is as it was; "
                           "'--on-nan=report' goes on\n"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(bytes("w.st"), good);
}

// NaN in the data was warned of by the array's name alone, and trained on.
TEST_F(TrainCommand, stopsAtDataThatIsNoNumber) {
  Array x = features(22);
  float nan = NAN;
  std::memcpy(&x.bytes[8 * 12 + 4], &nan, 4);
  ASSERT_TRUE(io::writeNpy(path("x.npy"), x).ok());
  Ended ended = train({"--epochs=3", "--save=w.st"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err,
            "tandem-run: error: --data 'x': element [8, 1] of 'x.npy' is nan; "
            "'--on-nan=report' goes on\n");
  EXPECT_EQ(train({"--epochs=1", "--on-nan=ask"}).err,
            "tandem-run: error: option '--on-nan' expected stop, skip or "
            "report but got 'ask'\n");
  // Its steps cannot leave out an update.
  ended = train({"--epochs=1", "--on-nan=skip", "--save=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--on-nan=skip needs an artifact"),
            std::string::npos)
      << ended.err;
}

// A label beyond the classes went into the loss, and NaN into the parameters.
TEST_F(TrainCommand, refusesLabelsOutside) {
  Array wrong = labels(22);
  int64_t label = 2;
  std::memcpy(&wrong.bytes[size_t(13 * 8)], &label, 8);
  ASSERT_TRUE(io::writeNpy(path("labels.npy"), wrong).ok());
  Ended ended = train({"--epochs=1", "--save=w.st"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: --data 'labels': expected an "
                       "integer from 0 to 1 but row 13 is 2\n");
}

// eval.loss was the mean over the full batches, beside an accuracy of all rows,
// and of few rows the mean over a batch with repeated ones.
TEST_F(TrainCommand, evaluatesEachRowOnce) {
  ASSERT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
  auto loss = [&](int64_t rows) {
    EXPECT_TRUE(io::writeNpy(path("xe.npy"), features(rows)).ok());
    EXPECT_TRUE(io::writeNpy(path("le.npy"), labels(rows)).ok());
    Ended ended = train({"--steps=1", "--lr=1e-30", "--resume=w.st", "--json",
                         "--eval", "x=@xe.npy", "--eval", "labels=@le.npy"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    Json json = Json::parse(ended.out);
    EXPECT_EQ(json["eval"]["rows_of_outputs"]["loss"], rows);
    return json["eval"]["outputs"]["loss"].get<double>();
  };
  // Rows one by one, by hand: 2 (x0 w - target)^2 and the like.
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file.ok());
  auto w = io::test::elements<float>(*file->find("w"));
  auto x = io::test::elements<float>(features(22));
  auto expected = [&](int64_t rows) {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int c = 0; c < 2; ++c) {
        double score = 0;
        for (int f = 0; f < 3; ++f)
          score += double(x[size_t(row * 3 + f)]) * w[size_t(c * 3 + f)];
        sum += std::pow(score - (row % 2 == c ? 1 : -1), 2);
      }
    return sum / double(rows);
  };
  for (int64_t rows : {1, 2, 3, 4, 5, 7, 22})
    EXPECT_NEAR(loss(rows), expected(rows), 1e-5) << rows;
}

TEST_F(TrainCommand, evaluatesFewerRowsThanABatch) {
  ASSERT_TRUE(io::writeNpy(path("x3.npy"), features(3)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels3.npy"), labels(3)).ok());
  Ended ended = train({"--epochs=20", "--json", "--eval", "x=@x3.npy", "--eval",
                       "labels=@labels3.npy", "--accuracy=logits,labels"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["eval"]["counted"], 3);
  EXPECT_EQ(json["eval"]["right"], 3);
  EXPECT_LT(json["eval"]["outputs"]["loss"], 0.3);
}

TEST_F(TrainCommand, refusesDataThatDoesNotFit) {
  ASSERT_TRUE(io::writeNpy(path("few.npy"), features(3)).ok());
  ASSERT_TRUE(io::writeNpy(path("labels3.npy"), labels(3)).ok());
  Ended ended = run({"train", "classifier.tdm", "--epochs=1", "--data",
                     "x=@few.npy", "--data", "labels=@labels3.npy"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: --data: expected at least 4 rows, "
                       "one batch, but got 3\n");
  ended = run({"train", "classifier.tdm", "--epochs=1", "--data", "x=@x.npy"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: missing --data 'labels' (i32 [N])\n");
  ended = train({"--epochs=1", "--eval", "x=@x.npy"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: missing --eval 'labels' (i32 [N])\n");
  ended = train(
      plus({"--epochs=1"}, {"--eval", "x=@x.npy", "--eval",
                            "labels=@labels.npy", "--accuracy=scores,labels"}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: --accuracy: program 'evaluate' has "
                       "no output 'scores'\n");
}

TEST_F(TrainCommand, refusesArtifactsThatCannotTrain) {
  writeClassifier(path("classifier.tdm"), false);
  Ended ended = train({"--epochs=1"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.err,
            "tandem-run: error: 'classifier.tdm' has no program 'step' to "
            "train with; compile the model with a loss and an optimizer\n");
}

// A checkpoint could not be evaluated without a step of training.
TEST_F(TrainCommand, evaluatesWithoutASingleStep) {
  Ended trained = train(plus({"--epochs=3", "--save=w.st"}, evaluation()));
  ASSERT_EQ(trained.code, 0) << trained.err;
  auto before = bytes("w.st");
  Ended ended = run(plus(
      {"train", "classifier.tdm", "--params=w.st", "--steps=0"}, evaluation()));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(bytes("w.st"), before);
  // The lines of --eval after training are those of the checkpoint.
  std::string results = trained.out.substr(trained.out.find("eval."));
  EXPECT_EQ(ended.out, results.substr(0, results.find("saved to")));
  ended = run(
      plus({"train", "classifier.tdm", "--params=w.st", "--steps=0", "--json"},
           evaluation()));
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["eval"]["rows"], 22);
  EXPECT_FALSE(json.contains("loss"));
  ended = run({"train", "classifier.tdm", "--params=w.st", "--steps=0"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: --steps=0 trains nothing: expected "
                       "--eval with rows to evaluate, or steps\n");
  ended = train(plus({"--steps=0", "--save=v.st"}, evaluation()));
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: --data and --steps=0 exclude each other: "
            "nothing is trained; --steps=0 and --save exclude each other: "
            "nothing is trained\n");
}

TEST_F(TrainCommand, refusesOptionsThatContradict) {
  Ended ended = run({"train", "classifier.tdm", "--accuracy=a,b",
                     "--save-every=2", "--resume=a", "--params=b"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(
      ended.err,
      "tandem-run: error: expected --data; --save-every needs --save; "
      "--resume and --params exclude each other; --accuracy needs --eval; "
      "expected either --epochs or --steps\n");
}

} // namespace
} // namespace tandem::commands::test
