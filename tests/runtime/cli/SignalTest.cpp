//===- SignalTest.cpp - trainings that are ended from outside -------------===//
//
// Real signals to real processes: what was trained is in the file of --save.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"

#include <fcntl.h>
#include <fstream>

namespace tandem::commands::test {
namespace {

class Signals : public CommandTest {
protected:
  /// Sends `signal` once the training has reported a step.
  static Start sending(int signal) {
    Start start;
    start.watch = [signal](pid_t, const std::string &err) {
      return err.find("  step ") != std::string::npos ? signal : 0;
    };
    return start;
  }

  /// A training that does not end by itself.
  Ended trainForever(std::vector<std::string> more, const Start &start) const {
    more.insert(more.end(), {"--epochs=100000000", "--report-interval=50"});
    return train(more, start);
  }

  /// True while the process has a handler for the signal.
  static bool catches(pid_t child, int signal) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:"))
        return std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1;
    return false;
  }

  static bool says(const Ended &ended, const std::string &line) {
    return ended.err.find(line) != std::string::npos;
  }

  int64_t stepsIn(const std::string &name) const {
    auto file = io::Safetensors::read(path(name));
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file ? std::stoll(file->metadata().at("tandem.total_steps")) : -1;
  }
};

// SIGHUP lost the run: nothing was saved.
TEST_F(Signals, hangUpSavesAsCtrlCDoes) {
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    std::filesystem::remove(path("w.st"));
    Ended ended = trainForever({"--save=w.st"}, sending(signal));
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_NE(ended.err.find("; saved to 'w.st'; to go on: '--resume=w.st "
                             "--save=w.st --epochs="),
              std::string::npos)
        << ended.err;
    EXPECT_GE(stepsIn("w.st"), 50);
    std::vector<std::string> names = folder().list();
    EXPECT_EQ(std::count(names.begin(), names.end(), "w.st.tandem-lock"), 0);
  }
}

// The hint trained without --save, and with the rest of the command its options
// contradicted each other.
TEST_F(Signals, saysWhichOptionsGoOnInPlaceOfWhich) {
  auto hint = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--save=w.st", "--report-interval=50"});
    std::string err = train(more, sending(SIGINT)).err;
    size_t at = err.find("to go on: ");
    return at == err.npos ? err : err.substr(at);
  };
  const std::string options = "to go on: '--resume=w.st --save=w.st --";
  auto matches = [](const std::string &text, const std::string &begin,
                    const std::string &end) {
    return text.starts_with(begin) && text.ends_with(end) &&
           text.substr(begin.size(), text.size() - begin.size() - end.size())
                   .find_first_not_of("0123456789") == text.npos;
  };
  std::string text = hint({"--epochs=100000000"});
  EXPECT_TRUE(matches(
      text, options + "epochs=", "' in place of '--save' and '--epochs'\n"))
      << text;
  ASSERT_EQ(train({"--epochs=1", "--save=p.st"}).code, 0);
  text = hint({"--steps=100000000", "--params=p.st"});
  EXPECT_TRUE(matches(text, options + "steps=",
                      "' in place of '--params', '--save' and '--steps'\n"))
      << text;
  text = hint({"--steps=100000000", "--resume=p.st"});
  EXPECT_TRUE(matches(text, options + "steps=",
                      "' in place of '--resume', '--save' and '--steps'\n"))
      << text;
  // Followed, it goes on.
  Ended ended = train({"--resume=w.st", "--save=w.st", "--steps=1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// The last evaluation was dropped: no option did it, the log had no line of it,
// and --save-best had not looked at it.
TEST_F(Signals, theLastEvaluationIsDoneAfterIt) {
  constexpr int64_t many = 1000000;
  ASSERT_TRUE(io::writeNpy(path("ex.npy"), features(many)).ok());
  ASSERT_TRUE(io::writeNpy(path("el.npy"), labels(many)).ok());
  std::vector<std::string> common = {
      "--eval",        "x=@ex.npy",           "--eval",     "labels=@el.npy",
      "--log=l.jsonl", "--save-best=best.st", "--threads=1"};
  Start start;
  start.watch = [](pid_t, const std::string &err) {
    return err.find("step 5/5") != std::string::npos ? SIGTERM : 0;
  };
  for (const char *length : {"--epochs=1", "--steps=5"}) {
    std::filesystem::remove(path("l.jsonl"));
    std::filesystem::remove(path("best.st"));
    std::vector<std::string> options = common;
    options.insert(options.end(),
                   {length, "--save=w.st", "--report-interval=5"});
    Ended ended = train(options, start);
    EXPECT_EQ(ended.code, 1);
    std::string replaced(length, std::string_view(length).find('='));
    EXPECT_TRUE(says(ended, "tandem-run: error: interrupted in the evaluation "
                            "after step 5; saved to 'w.st'; to go on: "
                            "'--resume=w.st --save=w.st --epochs=0' in place "
                            "of '--save' and '" +
                                replaced + "'\n"))
        << ended.err;
    EXPECT_EQ(text("l.jsonl").find("\"eval\""), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(path("best.st")));

    options = common;
    options.insert(options.end(),
                   {"--resume=w.st", "--save=w.st", "--epochs=0"});
    ended = train(options);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("eval.loss = "), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("\nloss = "), std::string::npos) << ended.out;
    std::string log = text("l.jsonl");
    size_t at = log.find("{\"epoch\": 1, \"step\": 5, \"eval\"");
    EXPECT_NE(at, std::string::npos) << log;
    EXPECT_EQ(log.find("\"eval\"", at + 30), std::string::npos) << log;
    EXPECT_EQ(stepsIn("best.st"), 5);
    EXPECT_EQ(stepsIn("w.st"), 5);
    auto file = io::Safetensors::read(path("w.st"));
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file->metadata().contains("tandem.evaluation"));
  }
  for (const char *missing : {"--eval", "--resume"}) {
    std::vector<std::string> options = {"--epochs=0", "--save=w.st"};
    if (std::string_view(missing) == "--eval")
      options.emplace_back("--resume=w.st");
    else
      options.insert(options.end(), common.begin(), common.begin() + 4);
    Ended ended = train(options);
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(says(ended, "--epochs=0 trains nothing")) << ended.err;
  }
}

