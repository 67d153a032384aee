//===- CoreManifestTest.cpp - what a manifest must not say ----------------===//
//
// One row for each rule of the manifest: a change of a valid manifest, or of
// its text, and the pointer and reason that must be reported.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

struct TextRow {
  const char *from, *to, *message;
};

class ManifestText : public ::testing::TestWithParam<TextRow> {};

TEST_P(ManifestText, IsRefused) {
  const TextRow &row = GetParam();
  std::string text = *toJson(regression());
  size_t at = text.find(row.from);
  ASSERT_NE(at, std::string::npos) << row.from;
  text.replace(at, std::string(row.from).size(), row.to);
  Result<Manifest> manifest = fromJson(text);
  ASSERT_FALSE(manifest);
  EXPECT_NE(manifest.status().message().find(row.message), std::string::npos)
      << manifest.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ManifestText,
    ::testing::Values(
        TextRow{"{\"format\"", "\"format\"", "error at byte"},
        TextRow{"\"format\":2", "\"format\":3",
                "manifest has format 3, but this runtime ("},
        TextRow{"\"format\":2", "\"format\":1", ") reads 2 to 2"},
        TextRow{"\"format\":2", "\"format\":1.5",
                "/format: expected an integer"},
        TextRow{"\"format\":2", "\"format\":18446744073709551615",
                "/format: expected a 64-bit integer"},
        TextRow{"\"format\":2,", "", "expected the field 'format'"},
        TextRow{"\"format\":2", "\"format\":2,\"format\":2",
                "key 'format' is there twice"},
        TextRow{"\"producer\"", "\"pro~/ducer\"",
                "/pro~0~1ducer: unknown field"},
        TextRow{"\"model\":\"regression\"", "\"model\":[]",
                "/model: expected a string but got array"},
        TextRow{"\"target\":{", "\"target\":{\"x\":1,",
                "/target/x: unknown field"},
        TextRow{"\"requires_grad\":true", "\"requires_gard\":true",
                "/values/2/requires_gard: unknown field (did you mean "
                "'requires_grad'?)"},
        TextRow{"\"role\":\"input\"", "\"role\":\"guest\"",
                "/values/0/role: unknown role 'guest'"},
        TextRow{"\"role\":\"input\"", "\"role\":\"inptu\"",
                "/values/0/role: unknown role 'inptu' (did you mean "
                "'input'?)"},
        TextRow{"\"dtype\":\"f32\"", "\"dtype\":\"f33\"",
                "/values/0/dtype: unknown type 'f33'"},
        TextRow{"\"shape\":[8,3]", "\"shape\":[8,\"3\"]",
                "/values/0/shape/1: expected an integer but got string"},
        TextRow{"\"shape\":[8,3]", "\"shape\":{}",
                "/values/0/shape: expected a list but got object"},
        TextRow{"\"requires_grad\":true", "\"requires_grad\":1",
                "/values/2/requires_grad: expected true or false"},
        TextRow{"\"kind\":\"uniform\"", "\"kind\":\"cauchy\"",
                "/values/2/init/kind: unknown init 'cauchy'"},
        TextRow{"\"low\":-1.0", "\"low\":\"a\"",
                "/values/2/init/low: expected a number"},
        TextRow{"\"in\":\"argument\"", "\"in\":\"attic\"",
                "/programs/0/buffers/0/in: unknown place 'attic'"},
        TextRow{"\"kernels\":[{", "\"kernels\":[7,{",
                "/kernels/0: expected an object but got number"},
        TextRow{"\"role\":\"input\",\"name\":\"x\"}",
                "\"role\":\"input\",\"name\":\"x\",\"dtype\":\"f32\"}",
                "/programs/0/arguments/0/dtype: unknown field"}));

TEST(ManifestText, WhatAKernelComputesIsKept) {
  Manifest m = regression();
  EXPECT_EQ(toJson(m)->find("summary"), std::string::npos);
  m.kernels[0].summary = "matmul 8x3xf64 3xf64 -> 8xf64";
  m.kernels[0].dtype = DType::F64;
  auto read = fromJson(*toJson(m));
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
}

TEST(ManifestText, DigestOfTheGraphIsKept) {
  Manifest m = regression();
  EXPECT_EQ(toJson(m)->find("graph"), std::string::npos);
  m.graph = std::string(64, 'a');
  auto read = fromJson(*toJson(m));
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
  EXPECT_TRUE(validate(m, 128).ok());
}

