//===- TuneTest.cpp - schedules that are found by measuring ---------------===//
//
// With a timer that makes up its times: what is tried, what is chosen, what the
// cache keeps, and what happens when there is no time or no good cache.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/tune/ScheduleCache.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace tandem;

namespace {
/// Says that the trial `fastest` of each kernel takes half as long.
class MadeUpTimes : public KernelTimer {
public:
  size_t fastest = 0;
  int calls = 0;
  std::vector<size_t> trials; ///< of each call
  Status runs;

  int threads() const override { return 2; }
  Status canRun(const std::string &,
                const std::vector<std::string> &) const override {
    return runs;
  }
  Result<std::vector<double>> time(const KernelTrials &trials,
                                   double) override {
    ++calls;
    EXPECT_FALSE(trials.object.empty());
    EXPECT_EQ(trials.outputs.size(), trials.overwrites.size());
    std::vector<double> times(trials.trials.size(), 1.0);
    if (fastest < times.size())
      times[fastest] = 0.5;
    this->trials.push_back(times.size());
    return times;
  }
};

class Tune : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             ("tandem-tune-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    options.target = "cpu:x86-64-v3";
    options.stopAfter = "plan";
    options.tune = 1e6;
    options.tuneCache = folder / "new" / "cache.json";
    options.timer = &timer;
    DialectRegistry registry;
    registerCompiler(registry);
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { said += diagnostic.str() + '\n'; });
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Two equal products, another one, and an op without a choice.
  static constexpr const char *model = R"(
module @model attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<40x40xf32> {tandem.role = #tandem.role<input "x">}, %z: tensor<40x40xf32> {tandem.role = #tandem.role<input "z">}, %w: tensor<40x96xf32> {tandem.role = #tandem.role<input "w">}) -> (tensor<40x96xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.matmul %x, %z : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
    %1 = tandem.matmul %0, %z : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
    %2 = tandem.matmul %1, %w : tensor<40x40xf32>, tensor<40x96xf32> -> tensor<40x96xf32>
    return %2 : tensor<40x96xf32>
  }
})";

  /// Whether the plan says of its products what the tables chose.
  static bool areOfTable(const std::vector<std::string> &schedules) {
    return schedules.size() == 3 &&
           llvm::all_of(schedules, [](llvm::StringRef schedule) {
             return schedule.starts_with(
                 "#tandem.schedule<chosen(method = gemm, ");
           });
  }

  /// The schedules of the model's kernels, in order, as text.
  std::vector<std::string> tune(const char *text = model) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    times.clear();
    status = runPhases(*module, options, times);
    std::vector<std::string> schedules;
    module->walk([&](KernelOp kernel) {
      schedules.emplace_back();
      if (Attribute schedule = kernel.getScheduleAttr())
        llvm::raw_string_ostream(schedules.back()) << schedule;
    });
    return schedules;
  }
  void writeCache(const std::string &text) {
    options.tuneCache = folder / "given.json";
    std::ofstream(options.tuneCache) << text;
  }

  std::filesystem::path folder;
  MadeUpTimes timer;
  CompileOptions options;
  MLIRContext context;
  std::vector<PhaseTime> times;
  Status status;
  std::string said;
};
} // namespace

TEST_F(Tune, TheFastestIsChosenAndKept) {
  timer.fastest = 2;
  auto schedules = tune();
  ASSERT_TRUE(status) << status.message();
  ASSERT_EQ(schedules.size(), 3U);
  EXPECT_FALSE(
      llvm::StringRef(schedules[0]).starts_with("#tandem.schedule<chosen("))
      << schedules[0];
  EXPECT_EQ(schedules[0], schedules[1]) << "equal kernels";
  EXPECT_FALSE(
      llvm::StringRef(schedules[2]).starts_with("#tandem.schedule<chosen("))
      << schedules[2];
  EXPECT_EQ(timer.calls, 4) << "tiles, then blocks, of two kernels";
  EXPECT_EQ(times.back().phase, "tune");

  // The second time nothing is measured, and the result is the same.
  timer.fastest = 5;
  EXPECT_EQ(tune(), schedules);
  EXPECT_EQ(timer.calls, 4);
  options.tune = 0;
  EXPECT_EQ(tune(), schedules);
  EXPECT_EQ(said, "");

  // Other targets and other numbers of threads are other entries.
  options.target = "cpu:x86-64-v4";
  EXPECT_TRUE(areOfTable(tune()));
  EXPECT_NE(said.find("2 of 2 kernels"), std::string::npos) << said;
}

