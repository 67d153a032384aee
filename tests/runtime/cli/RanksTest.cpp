//===- RanksTest.cpp - `tandem-run` under mpirun, as a user runs it -------===//
//
// The classifier on a mesh: rows of a batch and classes are cut over ranks. Its
// step gathers what it needs and does the rest as one process does, so that its
// numbers are those of one process to the bit.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"
#include "tests/runtime/cli/RankedClassifier.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tandem::commands::test {
namespace {

using artifact::Manifest;

class RanksCommand : public CommandTest {
protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0)
      GTEST_SKIP() << "there is no mpirun";
    CommandTest::SetUp();
  }

  void write(const std::string &name, const Manifest &manifest) const {
    auto object = io::readFile(TANDEM_CLASSIFIER_OBJECT);
    ASSERT_TRUE(object.ok());
    artifact::ArtifactWriter writer;
    writer.setObject(std::string(io::asText(*object)));
    writer.setManifest(manifest);
    Status status = writer.write(path(name));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  /// Runs a program in so many processes, for a minute at most.
  Ended started(int ranks, const std::vector<std::string> &program,
                Start start = {}) const {
    std::vector<std::string> words = {std::to_string(ranks), "60"};
    words.insert(words.end(), program.begin(), program.end());
    start.prepare = [this] {
      if (::chdir(folder().path().c_str()) != 0)
        ::_exit(126);
    };
    return runProgram(TANDEM_MPI_SCRIPT, words, start);
  }
  /// Runs a command of tandem-run so.
  Ended over(int ranks, std::vector<std::string> command,
             const Start &start = {}) const {
    command.insert(command.begin(), TANDEM_RUN);
    return started(ranks, command, start);
  }

  /// Trains on `ranks` ranks with more options.
  Ended trainOver(int ranks, std::vector<std::string> more) const {
    std::vector<std::string> command = {
        "train",  "on-" + std::to_string(ranks) + ".tdm",
        "--data", "x=@x.npy",
        "--data", "labels=@labels.npy"};
    command.insert(command.end(), more.begin(), more.end());
    return over(ranks, command);
  }

  /// Trains on 4 ranks without an end. Rank `victim` gets a signal when its
  /// checkpoint has been there for a moment.
  Ended trainUntil(const char *signal, int victim) const {
    write("on-4.tdm", trained(4));
    std::filesystem::remove(path("w.safetensors"));
    std::ofstream(path("signal.sh"))
        << "#!/bin/sh\nif [ $OMPI_COMM_WORLD_RANK = " << victim
        << " ]; then (for i in $(seq 500); do [ -e w.safetensors ] && break; "
           "sleep 0.1; done; sleep 0.2; kill -"
        << signal << " $$) & fi\nexec \"$@\"\n";
    return started(4, {"sh", "signal.sh", TANDEM_RUN, "train", "on-4.tdm",
                       "--data", "x=@x.npy", "--data", "labels=@labels.npy",
                       "--steps=100000000", "--save=w.safetensors",
                       "--save-every=5", "--timeout=10"});
  }

  std::vector<float> tensor(const std::string &file,
                            const std::string &name) const {
    auto read = io::Safetensors::read(path(file));
    EXPECT_TRUE(read.ok()) << read.status().message();
    auto found = read ? read->find(name) : std::nullopt;
    if (!found)
      return {};
    auto bytes = found->bytes;
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

TEST_F(RanksCommand, X19_predictsEachRowOnceWhateverTheMesh) {
  std::vector<float> expected;
  struct Case {
    int ranks;
    std::vector<artifact::MeshAxis> mesh;
  };
  // Of 2 classes on each rank.
  for (const Case &one : {Case{2, {{"data", 1}, {"tensor", 2}}},
                          Case{4, {{"data", 2}, {"tensor", 2}}},
                          Case{4, {{"tensor", 2}, {"data", 2}}}}) {
    write("p.tdm", predicted(one.mesh));
    Ended ended =
        over(one.ranks, {"predict", "p.tdm", "--seed=3", "--data", "x=@x.npy",
                         "--output", "logits=@out.npy", "--force"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    auto array = io::readNpy(path("out.npy"));
    ASSERT_TRUE(array.ok());
    EXPECT_EQ(array->shape, (std::vector<int64_t>{22, 4}));
    std::vector<float> logits = io::test::elements<float>(*array);
    if (expected.empty())
      expected = logits;
    EXPECT_EQ(logits, expected);
    // One summary, and one note of initial values.
    EXPECT_EQ(ended.err.find("note: "), ended.err.rfind("note: ")) << ended.err;
  }
  // What one process predicts with the whole parameters.
  Manifest alone = predicted({{"data", 1}, {"tensor", 1}});
  write("one.tdm", alone);
  Ended ended = run({"predict", "one.tdm", "--seed=3", "--data", "x=@x.npy",
                     "--output", "logits=@one.npy"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::vector<float> one =
      io::test::elements<float>(*io::readNpy(path("one.npy")));
  for (size_t row = 0; row < 22; ++row)
    for (size_t c = 0; c < 2; ++c)
      ASSERT_EQ(one[row * 2 + c], expected[row * 4 + c]);
}

TEST_F(RanksCommand, X18_trainsAndResumesOnOtherNumbersOfRanks) {
  for (int ranks : {1, 2, 4})
    write("on-" + std::to_string(ranks) + ".tdm", trained(ranks));
  Ended whole =
      train({"--epochs=4", "--save=one.safetensors", "--log=one.jsonl"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  for (int ranks : {2, 4}) {
    Ended ended = trainOver(ranks, {"--epochs=4", "--save=all.safetensors",
                                    "--log=all.jsonl", "--force"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out.substr(0, ended.out.find('\n')),
              whole.out.substr(0, whole.out.find('\n')));
    EXPECT_EQ(tensor("all.safetensors", "w"), tensor("one.safetensors", "w"));
    EXPECT_EQ(tensor("all.safetensors", "momentum.m:w"),
              tensor("one.safetensors", "momentum.m:w"));
  }
  // Two passes each on two ranks, on four, and on one.
  for (auto [first, second] : {std::pair(2, 4), {4, 2}, {4, 1}}) {
    Ended ended =
        trainOver(first, {"--steps=7", "--save=half.safetensors", "--force"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    ended = trainOver(second, {"--resume=half.safetensors", "--steps=13",
                               "--save=rest.safetensors", "--force"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(tensor("rest.safetensors", "w"), tensor("one.safetensors", "w"));
  }
}

TEST_F(RanksCommand, X19_evaluatesAsOneProcess) {
  ASSERT_EQ(train({"--epochs=2", "--save=w.safetensors"}).code, 0);
  std::vector<std::string> options = {"--steps=0",
                                      "--params=w.safetensors",
                                      "--eval",
                                      "x=@x.npy",
                                      "--eval",
                                      "labels=@labels.npy",
                                      "--accuracy=logits,labels"};
  std::vector<std::string> command = {"train", "classifier.tdm"};
  command.insert(command.end(), options.begin(), options.end());
  Ended one = run(command);
  ASSERT_EQ(one.code, 0) << one.err;
  for (int ranks : {2, 4}) {
    command[1] = "on-" + std::to_string(ranks) + ".tdm";
    write(command[1], trained(ranks));
    Ended ended = over(ranks, command);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out, one.out);
  }
}

TEST_F(RanksCommand, X13_ranksThatDifferAreToldBeforeTheFirstStep) {
  write("on-2.tdm", trained(2));
  // One command line a rank.
  std::ofstream(path("each.sh"))
      << "#!/bin/sh\n"
         "rank=$OMPI_COMM_WORLD_RANK; tool=$1; shift\n"
         "eval \"exec $tool train \\$ARTIFACT_$rank --data x=@x.npy --data "
         "labels=@labels.npy --timeout=20 --save=$SAVE "
         "\\$OPTIONS_$rank\"\n";
  auto both = [&](const std::string &first, const std::string &second,
                  const std::string &artifact = "on-2.tdm") {
    Start start;
    ::setenv("ARTIFACT_0", "on-2.tdm", 1);
    ::setenv("ARTIFACT_1", artifact.c_str(), 1);
    ::setenv("OPTIONS_0", first.c_str(), 1);
    ::setenv("OPTIONS_1", second.c_str(), 1);
    ::setenv("SAVE", "w0.safetensors", 1);
    start.prepare = [this] {
      if (::chdir(folder().path().c_str()) != 0)
        ::_exit(126);
    };
    return runProgram(TANDEM_MPI_SCRIPT,
                      {"2", "60", "sh", "each.sh", TANDEM_RUN}, start);
  };
  auto expect = [&](const Ended &ended, const std::string &what) {
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find("the ranks do not agree: " + what),
              std::string::npos)
        << ended.err;
    EXPECT_NE(::access(path("w0.safetensors").c_str(), F_OK), 0);
  };
  expect(both("--epochs=2 --seed=1", "--epochs=2 --seed=2"),
         "of the seed rank 0 has '1', and rank 1 has '2'");
  expect(both("--epochs=2", "--epochs=3"),
         "of the steps to do rank 0 has '10', and rank 1 has '15'");
  expect(both("--epochs=2", "--epochs=2 --no-shuffle"),
         "of shuffling rank 0 has 'yes', and rank 1 has 'no'");
  Manifest other = trained(2);
  other.values[2].init = artifact::Init::uniform(-0.25, 0.25);
  write("other.tdm", other);
  expect(both("--epochs=2", "--epochs=2", "other.tdm"),
         "of the artifact rank 0 has 'classifier with digest ");
  // Parameters of two files are a mixture that nobody trained.
  ASSERT_EQ(train({"--epochs=1", "--save=one.safetensors"}).code, 0);
  ASSERT_EQ(train({"--epochs=3", "--save=three.safetensors"}).code, 0);
  for (const char *option : {"--params", "--resume", "--init-from"}) {
    std::string is = option;
    Ended ended = both("--epochs=2 " + is + "=one.safetensors",
                       "--epochs=2 " + is + "=three.safetensors");
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find("of " + is + " rank 0 has 'a file with digest"),
              std::string::npos)
        << ended.err;
  }
  expect(both("--epochs=2 --save-every=5", "--epochs=2 --save-every=6"),
         "of --save-every rank 0 has '5', and rank 1 has '6'");
  // The same on both trains.
  Ended ended = both("--epochs=2", "--epochs=2");
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(RanksCommand, X13_ranksSaveIntoOneFolder) {
  write("on-2.tdm", trained(2));
  std::ofstream(path("each.sh"))
      << "#!/bin/sh\n"
         "tool=$1; shift; mkdir -p $OMPI_COMM_WORLD_RANK\n"
         "cd $OMPI_COMM_WORLD_RANK\n"
         "exec $tool train ../on-2.tdm --data x=@../x.npy --data "
         "labels=@../labels.npy --timeout=20 --epochs=1 "
         "--save=w.safetensors.index.json\n";
  Start start;
  start.prepare = [this] {
    if (::chdir(folder().path().c_str()) != 0)
      ::_exit(126);
  };
  Ended ended = runProgram(TANDEM_MPI_SCRIPT,
                           {"2", "60", "sh", "each.sh", TANDEM_RUN}, start);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("the folder of --save, which must be one for all "
                           "ranks"),
            std::string::npos)
      << ended.err;
}

TEST_F(RanksCommand, X13_ranksPredictTheSameRows) {
  write("p.tdm", predicted({{"data", 2}, {"tensor", 1}}));
  std::string rows;
  {
    std::ifstream file(path("x.npy"), std::ios::binary);
    rows.assign(std::istreambuf_iterator<char>(file), {});
  }
  rows[rows.size() - 4] ^= 1;
  std::ofstream(path("x1.npy"), std::ios::binary) << rows;
  std::filesystem::copy_file(path("x.npy"), path("x0.npy"));
  std::ofstream(path("each.sh"))
      << "#!/bin/sh\n"
         "rank=$OMPI_COMM_WORLD_RANK; tool=$1; shift\n"
         "exec $tool predict p.tdm --seed=$((3 + rank * SEEDS)) --timeout=20 "
         "--data x=@x$((rank * FILES)).npy --output logits=@out.npy\n";
  auto predict = [&](const char *seeds, const char *files) {
    ::setenv("SEEDS", seeds, 1);
    ::setenv("FILES", files, 1);
    Start start;
    start.prepare = [this] {
      if (::chdir(folder().path().c_str()) != 0)
        ::_exit(126);
    };
    return runProgram(TANDEM_MPI_SCRIPT,
                      {"2", "60", "sh", "each.sh", TANDEM_RUN}, start);
  };
  for (auto [seeds, files, what] :
       {std::tuple{"0", "1", "of the data of --data rank 0 has "},
        {"1", "0", "of the seed rank 0 has '3', and rank 1 has '4'"}}) {
    Ended ended = predict(seeds, files);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(std::string("the ranks do not agree: ") + what),
              std::string::npos)
        << ended.err;
  }
  Ended ended = predict("0", "0");
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(RanksCommand, X13_numberOfProcessesIsTheMeshs) {
  write("on-4.tdm", trained(4));
  Ended ended = trainOver(4, {"--epochs=1", "--save=w.safetensors"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  ended = over(2, {"train", "on-4.tdm", "--data", "x=@x.npy", "--data",
                   "labels=@labels.npy", "--epochs=1"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("expected 4 processes but got 2; the artifact is "
                           "for 4 processes (mesh data=4): start them with "
                           "'mpirun -n 4' before the command"),
            std::string::npos)
      << ended.err;
  ended = train({"--epochs=1", "--timeout=3"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--timeout has no effect: the artifact is for one "
                           "process"),
            std::string::npos)
      << ended.err;
}

// Each of them took itself for the only one.
TEST_F(RanksCommand, X13_aLauncherThatMpiDoesNotKnowIsSaid) {
  write("on-2.tdm", trained(2));
  Start start;
  start.prepare = [this] {
    ::setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    if (::chdir(folder().path().c_str()) != 0)
      ::_exit(126);
  };
  Ended ended = runProgram(TANDEM_RUN,
                           {"train", "on-2.tdm", "--data", "x=@x.npy", "--data",
                            "labels=@labels.npy", "--epochs=1"},
                           start);
  EXPECT_EQ(ended.code, 3);
  EXPECT_NE(ended.err.find("the launcher started 2 processes, but MPI knows "
                           "this one alone: start them with"),
            std::string::npos)
      << ended.err;
}

// `bench` refused what several processes run.
TEST_F(RanksCommand, benchIsAsLongAsOnTheSlowestRank) {
  write("on-4.tdm", trained(4));
  Ended ended = over(4, {"bench", "on-4.tdm", "--steps=21", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["mesh"], "data=4");
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["steps"], 21);
  ASSERT_EQ(json["each_rank"].size(), 4u);
  EXPECT_GT(json["exposed_ms"], 0);
  for (const auto &one : json["each_rank"]) {
    EXPECT_LE(one["median_ms"], json["median_ms"]);
    EXPECT_LE(one["with_others_ms"], one["median_ms"]);
    EXPECT_GE(one["with_others_ms"], json["exposed_ms"]);
    EXPECT_LE(one["actual_peak_bytes"], json["actual_peak_bytes"]);
    EXPECT_GT(one["peak_rss_bytes"], one["actual_peak_bytes"]);
  }
  // As many calls on all ranks, whoever's time is over first.
  ended = over(4, {"bench", "on-4.tdm", "--seconds=0.2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("exposed communication"), std::string::npos);
  EXPECT_EQ(ended.out.find("program"), ended.out.rfind("program"));
  ended = over(4, {"bench", "on-4.tdm", "--kernels", "--steps=5"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("with other ranks"), std::string::npos) << ended.out;
}

TEST_F(RanksCommand, X13_aRankThatFailsEndsAllWithItsMessage) {
  write("on-4.tdm", trained(4));
  Manifest other = classifierManifest();
  other.graph = std::string(64, 'd');
  write("other.tdm", other);
  ASSERT_EQ(run({"train", "other.tdm", "--data", "x=@x.npy", "--data",
                 "labels=@labels.npy", "--steps=1", "--save=w.safetensors"})
                .code,
            0);
  // The first rank alone writes, and sees what it would replace.
  Ended ended =
      trainOver(4, {"--epochs=1", "--save=w.safetensors", "--timeout=20"});
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("error: rank 0: expected to replace none of another "
                           "model"),
            std::string::npos)
      << ended.err;
}

TEST_F(RanksCommand, X18_aKilledRankEndsAllAndLeavesItsCheckpoint) {
  for (int victim : {0, 3}) {
    Ended ended = trainUntil("KILL", victim);
    EXPECT_EQ(ended.code, 137) << ended.err;
    // It is whole, and another number of ranks goes on from it.
    write("on-2.tdm", trained(2));
    ended = trainOver(2, {"--resume=w.safetensors", "--steps=1",
                          "--save=next.safetensors", "--force"});
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
}

TEST_F(RanksCommand, X18_aSignalToOneRankStopsAllAfterTheSameStep) {
  Ended ended = trainUntil("TERM", 2);
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("error: interrupted at epoch "), std::string::npos)
      << ended.err;
  // Once, for all.
  EXPECT_EQ(ended.err.find("interrupted"), ended.err.rfind("interrupted"))
      << ended.err;
  write("on-2.tdm", trained(2));
  ended = trainOver(
      2, {"--resume=w.safetensors", "--steps=1", "--save=next.safetensors"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(RanksCommand, logsOfEachRank) {
  write("on-2.tdm", trained(2));
  Ended ended =
      trainOver(2, {"--steps=20", "--rank-logs=logs", "--report-interval=10"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const char *log : {"logs/rank-0.log", "logs/rank-1.log"}) {
    EXPECT_NE(text(log).find("step 5/5  loss "), std::string::npos)
        << text(log);
    EXPECT_NE(text(log).find("warning: without --save"), std::string::npos);
  }
  // Without it, the first one says how it goes.
  ended = trainOver(2, {"--steps=20", "--report-interval=10"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err.find("warning: "), ended.err.rfind("warning: "))
      << ended.err;
}

} // namespace
} // namespace tandem::commands::test