// An evaluation on the way was left out by the training that went on, where
// nothing looked for the best one.
TEST_F(Signals, anEvaluationOnTheWayIsDoneAfterIt) {
  constexpr int64_t many = 1000000;
  ASSERT_TRUE(io::writeNpy(path("ex.npy"), features(many)).ok());
  ASSERT_TRUE(io::writeNpy(path("el.npy"), labels(many)).ok());
  std::vector<std::string> common = {
      "--eval",         "x=@ex.npy",     "--eval",
      "labels=@el.npy", "--log=l.jsonl", "--eval-every=1",
      "--threads=1",    "--save=w.st",   "--report-interval=5"};
  Start start;
  start.watch = [](pid_t, const std::string &err) {
    return err.find("step 5/5") != std::string::npos ? SIGTERM : 0;
  };
  std::vector<std::string> options = common;
  options.emplace_back("--epochs=2");
  Ended ended = train(options, start);
  EXPECT_TRUE(says(ended, "interrupted in the evaluation after step 5; saved "
                          "to 'w.st'; to go on: '--resume=w.st --save=w.st "
                          "--epochs=1'"))
      << ended.err;
  options = common;
  options.insert(options.end(), {"--epochs=1", "--resume=w.st"});
  ended = train(options);
  EXPECT_EQ(ended.code, 0) << ended.err;
  std::string log = text("l.jsonl");
  EXPECT_NE(log.find("{\"epoch\": 1, \"step\": 5, \"eval\""),
            std::string::npos);
  EXPECT_NE(log.find("{\"epoch\": 2, \"step\": 10, \"eval\""),
            std::string::npos);
}

TEST_F(Signals, nohupGoesOn) {
  Start start = sending(SIGHUP);
  start.prepare = [] { ::signal(SIGHUP, SIG_IGN); };
  Ended ended =
      train({"--steps=20000", "--report-interval=50", "--save=w.st"}, start);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(stepsIn("w.st"), 20000);
}

// A second signal of another kind was taken for the first one again.
TEST_F(Signals, secondOneEndsAtOnce) {
  // What --log names is a pipe that nobody reads, so that writing waits.
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  int writer = ::open(path("pipe").c_str(), O_WRONLY | O_NONBLOCK);
  std::string full(1 << 20, 'x');
  while (::write(writer, full.data(), full.size()) > 0) {
  }
  for (auto [first, second] : {std::pair(SIGINT, SIGTERM), {SIGHUP, SIGINT}}) {
    Start start;
    start.watch = [first = first, second = second](pid_t child,
                                                   const std::string &err) {
      if (err.find("  step ") == std::string::npos)
        return 0;
      ::kill(child, first);
      while (catches(child, second))
        ::usleep(1000);
      return second;
    };
    Ended ended =
        trainForever({"--log=pipe", "--save=w.st", "--threads=1"}, start);
    EXPECT_EQ(ended.code, -second) << ended.err;
  }
  ::close(reader);
  ::close(writer);
}