TEST_F(Tune, TheModelIsKeptWhereNothingIsFaster) {
  timer.fastest = 0; // the model's
  EXPECT_TRUE(areOfTable(tune()));
  ASSERT_TRUE(status) << status.message();
  int calls = timer.calls;
  tune();
  EXPECT_EQ(timer.calls, calls) << "that, too, is kept";
}

/// A convolution of 20 planes with 3x3 taps.
static std::string convolution(int filters) {
  std::string n = std::to_string(filters), w = "tensor<" + n + "x20x3x3xf32>",
              y = "tensor<4x" + n + "x12x12xf32>";
  return R"(
module @model attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<4x20x12x12xf32> {tandem.role = #tandem.role<input "x">}, %w: )" +
         w + R"( {tandem.role = #tandem.role<input "w">}) -> ()" + y +
         R"( {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] : tensor<4x20x12x12xf32>, )" +
         w + " -> " + y + "\n    return %0 : " + y + "\n  }\n}";
}

/// The method, then the tile, then the item: each goes on from the best before.
/// Of the methods there is another one alone, so that the third trial is none.
TEST_F(Tune, ConvolutionsAreCutInRounds) {
  timer.fastest = 2;
  auto schedules = tune(convolution(72).c_str());
  ASSERT_TRUE(status) << status.message() << said;
  EXPECT_EQ(schedules,
            std::vector<std::string>(
                {"#tandem.schedule<rows = 3, vectors = 3, block = 12, "
                 "chosen(method = direct)>"}));
  EXPECT_EQ(timer.calls, 3);
}

/// All rows of the table that compute the kernel are tried, and then what the
/// best of them varies: vectors of pixels were never reached.
TEST_F(Tune, AllMethodsThatComputeAConvolutionAreTried) {
  timer.fastest = 1;
  auto schedules = tune(convolution(24).c_str());
  ASSERT_TRUE(status) << status.message() << said;
  EXPECT_EQ(schedules,
            std::vector<std::string>(
                {"#tandem.schedule<method = pixels, chosen(block = 144)>"}));
  ASSERT_EQ(timer.calls, 2);
  EXPECT_EQ(timer.trials[0], 3U) << "direct, pixels, windows";
}

/// What comes to the code of an earlier trial is left out: the best schedule is
/// the model's again, and no block has more rows than the product. What is left
/// is the other way to pack.
TEST_F(Tune, NoTrialIsMeasuredTwice) {
  tune();
  ASSERT_EQ(timer.trials.size(), 4U);
  EXPECT_EQ(timer.trials[1], 2U);
  EXPECT_EQ(timer.trials[3], 2U);
}

TEST_F(Tune, NoTime) {
  options.tune = 0;
  EXPECT_TRUE(areOfTable(tune()));
  EXPECT_TRUE(status);
  EXPECT_EQ(timer.calls, 0);
  EXPECT_NE(said.find("--tune: 2 of 2 kernels with a choice of schedules were "
                      "not measured"),
            std::string::npos)
      << said;
  EXPECT_FALSE(std::filesystem::exists(options.tuneCache));
}

TEST_F(Tune, WithoutACache) {
  options.tuneCache = "";
  timer.fastest = 1;
  EXPECT_NE(tune()[0], "");
  tune();
  EXPECT_EQ(timer.calls, 8);
}

TEST_F(Tune, WhatCannotBeTuned) {
  timer.runs = Status::noDevice("--tune: not here");
  tune();
  EXPECT_EQ(status.message(), "--tune: not here");
  EXPECT_EQ(status.code(), Code::NoDevice);
  timer.runs = Status();
  options.timer = nullptr;
  tune();
  EXPECT_EQ(status.code(), Code::Unsupported);
  options.timer = &timer;
  options.target = "cuda:sm_90";
  tune();
  EXPECT_EQ(status.message(), "expected a target of the kind 'cpu' for --tune");
  options.stopAfter = "joint";
  EXPECT_EQ(checkOptions(options).message(),
            "--tune has no effect before 'plan' is done, but --stop-after is "
            "'joint'");
  // A pass of the phase is before its end.
  options.stopAfter = "form-kernels";
  EXPECT_EQ(checkOptions(options).message(),
            "--tune has no effect before 'plan' is done, but --stop-after is "
            "'form-kernels'");
}

TEST_F(Tune, BadCaches) {
  const std::pair<const char *, const char *> bad[] = {
      {"", "it is no JSON"},
      {"[", "it is no JSON"},
      {"[1]", "expected 'format' to be 'tandem schedules'"},
      {"3", "expected 'format'"},
      {R"({"format": "x"})", "expected 'format'"},
      {R"({"format": "tandem schedules", "version": 2})",
       "expected 'version' to be 1"},
      {R"({"format": "tandem schedules", "version": 1})",
       "expected 'entries' to be an object"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k": 1}})",
       "entry 'k': expected an object"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k": {}}})",
       "entry 'k': expected 'kernel' and 'machine' to be strings"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": -1}}})",
       "entry 'k': expected 'threads', 'seconds' and 'model_seconds'"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": 1, "seconds": 1,
          "model_seconds": 1, "schedule": {"rows": [1]}}}})",
       "entry 'k': expected 'rows' of a schedule to be 1 to 32, but got [1]"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": 1, "seconds": 1,
          "model_seconds": 1, "schedule": {"width": 1}}}})",
       "entry 'k': expected a schedule to have no 'width'"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": 1, "seconds": 1,
          "model_seconds": 1, "schedule": {"method": "fft"}}}})",
       "entry 'k': expected 'method' of a schedule to be"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": 1, "seconds": 1,
          "model_seconds": 1, "schedule": {"packs": 1}}}})",
       "entry 'k': expected 'packs' of a schedule to be true or false"},
      {R"({"format": "tandem schedules", "version": 1, "entries": {"k":
         {"kernel": "", "machine": "", "threads": 1, "seconds": 1,
          "model_seconds": 1, "schedule": 3}}})",
       "entry 'k': expected 'schedule' to be an object"}};
  for (auto [text, problem] : bad) {
    writeCache(text);
    tune();
    EXPECT_EQ(status.code(), Code::Failed) << text;
    EXPECT_NE(status.message().find(problem), std::string::npos)
        << text << ": " << status.message();
    EXPECT_NE(status.message().find("is not a cache of schedules"),
              std::string::npos);
    EXPECT_EQ(timer.calls, 0);
  }
}

