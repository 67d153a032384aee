//===- RunCommandTest.cpp - `tandem-run run`, `bench`, and the frame ------===//
#include "runtime/artifact/FormatVersion.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/CommandTest.h"

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sys/stat.h>

namespace tandem::commands::test {
namespace {

class RunCommand : public CommandTest {
protected:
  void SetUp() override {
    CommandTest::SetUp();
    ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
    ASSERT_TRUE(io::writeNpy(path("labels4.npy"), labels(4)).ok());
    Array w = arrayOf<float>(DType::F32, {2, 3}, {-1, 0, 0, 1, 0, 0});
    ASSERT_TRUE(
        io::writeSafetensors(path("w.safetensors"), {{"w", w}}, {}).ok());
  }

  /// Runs `run` with weights and inputs, and more options.
  Ended evaluate(std::vector<std::string> more, const Start &start = {}) {
    std::vector<std::string> arguments = {
        "run",     "classifier.tdm", "--params", "w.safetensors",
        "--input", "x=@x4.npy",      "--input",  "labels=@labels4.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, start);
  }
};

TEST_F(RunCommand, printsScalarsAndASummary) {
  Ended ended = evaluate({});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  // By hand: the scores are -x0 and x0, the labels 0 1 0 1.
  Array x = features(4);
  double loss = 0, low = INFINITY, high = -INFINITY;
  for (int row = 0; row < 4; ++row) {
    double x0 = io::elementAsDouble(DType::F32, x.bytes.data(), row * 3);
    int label = row % 2;
    double target = label == 1 ? 1 : -1;
    loss += 2 * std::pow(x0 - target, 2);
    low = std::min({low, x0, -x0});
    high = std::max({high, x0, -x0});
  }
  float printed = 0;
  ASSERT_EQ(std::sscanf(ended.out.c_str(), "loss = %f\n", &printed), 1);
  EXPECT_NEAR(printed, loss / 4, 1e-6);
  char row[100];
  std::snprintf(row, sizeof row,
                "\nlogits  f32   [4, 2]  %.6g  %.6g  0     0\n", low, high);
  EXPECT_NE(ended.out.find("\noutput  type  shape"), std::string::npos);
  EXPECT_NE(ended.out.find(row), std::string::npos) << ended.out << row;
}

// `run` had no --json.
TEST_F(RunCommand, printsJson) {
  Ended ended = evaluate({"--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["program"], "evaluate");
  Json logits = json["outputs"]["logits"];
  EXPECT_EQ(logits["shape"], Json({4, 2}));
  EXPECT_EQ(logits["type"], "f32");
  EXPECT_EQ(logits["not_finite"], 0);
  EXPECT_LT(logits["min"], logits["max"]);
  EXPECT_GT(json["outputs"]["loss"]["value"], 0);
}

TEST_F(RunCommand, aProfileIsOfADevice) {
  Ended ended =
      run({"bench", "classifier.tdm", "--steps=1", "--profile=trace.json"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_NE(ended.err.find("--profile: device 'cpu' has no profile"),
            std::string::npos)
      << ended.err;
  EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
}

// `--seed` of a model that draws nothing, and `--force` where no file is
// written, were taken without a word.
TEST_F(RunCommand, namesOptionsWithoutEffect) {
  Ended ended = evaluate({"--seed=1"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--seed has no effect: the model draws no random "
                           "numbers, and its initial values are those of "
                           "--params"),
            std::string::npos)
      << ended.err;
  // Without --params they are drawn.
  std::vector<std::string> bench = {"bench", "classifier.tdm", "--steps=1"};
  bench.push_back("--seed=1");
  EXPECT_EQ(run(bench).code, 0);
  bench.back() = "--force";
  ended = run(bench);
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("--force has no effect: no file is written"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(evaluate({"--force"}).code, 2);
  EXPECT_EQ(evaluate({"--force", "--output=logits=@l.npy"}).code, 0);
}

// `run --program=step` dropped the update in silence; a thousand threads on two
// processors passed, too.
TEST_F(RunCommand, saysWhatHasNoUse) {
  Ended ended = evaluate({"--program=step"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("run keeps nothing of that"), std::string::npos);
  ended = evaluate({"--threads=1000"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("--threads=1000 on "), std::string::npos);
  for (const char *option : {"--no-cuda-graph", "--libraries=no"}) {
    ended = evaluate({option});
    EXPECT_EQ(ended.code, 2) << option;
    EXPECT_NE(ended.err.find("has no effect on device 'cpu'"),
              std::string::npos)
        << ended.err;
  }
}

// tandem-run had no `inspect`, and nothing showed checkpoints or how values
// begin.
TEST_F(RunCommand, inspectsArtifactsAndCheckpoints) {
  Ended ended = run({"inspect", "classifier.tdm"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char *part : {"uniform from -0.5 to 0.5", "in [0, 2)", "manifest"})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << ended.out;
  ended = run({"inspect", "classifier.tdm", "--json"});
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["kind"], "artifact");
  EXPECT_EQ(json["manifests"].size(), 1u);

  Array w = arrayOf<float>(DType::F32, {2}, {NAN, 1});
  ASSERT_TRUE(io::writeSafetensors(path("c.safetensors"), {{"w\x1b", w}},
                                   {{"tandem.epoch", "2"}})
                  .ok());
  ended = run({"inspect", "c.safetensors"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("training stands after 2 epochs"),
            std::string::npos);
  EXPECT_NE(ended.out.find("w\\x1b"), std::string::npos) << ended.out;
  ended = run({"inspect", "c.safetensors", "--json"});
  json = Json::parse(ended.out);
  EXPECT_EQ(json["kind"], "checkpoint");
  EXPECT_EQ(json["tensors"][0]["not_finite"], 1);
}

TEST_F(RunCommand, doctorSaysWhatIsThere) {
  Ended ended = run({"doctor", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["usable"], true);
  std::set<std::string> names;
  for (const Json &finding : json["findings"]) {
    names.insert(finding["name"]);
    if (finding["state"] == "missing") {
      EXPECT_FALSE(std::string(finding["remedy"]).empty()) << finding;
    }
  }
  for (const char *name : {"processor", "memory", "cuBLASLt", "cuda:0"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST_F(RunCommand, writesOutputs) {
  Ended ended = evaluate(
      {"--output=logits=@logits.npy", "--output=loss=@all.npz", "--output",
       "logits=@all.npz:scores", "--output", "loss=@loss.safetensors"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  auto logits = io::readNpy(path("logits.npy"));
  ASSERT_TRUE(logits.ok());
  EXPECT_EQ(logits->shape, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(io::readNpz(path("all.npz"), "scores", "")->bytes, logits->bytes);
  auto loss = io::readNpz(path("all.npz"), "loss", "");
  ASSERT_TRUE(loss.ok());
  EXPECT_NE(ended.out.find("loss = "), std::string::npos);
  float printed = 0;
  std::sscanf(ended.out.c_str(), "loss = %f\n", &printed);
  EXPECT_EQ(io::test::elements<float>(*loss), std::vector<float>{printed});
}

TEST_F(RunCommand, runsOtherPrograms) {
  // The file has the weights alone; the optimizer's states begin as they do.
  Ended ended = evaluate({"--program=step", "--threads=2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out.substr(0, ended.out.find('\n')),
            evaluate({}).out.substr(0, ended.out.find('\n')));
  EXPECT_EQ(ended.out.find("logits"), std::string::npos);
}

TEST_F(RunCommand, initialParametersDependOnTheSeed) {
  auto loss = [&](const char *seed) {
    return run({"run", "classifier.tdm", "--input", "x=@x4.npy", "--input",
                "labels=@labels4.npy", seed})
        .out;
  };
  EXPECT_EQ(loss("--seed=1"), loss("--seed=1"));
  EXPECT_NE(loss("--seed=1"), loss("--seed=2"));
  EXPECT_EQ(loss("--seed=0").find("loss = "), 0u);
}

TEST_F(RunCommand, namesEverythingThatIsWrongWithTheInputs) {
  ASSERT_TRUE(
      io::writeNpy(path("bad.npy"),
                   arrayOf<int64_t>(DType::I64, {4}, {0, 1, 1L << 40, 0}))
          .ok());
  Ended ended = run({"run", "classifier.tdm", "--input", "labels=@bad.npy",
                     "--input", "x=@no.npy", "--input", "x"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err,
            "tandem-run: error: --input 'labels': 'bad.npy': expected i32 but "
            "got i64: element [2] of i64 is 1099511627776, which i32 cannot "
            "hold exactly; --input 'x': cannot read 'no.npy': No such file or "
            "directory; --input: expected NAME=@FILE or NAME=NUMBER but got "
            "'x'\n");

  // Names and shapes are the model's to check, all of them at once.
  ended =
      run({"run", "classifier.tdm", "--input", "x=@x.npy", "--input", "y=3"});
  EXPECT_EQ(ended.code, 2);
  // What takes 22 rows was not said.
  for (const char *part : {"'x'", "[4, 3]", "[22, 3]", "'labels'", "'y'",
                           "; 'predict' computes outputs for any number of "
                           "rows, and 'train --steps=0 --eval NAME=@FILE' "
                           "their mean loss"})
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
}

TEST_F(RunCommand, refusesOutputsThatDoNotExistBeforeItRuns) {
  Ended ended = evaluate({"--output", "logit=@a.npy", "--output", "loss=3"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: --output: program 'evaluate' has no output "
            "'logit'; it has 'logits', 'loss'; --output 'loss': expected "
            "'@FILE' but got '3'\n");
  ended = evaluate({"--program=train"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: the artifact has no program "
                       "'train'; it has 'evaluate', 'step'\n");
}

TEST_F(RunCommand, refusesParametersThatDoNotFit) {
  Array w = arrayOf<float>(DType::F32, {3, 2}, {0, 0, 0, 0, 0, 0});
  ASSERT_TRUE(io::writeSafetensors(path("w.safetensors"), {{"w", w}}, {}).ok());
  Ended ended = evaluate({});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: 'w.safetensors': tensor 'w': "
                       "expected f32 [2, 3] but got f32 [3, 2]\n");
  ASSERT_TRUE(io::writeSafetensors(path("w.safetensors"), {{"v", w}}, {}).ok());
  EXPECT_EQ(evaluate({}).err, "tandem-run: error: 'w.safetensors': has no "
                              "tensor 'w' (f32 [2, 3])\n");
  io::test::store(path("w.safetensors"), io::test::bytesOf("garbage!!"));
  ended = evaluate({});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("'w.safetensors': not a safetensors file"),
            std::string::npos);
}

TEST_F(RunCommand, refusesDamagedArtifacts) {
  std::vector<std::byte> artifact = bytes("classifier.tdm");
  artifact[artifact.size() / 2] ^= std::byte{1};
  io::test::store(path("classifier.tdm"), artifact);
  Ended ended = evaluate({});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("'classifier.tdm'"), std::string::npos);
  EXPECT_EQ(ended.out, "");
}

TEST_F(RunCommand, leavesOldFilesWhenItCannotWrite) {
  ASSERT_TRUE(io::writeNpy(path("logits.npy"), features(1)).ok());
  std::string old = text("logits.npy");
  std::vector<std::string> before = folder().list();
  ::chmod(path("logits.npy").c_str(), 0666);
  ::chmod(folder().path().c_str(), 0555);
  Ended ended = evaluate({"--output=logits=@logits.npy"}, asUser());
  ::chmod(folder().path().c_str(), 0755);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "tandem-run: error: cannot write 'logits.npy': "
                       "Permission denied\n");
  EXPECT_EQ(text("logits.npy"), old);
  EXPECT_EQ(folder().list(), before);

  ended = evaluate({"--output=logits=@/dev/full"});
  EXPECT_EQ(ended.code, 2) << "/dev/full is no .npy file";
  std::filesystem::create_symlink("/dev/full", path("full.npy"));
  ended = evaluate({"--output=logits=@full.npy"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "tandem-run: error: cannot write 'full.npy': No space "
                       "left on device\n");
}

TEST_F(RunCommand, noticesThatStdoutIsFull) {
  Start full;
  full.prepare = [] {
    FILE *file = std::freopen("/dev/full", "w", stdout);
    (void)file;
  };
  Ended ended = evaluate({}, full);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err, "tandem-run: error: cannot write to stdout: No space "
                       "left on device\n");
}

TEST_F(RunCommand, benchReportsTimes) {
  Ended ended = run({"bench", "classifier.tdm", "--json", "--steps=7",
                     "--warmup=2", "--threads=2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["program"], "step");
  EXPECT_EQ(json["warmup"], 2);
  EXPECT_EQ(json["steps"], 7);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["batch"], 4);
  // The model is written by hand and says nothing of the memory of a step.
  EXPECT_FALSE(json.contains("planned_peak_bytes"));
  EXPECT_TRUE(json.contains("arena_bytes"));
  double min = json["min_ms"], median = json["median_ms"], p90 = json["p90_ms"];
  EXPECT_GT(min, 0);
  EXPECT_LE(min, median);
  EXPECT_LE(median, p90);
  EXPECT_GT(json["actual_peak_bytes"], 0);
  EXPECT_NEAR(double(json["samples_per_second"]), 4 / (median / 1e3), 1);

  ended = run({"bench", "classifier.tdm", "--program=evaluate",
               "--seconds=0.01", "--input", "x=@x4.npy"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  // How wide the columns are depends on the times.
  EXPECT_TRUE(std::regex_search(ended.out, std::regex("program +evaluate\n")))
      << ended.out;
}

TEST_F(RunCommand, benchTellsWhatEachKernelTakes) {
  Ended ended = run({"bench", "classifier.tdm", "--kernels", "--json",
                     "--steps=7", "--threads=2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["program"], "step");
  EXPECT_EQ(json["calls"], 7);
  EXPECT_EQ(json["threads"], 2);
  double roof = json["roofs"]["gflops_f32"];
  double bandwidth = json["roofs"]["gbytes_per_second"];
  EXPECT_GT(roof, 0);
  EXPECT_GT(bandwidth, 0);
  ASSERT_EQ(json["kernels"].size(), 3u);
  double sum = 0, before = INFINITY;
  for (const Json &kernel : json["kernels"]) {
    double ms = kernel["ms"], lost = kernel["lost_ms"];
    double flops = kernel["flops"], bytes = kernel["bytes"];
    EXPECT_EQ(kernel["launches"], 1);
    EXPECT_EQ(kernel["launch_ms"], Json::array({ms}));
    EXPECT_GT(ms, 0);
    // What the clock saw against what the machine can do.
    double least =
        std::max(flops / (roof * 1e9), bytes / (bandwidth * 1e9)) * 1e3;
    EXPECT_NEAR(double(kernel["roof_ms"]), least, 1e-6 * least);
    EXPECT_NEAR(lost, ms - least, 1e-6 * ms);
    EXPECT_NEAR(double(kernel["gflops"]), flops / ms * 1e-6,
                1e-6 * double(kernel["gflops"]));
    EXPECT_LE(lost, before);
    before = lost;
    sum += ms;
  }
  EXPECT_NEAR(double(json["kernels_ms"]), sum, 1e-6 * sum);
  EXPECT_LE(sum, 2 * double(json["median_ms"]));

  ended = run({"bench", "classifier.tdm", "--kernels", "--steps=3",
               "--program=evaluate"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char *part :
       {"of roof", "scores", "all kernels", "GFLOP/s in f32"})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << ended.out;
  EXPECT_EQ(ended.out.find("descend"), std::string::npos) << ended.out;
}

TEST_F(RunCommand, saysHowItIsUsed) {
  Ended ended = run({});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: expected a command; 'tandem-run "
                       "help' lists them\n");
  ended = run({"--help"});
  EXPECT_EQ(ended.code, 0);
  for (const char *part : {"run ", "train ", "bench ", "version "})
    EXPECT_NE(ended.out.find(part), std::string::npos);
  for (const char *command : {"run", "train", "bench", "version"}) {
    ended = run({command, "--help"});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.out.find("usage: tandem-run " + std::string(command)), 0u);
  }
  ended = run({"compile", "x.mlir"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err.find("tandem-run: error: unknown command 'compile'"), 0u);
  EXPECT_NE(ended.err.find("expected one of run, "), std::string::npos);
  EXPECT_NE(run({"trian"}).err.find("(did you mean 'train'?)"),
            std::string::npos);
  ended = run({"run", "classifier.tdm", "--threads=0", "--wrong"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: option '--threads' expected an integer from 1 "
            "to 1024 but got '0'; unknown option '--wrong'\n");
  ended = run({"version"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out.find("tandem-run "), 0u);
  // It said 1 when 2 was written.
  EXPECT_NE(ended.out.find("(artifact format " +
                           std::to_string(artifact::formatVersion) + ")\n"),
            std::string::npos);
  EXPECT_EQ(run({"--version"}).out, ended.out);
  // `-V` was an unknown command, and `help train` was `help`.
  EXPECT_EQ(run({"-V"}).out, ended.out);
  EXPECT_EQ(run({"help", "train"}).out, run({"train", "--help"}).out);
  EXPECT_NE(run({"help", "lr"}).out.find("tandem-run train --lr=RATE"),
            std::string::npos);
  EXPECT_EQ(run({"help", "--lr"}).out, run({"help", "lr"}).out);
  EXPECT_NE(run({"help", "arrays"}).out.find("NAME=@FILE"), std::string::npos);
  EXPECT_EQ(run({"help", "tarin"}).err,
            "tandem-run: error: there is no help about 'tarin' (did you mean "
            "'train'?)\n");
  // A name of a command reached the terminal as it was.
  EXPECT_NE(run({"\x1b[31m"}).err.find("'\\x1b[31m'"), std::string::npos);
}

} // namespace
} // namespace tandem::commands::test