TEST(ManifestText, AllProblemsAtOnceAndNotTooMany) {
  std::string text = *toJson(regression());
  for (size_t at; (at = text.find("\"dtype\":\"f32\"")) != std::string::npos;)
    text.replace(at, 13, "\"dtype\":\"f31\"");
  std::string message = fromJson(text).status().message();
  EXPECT_NE(message.find("/values/0/dtype"), std::string::npos);
  EXPECT_NE(message.find("/values/7/dtype"), std::string::npos);
  EXPECT_NE(message.find("more"), std::string::npos);
  EXPECT_LT(message.size(), 2000u);
}

TEST(ManifestText, DeepNestingAndBadUtf8) {
  EXPECT_FALSE(fromJson(std::string(100000, '[')));
  EXPECT_FALSE(fromJson(std::string(100000, '[') + std::string(100000, ']')));
  EXPECT_FALSE(fromJson("{\"model\":\"\xff\"}"));
  EXPECT_FALSE(fromJson(""));
  EXPECT_FALSE(fromJson("null"));
  Manifest m = regression();
  m.model = "\xff";
  EXPECT_FALSE(toJson(m));
}

struct Row {
  const char *name;
  std::function<void(Manifest &)> change;
  const char *message;
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

class ManifestRule : public ::testing::TestWithParam<Row> {};

TEST_P(ManifestRule, IsChecked) {
  Manifest m = regression();
  ASSERT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  GetParam().change(m);
  Status status = validate(m, 128);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.message();
}

/// The step's gradient of w is the first half of a larger value.
void readPart(Manifest &m) {
  Program &step = m.programs[4];
  step.arenaBytes = 384;
  step.buffers[9] = Buffer::arena(256, 128);
  step.buffers.push_back(Buffer::arena(256, 64));
  step.launches[5].buffers[1] = 12;
}

// Programs: 0 evaluate, 1 forward, 2 backward, 3 update, 4 step.
const Row rows[] = {
    {"TargetKind", [](Manifest &m) { m.target.kind = ""; }, "/target/kind"},
    {"Graph", [](Manifest &m) { m.graph = "no digest"; },
     "/graph: expected 64 hexadecimal digits"},
    {"ValueRole", [](Manifest &m) { m.values[0].role = Role::Saved; },
     "/values/0/role: expected 'input'"},
    {"ValueName", [](Manifest &m) { m.values[0].name = ""; },
     "/values/0/name: expected a printable name"},
    {"ValueNameControl",
     [](Manifest &m) { m.values[0].name = std::string("x\0y", 3); },
     "/values/0/name: expected a printable name"},
    {"ValueRepeated", [](Manifest &m) { m.values[1].name = "x"; },
     "/values/1/name: 'x' is repeated"},
    {"NegativeSize",
     [](Manifest &m) {
       m.values[0].shape = {-8, 3};
     },
     "/values/0/shape: no tensor has the type f32 [-8, 3]"},
    {"HugeSize",
     [](Manifest &m) {
       m.values[0].shape = {int64_t(1) << 40, int64_t(1) << 40};
     },
     "/values/0/shape"},
    {"HugeRank", [](Manifest &m) { m.values[0].shape.assign(17, 1); },
     "/values/0/shape"},
    {"RequiresGrad", [](Manifest &m) { m.values[4].requiresGrad = true; },
     "/values/4/requires_grad"},
    {"InitOnInput", [](Manifest &m) { m.values[0].init = Init::constant(0); },
     "/values/0/init"},
    {"InitNotFinite",
     [](Manifest &m) { m.values[2].init = Init::constant(INFINITY); },
     "/values/2/init/value: expected a finite number"},
    {"InitRange", [](Manifest &m) { m.values[2].init = Init::uniform(1, -1); },
     "/values/2/init: expected low"},
    {"InitDeviation",
     [](Manifest &m) { m.values[2].init = Init::normal(0, -1); },
     "/values/2/init/std"},
    {"InitStream", [](Manifest &m) { m.values[2].init = Init::counter(-1, 1); },
     "/values/2/init/stream"},
    {"InitSeed", [](Manifest &m) { m.values[2].init = Init::seed(); },
     "/values/2/init: expected the type 'i64'"},
    {"LowAlone", [](Manifest &m) { m.values[0].low = -3; },
     "/values/0/low: expected a number below 0, beside 'high'"},
    {"IgnoredAlone", [](Manifest &m) { m.values[0].ignored = -100; },
     "/values/0/ignored: expected it beside 'high' only"},
    {"RangeOfFloats",
     [](Manifest &m) { m.values[1].ranges = {{{0}, {8}, {1}, 0, 2, {}}}; },
     "/values/1/ranges/0: expected it on an integer input only"},
    {"RangeOfNothing",
     [](Manifest &m) { m.values[1].ranges = {{{0}, {8}, {1}, 2, 2, {}}}; },
     "/values/1/ranges/0/high: expected more than 'low'"},
    {"RangeOfAnotherRank",
     [](Manifest &m) { m.values[0].ranges = {{{0}, {8}, {1}, 0, 2, {}}}; },
     "/values/0/ranges/0: expected 2 dimensions"},
    {"RangeBehindTheEnd",
     [](Manifest &m) { m.values[1].ranges = {{{1}, {9}, {2}, 0, 2, {}}}; },
     "/values/1/ranges/0/ends/0: expected a slice of 8 indices but got 1 to 9"},
    {"RangeOfNoIndex",
     [](Manifest &m) { m.values[1].ranges = {{{4}, {4}, {1}, 0, 2, {}}}; },
     "/values/1/ranges/0/ends/0: expected a slice of 8"},
    {"RowsOfAStep",
     [](Manifest &m) { m.programs[4].results[0].rows = Rows::Mean; },
     "/programs/4/results/0: expected 'inputs', 'rows' and 'counted' on "
     "outputs of 'evaluate' only"},
    {"RowsOfAnArgument",
     [](Manifest &m) { m.programs[0].arguments[0].rows = Rows::Each; },
     "/programs/0/arguments: expected 'inputs'"},
    {"FollowsFromNothing",
     [](Manifest &m) { m.programs[0].results[0].inputs = {"z"}; },
     "/programs/0/results/0/inputs: there is no input 'z'"},
    {"RowsOfAScalar",
     [](Manifest &m) {
       m.programs[0].results[0].rows = Rows::Each;
       m.programs[0].results[0].shape = {};
     },
     "/rows: expected a first dimension for 'each'"},
    {"Counted",
     [](Manifest &m) {
       m.programs[0].results[0].rows = Rows::Mean;
       m.programs[0].results[0].counted = "x";
     },
     "/programs/0/results/0/counted: expected a mean, and an input with rows "
     "that says 'ignored', but got 'x'"},
    {"Loss", [](Manifest &m) { m.loss = "x"; }, "/loss: expected an output"},
    {"OneSize",
     [](Manifest &m) {
       m.sizes = {{"a", {}, {}, {}}};
     },
     "/sizes: expected none, or more than one"},
    {"SizeRepeated",
     [](Manifest &m) {
       m.sizes = {{"a", {}, {}, {}}, {"a", {}, {}, {}}};
     },
     "/sizes/1/name: 'a' is repeated"},
    {"SizeOfNoOne", [](Manifest &m) { m.programs[4].size = 1; },
     "/programs/4/size: expected one of the 0 'sizes' but got 1"},
    {"SizeOfAParam",
     [](Manifest &m) {
       m.sizes = {{"a", {}, {}, {}}, {"b", {*m.findValue("w")}, {}, {}}};
     },
     "/sizes/1/values/0/role: expected 'input' or 'output': all sizes share "
     "params and states"},
    {"FurtherName", [](Manifest &m) { m.values[0].alsoCalled = {"y"}; },
     "/values/0/also_called: expected it on a param only"},
    {"FurtherNameRepeated",
     [](Manifest &m) {
       for (Value &value : m.values)
         if (value.name == "w")
           value.alsoCalled = {"x"};
     },
     "/also_called/0: 'x' is repeated"},
    {"Symbol", [](Manifest &m) { m.kernels[0].symbol = "a b"; },
     "/kernels/0/symbol: expected a symbol"},
    {"SymbolRepeated", [](Manifest &m) { m.kernels[1].symbol = "predict"; },
     "/kernels/1/symbol: 'predict' is repeated"},
    {"Scratch", [](Manifest &m) { m.kernels[0].scratchBytes = -1; },
     "/kernels/0/scratch_bytes: expected 0 to"},
    {"ProgramRepeated", [](Manifest &m) { m.programs[4].name = "evaluate"; },
     "/programs/4/name: 'evaluate' is repeated"},
    {"ArgumentRole",
     [](Manifest &m) { m.programs[0].arguments[0].role = Role::Cotangent; },
     "/programs/0/arguments/0/role: 'cotangent' cannot stand here"},
    {"ArgumentName", [](Manifest &m) { m.programs[0].arguments[0].name = "q"; },
     "/programs/0/arguments/0/name: there is no input 'q'"},
    {"ArgumentRepeated",
     [](Manifest &m) { m.programs[0].arguments[2].name = "w"; },
     "/programs/0/arguments/2/name: 'w' is repeated"},
    {"ArgumentType",
     [](Manifest &m) {
       m.programs[0].arguments[0].shape = {8, 4};
     },
     "expected 'x' to have the type f32 [8, 3] but got f32 [8, 4]"},
    {"ResultType",
     [](Manifest &m) { m.programs[0].results[0].dtype = DType::F64; },
     "expected 'pred' to have the type f32 [8] but got f64 [8]"},
    {"ResultRole",
     [](Manifest &m) { m.programs[0].results[0].role = Role::Saved; },
     "/programs/0/results/0/role: 'saved' cannot stand here"},
    {"GradOfState", [](Manifest &m) { m.programs[2].results[1].name = "rate"; },
     "/programs/2/results/1/name: there is no input or param 'rate'"},
    {"ResultUnwritten", [](Manifest &m) { m.programs[0].launches.clear(); },
     "expected a launch that writes 'pred' but got none"},
    {"InPlaceUnwritten",
     [](Manifest &m) {
       m.programs[3].launches.erase(m.programs[3].launches.begin());
     },
     "expected a launch that writes 'w' but got none"},
    {"InPlaceWithoutArgument",
     [](Manifest &m) { m.programs[3].arguments[2].role = Role::Grad; },
     "expected 'w' among the arguments"},
    {"InPlaceOutput",
     [](Manifest &m) { m.programs[0].results[0].inPlace = true; },
     "/programs/0/results/0/in_place"},
    {"InPlaceBuffer",
     [](Manifest &m) { m.programs[4].buffers[6] = Buffer::result(1); },
     "/programs/4/buffers/6/index: expected the buffer of 'w'"},
    {"ArenaBytes", [](Manifest &m) { m.programs[4].arenaBytes = -64; },
     "/programs/4/arena_bytes"},
    {"ArenaHuge",
     [](Manifest &m) { m.programs[4].arenaBytes = int64_t(1) << 62; },
     "/programs/4/arena_bytes"},
    {"ArenaBounds", [](Manifest &m) { m.programs[4].arenaBytes = 192; },
     "/programs/4/buffers/10: expected it to end at most at 192 but got 256"},
    {"ArenaOverflow",
     [](Manifest &m) { m.programs[4].buffers[7].offset = INT64_MAX - 63; },
     "/programs/4/buffers/7/offset: expected 0 to 256"},
    {"ArenaNegative", [](Manifest &m) { m.programs[4].buffers[7].bytes = -1; },
     "/programs/4/buffers/7/bytes: expected 0 to 256"},
    {"ArenaAlignment",
     [](Manifest &m) { m.programs[4].buffers[7] = Buffer::arena(32, 32); },
     "/programs/4/buffers/7/offset: expected a multiple of 64"},
    // A8: two live values on one place trained to another loss, exit 0.
    {"ArenaOverlap", [](Manifest &m) { m.programs[4].buffers[9].offset = 64; },
     "/programs/4/launches/3: expected buffers 8 and 9 apart, of which the "
     "launch writes to one"},
    {"ArenaOverwritten",
     [](Manifest &m) { m.programs[4].buffers[10].offset = 128; },
     "/programs/4/launches/5/reads/1: expected buffer 9 to hold what was "
     "written to it, but launch 4 has written to buffer 10 there"},
    {"ArenaPartlyOverwritten",
     [](Manifest &m) {
       m.programs[4].buffers[9] = Buffer::arena(128, 128);
       m.programs[4].buffers[10].offset = 192;
     },
     "buffer 9 to hold what was written to it, but launch 4 has written"},
    {"ArenaUnwritten",
     [](Manifest &m) {
       m.programs[4].launches.erase(m.programs[4].launches.begin());
     },
     "/programs/4/launches/0/reads/0: expected buffer 7 to hold what was "
     "written to it, but no launch has"},
    {"ArenaTwoWritesInOne",
     [](Manifest &m) {
       Launch &both = m.programs[4].launches[3];
       both.buffers.push_back(10);
       both.writes.push_back(4);
       m.programs[4].buffers[10].offset = 128;
     },
     "/programs/4/launches/3: expected buffers 9 and 10 apart"},
    {"ArenaPartOfWhatIsOverwritten",
     [](Manifest &m) {
       readPart(m);
       m.programs[4].buffers[10].offset = 320;
     },
     "/programs/4/launches/5/reads/1: expected buffer 12 to hold what was "
     "written to it, but launch 3 has written to buffer 9 there"},
    {"ArenaPartBehindTheEnd",
     [](Manifest &m) {
       readPart(m);
       m.programs[4].buffers[12].offset = 384;
     },
     "/programs/4/launches/5/reads/1: expected buffer 12 to hold what was "
     "written to it, but no launch has"},
    {"ArenaOverwrittenByALargerOne",
     [](Manifest &m) { m.programs[4].buffers[10] = Buffer::arena(128, 128); },
     "/programs/4/launches/5/reads/1: expected buffer 9 to hold what was "
     "written to it, but launch 4 has written to buffer 10 there"},
    {"ConstantBounds",
     [](Manifest &m) { m.programs[4].buffers[11].bytes = 256; },
     "/programs/4/buffers/11/bytes: expected 0 to 128"},
    {"BufferArgument", [](Manifest &m) { m.programs[0].buffers[0].index = 3; },
     "/programs/0/buffers/0/index: expected 0 to 2 but got 3"},
    {"BufferResult", [](Manifest &m) { m.programs[0].buffers[3].index = -1; },
     "/programs/0/buffers/3/index: expected 0 to 0 but got -1"},
    {"LaunchKernel", [](Manifest &m) { m.programs[0].launches[0].kernel = 7; },
     "/programs/0/launches/0/kernel: expected 0 to 6 but got 7"},
    {"LaunchBuffer",
     [](Manifest &m) { m.programs[0].launches[0].buffers[3] = 4; },
     "/programs/0/launches/0/buffers/3: expected 0 to 3 but got 4"},
    {"LaunchRead", [](Manifest &m) { m.programs[0].launches[0].reads[0] = 4; },
     "/programs/0/launches/0/reads/0: expected 0 to 3 but got 4"},
    {"LaunchReadTwice",
     [](Manifest &m) { m.programs[0].launches[0].reads[0] = 1; },
     "/programs/0/launches/0/reads/1: position 1 is repeated"},
    {"LaunchUnused",
     [](Manifest &m) { m.programs[0].launches[0].reads.pop_back(); },
     "/programs/0/launches/0/buffers/2: expected it among the reads"},
    {"LaunchWork", [](Manifest &m) { m.programs[0].launches[0].work = -1; },
     "/programs/0/launches/0/work"},
    {"LaunchGrain", [](Manifest &m) { m.programs[0].launches[0].grain = 0; },
     "/programs/0/launches/0/grain: expected 1 to"},
    {"LaunchStream", [](Manifest &m) { m.programs[0].launches[0].stream = -1; },
     "/programs/0/launches/0/stream"},
    {"WriteToConstant",
     [](Manifest &m) {
       m.programs[4].launches[2].writes.push_back(0);
       m.programs[4].launches[2].buffers[0] = 11;
     },
     "a constant cannot be written"},
    {"WriteToArgument",
     [](Manifest &m) { m.programs[0].launches[0].writes.push_back(1); },
     "/programs/0/launches/0/buffers/1: expected an update in place of 'w'"},
    {"BackwardAlone", [](Manifest &m) { m.programs[1].name = "other"; },
     "expected 'forward' beside 'backward'"},
    {"SavedUnknown", [](Manifest &m) { m.programs[2].arguments[1].name = "q"; },
     "/programs/2/arguments/1: expected 'forward' to have the saved 'q'"},
    {"SavedType", [](Manifest &m) { m.programs[2].arguments[1].shape = {9}; },
     "expected 'r' to have the type f32 [8] of 'forward' but got f32 [9]"},
    {"BackwardReadsUpdated",
     [](Manifest &m) {
       Slot steps;
       steps.role = Role::State;
       steps.name = "steps";
       m.programs[2].arguments.push_back(steps);
     },
     "expected 'steps' to be saved, since 'forward' updates it"},
    {"UpdatedInputIsNoArgument",
     [](Manifest &m) {
       Slot x;
       x.role = Role::Update;
       x.name = "y";
       x.shape = {8};
       m.programs[0].results.push_back(x);
     },
     "expected 'y' among the arguments, since it is updated"},
    {"MutatedRange", [](Manifest &m) { m.mutatedInBackward = {8}; },
     "/mutated_in_backward/0: expected 0 to 7 but got 8"},
    {"MutatedKind", [](Manifest &m) { m.mutatedInBackward = {0}; },
     "/mutated_in_backward/0: expected a value that requires grad"},
    {"MutatedTwice",
     [](Manifest &m) {
       m.mutatedInBackward = {2, 2};
     },
     "/mutated_in_backward/1: 2 is repeated"},
    {"StepMemoryRange", [](Manifest &m) { m.stepMemory.emplace().saved = -1; },
     "/step_memory/saved: expected 0 to"},
    {"PartitionRange",
     [](Manifest &m) {
       m.partition.emplace().chain = {{1, 1, 0.5, 0}, {1, -2, 0.5, 0}};
     },
     "/partition/chain/1/saved: expected 0 to"},
};

INSTANTIATE_TEST_SUITE_P(Rows, ManifestRule, ::testing::ValuesIn(rows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(Manifest, PartsOfValuesInTheArenaAreRead) {
  Manifest m = regression();
  readPart(m);
  EXPECT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
}

TEST(Manifest, ReportsAreKept) {
  Manifest m = regression();
  m.stepMemory = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(m.stepMemory->peak(), 45);
  Partition &partition = m.partition.emplace();
  partition.saved = {{"r", "tandem.sub", "l.0.sub", "m.mlir:3:5", 1.5e-6}};
  partition.repeated = {
      {"tandem.exp", "l.0.exp", "m.mlir:4:5", "it fuses", 2e-6, 64}};
  partition.seconds = 0.25;
  partition.chain = {{100, 50, 0.5, 1e9}, {80, 20, 0.75, 2e9}};
  ASSERT_TRUE(validate(m, 128)) << validate(m, 128).message();
  auto text = toJson(m);
  ASSERT_TRUE(text);
  auto read = fromJson(*text);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
}

TEST(Manifest, RowsAreKept) {
  Manifest m = regression();
  Value &labels = m.values.emplace_back();
  labels.name = "labels";
  labels.dtype = DType::I64;
  labels.shape = {8};
  labels.high = 10;
  labels.ignored = -100;
  Slot counted;
  counted.role = Role::Input;
  counted.name = "labels";
  counted.dtype = DType::I64;
  counted.shape = {8};
  m.programs[0].arguments.push_back(counted);
  for (Slot &slot : m.programs[0].results) {
    slot.inputs = {"x", "labels"};
    slot.rows = slot.shape.empty() ? Rows::Mean : Rows::Each;
    slot.counted = slot.shape.empty() ? "labels" : "";
  }
  ASSERT_TRUE(validate(m, 128)) << validate(m, 128).message();
  auto read = fromJson(*toJson(m));
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
  std::string text = *toJson(m);
  text.replace(text.find("\"rows\":\"each\""), 13, "\"rows\":\"some\"");
  EXPECT_NE(fromJson(text).status().message().find(
                "/rows: unknown relation of rows 'some'"),
            std::string::npos);
}

TEST(Manifest, IntegerInitsAreChecked) {
  Manifest m = regression();
  m.values[4].dtype = DType::I8;
  auto message = [&](Init init) {
    m.values[4].init = init;
    return validate(m, 128).message();
  };
  auto part = "/values/4/init";
  EXPECT_NE(message(Init::constant(128)).find(part), std::string::npos);
  EXPECT_NE(message(Init::constant(0.5)).find(part), std::string::npos);
  EXPECT_NE(message(Init::uniform(0, 1)).find(part), std::string::npos);
  EXPECT_EQ(message(Init::constant(-128)).find(part), std::string::npos);
}

} // namespace