/// A schedule of the file that no kernel can have is an error that names the
/// file, not a crash.
TEST_F(Tune, ImpossibleSchedulesOfACache) {
  tune();
  auto cache = ScheduleCache::read(options.tuneCache, &context);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->size(), 2U);
  std::ifstream in(options.tuneCache);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0;
       (at = text.find("\"schedule\": {", at)) != std::string::npos; at += 10)
    text.replace(at, text.find('}', at) + 1 - at,
                 R"("schedule": {"rows": 99})");
  writeCache(text);
  options.stopAfter = "";
  tune();
  EXPECT_FALSE(status);
  EXPECT_NE(status.message().find(
                "expected 'rows' of a schedule to be 1 to 32, but got 99"),
            std::string::npos)
      << status.message();
}

TEST_F(Tune, CachesOfSeveralCompilationsJoin) {
  options.tuneCache = folder / "both.json";
  ScheduleCache one, two;
  ScheduleAttr schedule; // the model's
  one.set("a", {"k", "m", 1, schedule, 1, 1});
  two.set("b", {"k\xff", "m", 1, schedule, 1, 1});
  ASSERT_TRUE(one.write(options.tuneCache, &context));
  ASSERT_TRUE(two.write(options.tuneCache, &context));
  auto both = ScheduleCache::read(options.tuneCache, &context);
  ASSERT_TRUE(both) << both.status().message();
  EXPECT_TRUE(both->find("a"));
  EXPECT_TRUE(both->find("b"));
  EXPECT_FALSE(both->find("c"));
}

TEST_F(Tune, CompilationsThatWriteAtOneMomentLoseNothing) {
  options.tuneCache = folder / "many.json";
  ScheduleAttr schedule; // the model's
  constexpr int processes = 4, entries = 20;
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool isWritten = true;
      for (int i = 0; i < entries; ++i) {
        ScheduleCache cache;
        cache.set(std::to_string(process) + "." + std::to_string(i),
                  {"k", "m", 1, schedule, 1, 1});
        isWritten &= bool(cache.write(options.tuneCache, &context));
      }
      ::_exit(isWritten ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  auto all = ScheduleCache::read(options.tuneCache, &context);
  ASSERT_TRUE(all) << all.status().message();
  EXPECT_EQ(all->size(), size_t(processes * entries));
}