// SIGPIPE lost the run when who read its progress had left.
TEST_F(Signals, closedPipesDoNotEndATraining) {
  int broken[2];
  ASSERT_EQ(::pipe(broken), 0);
  ::close(broken[0]);
  Start start;
  start.prepare = [&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(broken[1], 2);
  };
  Ended ended = train({"--epochs=2", "--save=w.st"}, start);
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.out.find("loss = "), std::string::npos);
  EXPECT_EQ(stepsIn("w.st"), 10);

  // A result that nobody gets is a failure, but what was trained is kept.
  start.prepare = [&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(broken[1], 1);
  };
  ended = train({"--epochs=3", "--save=w.st"}, start);
  ::close(broken[1]);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("cannot write to stdout: Broken pipe\n"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(stepsIn("w.st"), 15);
}

// With stderr closed, warnings and progress went into the next file that was
// opened.
TEST_F(Signals, closedDescriptorsAreNoFiles) {
  Start start;
  start.prepare = [] {
    ::close(0);
    ::close(2);
  };
  Ended ended = train({"--epochs=2", "--save=w.st", "--log=l.jsonl"}, start);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(text("l.jsonl").find("{\"epoch\""), 0u) << text("l.jsonl");
  EXPECT_EQ(text("l.jsonl").find("note"), std::string::npos);
  EXPECT_EQ(stepsIn("w.st"), 10);
  start.prepare = [] { ::close(1); };
  ended = train({"--epochs=2", "--save=w.st"}, start);
  EXPECT_EQ(ended.code, 1) << "nobody got the results";
  EXPECT_EQ(stepsIn("w.st"), 10);
}

// kill -9 left temporary files that nothing removed.
TEST_F(Signals, whatAKilledTrainingLeftGoesWithTheNext) {
  Ended ended =
      trainForever({"--save=w.st", "--save-every=1"}, sending(SIGKILL));
  EXPECT_EQ(ended.code, -SIGKILL);
  EXPECT_GE(stepsIn("w.st"), 40) << "the last whole one";
  io::test::store(path("w.st.tandem-tmp-abcdef"), io::test::bytesOf("half"));
  ended = train({"--epochs=1", "--save=w.st"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const std::string &name : folder().list())
    EXPECT_EQ(name.find(".tandem-"), name.npos) << name;
}

// Of two trainings into one file the last writer won in silence.
TEST_F(Signals, secondTrainingIntoAFileIsRefused) {
  Start start;
  std::vector<std::string> seen;
  start.watch = [&](pid_t child, const std::string &err) {
    if (err.find("  step ") == std::string::npos)
      return 0;
    std::string holder = "process " + std::to_string(child) + " is writing it";
    Ended second = train({"--epochs=1", "--save=w.st"});
    EXPECT_EQ(second.code, 1);
    EXPECT_EQ(second.err,
              "tandem-run: error: cannot write 'w.st': " + holder + "\n");
    second = train({"--epochs=1", "--save=other.st", "--log=l.jsonl"});
    EXPECT_EQ(second.code, 1);
    EXPECT_EQ(second.err,
              "tandem-run: error: cannot write 'l.jsonl': " + holder + "\n");
    // By another name of the file, it was emptied.
    std::filesystem::create_hard_link(path("l.jsonl"), path("other.jsonl"));
    for (const char *more : {"--no-shuffle", "--resume=old.st"}) {
      second =
          train({"--epochs=1", "--save=other.st", "--log=other.jsonl", more});
      EXPECT_EQ(second.code, 1);
      EXPECT_TRUE(says(second, "tandem-run: error: cannot write 'other.jsonl': "
                               "another process is writing it\n"))
          << second.err;
    }
    EXPECT_EQ(std::filesystem::hard_link_count(path("l.jsonl")), 2);
    return SIGINT;
  };
  ASSERT_EQ(train({"--epochs=1", "--save=old.st"}).code, 0);
  Ended ended = trainForever({"--save=w.st", "--log=l.jsonl"}, start);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("saved to 'w.st'"), std::string::npos) << ended.err;
  EXPECT_TRUE(text("l.jsonl").starts_with("{\"epoch\": 1, \"step\": 1, "));
  EXPECT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
}

} // namespace
} // namespace tandem::commands::test
