//===- ManifestFieldsTest.cpp - every field of Manifest.def ---------------===//
//
// Each field that the list has is written and read back, and refused at its
// place where it has another type or name, or is out of its range: the list is
// walked, so that a new field is tested by its row. And fields that a format
// does not have, of structs of the test's own.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FieldReader.h"
#include "runtime/artifact/FormatVersion.h"
#include "tests/runtime/Mutants.h"
#include "tests/runtime/TestModel.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

Value valueWith(const char *name, Init init) {
  Value value;
  value.role = Role::Param;
  value.name = name;
  value.init = init;
  return value;
}

/// A manifest that has each field somewhere. It says what its fields can say,
/// and means nothing.
Manifest everything() {
  Manifest m = offloadedRegression();
  m.loss = "loss";
  m.optimizer = "sgd";
  m.graph = std::string(64, 'a');
  m.target.features = {"avx2"};
  m.values.push_back(valueWith("n", Init::normal(0, 1)));
  m.values.push_back(valueWith("u", Init::uniform(0, 1)));
  m.values.push_back(valueWith("c", Init::counter(1, 0.5)));
  m.values.push_back(valueWith("k", Init::constant(1)));
  Value labels;
  labels.name = "labels";
  labels.dtype = DType::I64;
  labels.high = 10;
  labels.low = -10;
  labels.ignored = -100;
  labels.ranges = {{{0}, {1}, {1}, -3, 3, -7}};
  labels.sharding = {{"data"}};
  labels.shape = {2};
  labels.whole = {3};
  m.mesh = {{"data", 2}};
  m.bucketBytes = 4096;
  m.pipeline = {1, 2, 2, std::string(64, 'b'), {"x"}, {"loss"}, {labels}};
  m.values.push_back(labels);
  Kernel &kernel = m.kernels[0];
  kernel.ops = {"tandem.add"};
  kernel.block = {1, 1, 1};
  kernel.sharedBytes = 16;
  kernel.tensorMaps = {{0, 0, "f32", {64, 8}, {256}, {32, 1}, 128}};
  kernel.summary = "add";
  kernel.dtype = DType::F64;
  Program &program = m.programs[1];
  program.hostBytes = 64;
  Slot &slot = program.arguments[0];
  slot.alias =
      aliasOf("base", {View::reshape({8}), View::permute({0}),
                       View::slice({0}, {8}, {1}), View::broadcast({2, 8}, {1}),
                       View::asStrided({8}, {1}, 0), View::bitcast(DType::I32),
                       View::detach()});
  slot.alias->storage = TensorType{DType::F32, {8}};
  slot.freed = slot.asFound = slot.unchecked = slot.visible = true;
  slot.metadata = slot.storage = aliasOf("x");
  slot.resize = 8;
  slot.partOf = "split";
  slot.where = "m.mlir:1:1";
  slot.onHost = true;
  slot.inputs = {"x"};
  slot.rows = Rows::Mean;
  slot.counted = "labels";
  slot.needs = {{"loss"}};
  Slot saved;
  saved.role = Role::Saved;
  saved.name = "s";
  saved.reason = "it is read";
  saved.alias = aliasOfOutput("pred");
  program.results.push_back(saved);
  Slot update;
  update.role = Role::Update;
  update.name = "w";
  update.inPlace = true;
  program.results.push_back(update);
  OutputAlias output;
  output.name = "rows";
  output.alias = aliasOf("x");
  output.partOf = "split";
  program.aliases = {output};
  program.buffers.push_back(Buffer::constant(0, 64));
  Launch launch = program.launches[0];
  launch.needs = {{"loss"}};
  launch.choices = {{{{"loss"}}, -1}};
  launch.grid = {1, 1, 1};
  LibraryCall call;
  call.op = "matmul";
  call.tf32 = call.relu = true;
  call.operands = {0, 1, 2};
  call.sizes = call.lds = call.batchStrides = call.strides = call.padding =
      call.dilation = {1};
  call.transposes = {0};
  call.workspace = 0;
  launch.library = call;
  program.launches.insert(program.launches.begin(), launch);
  Collective collective;
  collective.axes = {"data"};
  collective.reduce = Collective::Reduce::Max;
  collective.root = 1;
  collective.number = 3;
  collective.where = "m.mlir:5:5";
  program.launches.push_back(Launch::over(collective, {0, 1}));
  program.size = 1;
  Size &size = m.sizes.emplace_back();
  size.name = "batch=1";
  size.values = {labels};
  size.stepMemory = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  size.partition.emplace().seconds = 0.25;
  m.values[0].alsoCalled = {"y"};
  m.mutatedInBackward = {0};
  m.stepMemory = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Partition &partition = m.partition.emplace();
  partition.saved = {{"r", "tandem.sub", "l.0.sub", "m.mlir:3:5", 1.5e-6}};
  partition.repeated = {
      {"tandem.exp", "l.0.exp", "m.mlir:4:5", "it fuses", 2e-6, 64}};
  partition.seconds = 0.25;
  partition.chain = {{100, 50, 0.5, 1e9}};
  return m;
}

