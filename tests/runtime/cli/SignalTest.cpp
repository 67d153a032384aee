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
    return SIGINT;
  };
  Ended ended = trainForever({"--save=w.st", "--log=l.jsonl"}, start);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("saved to 'w.st'"), std::string::npos) << ended.err;
  EXPECT_EQ(train({"--epochs=1", "--save=w.st"}).code, 0);
}

} // namespace
} // namespace tandem::commands::test