TEST(ManifestFields, EachIsThere) {
  std::vector<std::string> has = fieldsOf(everything()), all = allFields(),
                           missing;
  std::set_difference(all.begin(), all.end(), has.begin(), has.end(),
                      std::back_inserter(missing));
  EXPECT_EQ(missing, std::vector<std::string>())
      << "give 'everything' a value for them";
  EXPECT_GT(all.size(), 120u);
}

TEST(ManifestFields, EachComesBackFromItsText) {
  Manifest m = everything();
  Result<Manifest> read = fromJson(*toJson(m));
  ASSERT_TRUE(read) << read.status().message();
  // The type of an argument is that of its value.
  for (Manifest *one : {&m, &*read})
    for (Program &program : one->programs)
      for (Slot &slot : program.arguments)
        if (slot.role <= Role::State)
          slot.dtype = DType::F32, slot.shape.clear();
  EXPECT_EQ(*read, m);
}

TEST(ManifestFields, EachIsRefusedAtItsPlace) {
  size_t count = 0;
  forEachFieldMutant(everything(), [&](const FieldMutant &mutant) {
    ++count;
    Result<Manifest> read = fromJson(mutant.text);
    Status status = read ? validate(*read, 128) : read.status();
    ASSERT_FALSE(status.ok()) << mutant.message;
    EXPECT_NE(status.message().find(mutant.message), std::string::npos)
        << mutant.message << "\n"
        << status.message();
  });
  EXPECT_GT(count, 350u);
}

} // namespace

// A struct whose second field came with format 3, and whose third has a name of
// its own since format 4.
namespace tandem::artifact {
struct Grown {
  int64_t old = 0, later = 7, latest = 9;
};
template <> struct Fields<Grown> {
  static constexpr std::string_view name = "Grown", meaning = "";
  template <typename Visitor> static void visit(Visitor &&visitor) {
    struct Old {
      static constexpr FieldRow says() {
        return {"old", Presence::required, 2, {}, ""};
      }
    };
    struct Later {
      static constexpr FieldRow says() {
        return {"later", Presence::required, 3, {}, ""};
      }
    };
    struct Latest {
      static constexpr FieldRow says() {
        return {"latest", Presence::optional, 4, {}, ""};
      }
    };
    visitor(Field<Grown, int64_t, Old>{&Grown::old, nullptr});
    visitor(Field<Grown, int64_t, Later>{&Grown::later, nullptr});
    visitor(Field<Grown, int64_t, Latest>{&Grown::latest, nullptr});
  }
};
} // namespace tandem::artifact

namespace {

std::string readGrown(int64_t format, const char *text, Grown &out) {
  ManifestProblems problems;
  FieldReader(format, problems)
      .read(FieldReader::Json::parse(text), ManifestPath(), "", out);
  return problems.status().message();
}

TEST(ManifestFields, WhatAnOlderFormatLacksIsItsInitialValue) {
  Grown grown;
  EXPECT_EQ(readGrown(2, R"({"old":5})", grown), "");
  EXPECT_EQ(grown.old, 5);
  EXPECT_EQ(grown.later, 7);
  EXPECT_EQ(readGrown(3, R"({"old":5,"later":6})", grown), "");
  EXPECT_EQ(grown.later, 6);
  EXPECT_EQ(grown.latest, 9);
}

TEST(ManifestFields, AFormatHasNoFieldsOfLaterOnes) {
  Grown grown;
  EXPECT_EQ(readGrown(2, R"({"old":5,"later":6})", grown),
            "/later: a field since format 3, but this has format 2");
  EXPECT_EQ(readGrown(3, R"({"old":5})", grown),
            "manifest: expected the field 'later' but got none");
  EXPECT_EQ(readGrown(3, R"({"old":5,"later":6,"latest":1})", grown),
            "/latest: a field since format 4, but this has format 3");
  EXPECT_EQ(readGrown(4, R"({"old":5,"later":6,"latset":1})", grown),
            "/latset: unknown field (did you mean 'latest'?)");
}

// A newer compiler's file was refused for a field, not for its format.
TEST(ManifestFields, TheFormatIsSaidBeforeUnknownFields) {
  std::string text = *toJson(regression());
  std::string newer = R"({"format":3,"novelty":[],)" + text.substr(12);
  Status status = fromJson(newer).status();
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(status.message().find("manifest has format 3, but this runtime ("),
            0u)
      << status.message();
  EXPECT_NE(status.message().find(") reads 2 to 2"), std::string::npos);
  EXPECT_EQ(fromJson(text, 3).status().message(),
            "/format: expected that of the file, 3, but got 2");
}

} // namespace
