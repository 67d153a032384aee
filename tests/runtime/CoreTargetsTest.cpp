//===- CoreTargetsTest.cpp - artifacts for several targets ----------------===//
//
// One file for cpu and cuda: each target's manifest and constants, and that
// they are of one model; what a manifest for cuda must have.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

Result<ArtifactReader> readBytes(const std::string &bytes) {
  return ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
}

TEST(Targets, BothAreInOneFile) {
  std::string bytes = *writerForBoth(regression()).bytes();
  EXPECT_EQ(bytes, *writerForBoth(regression()).bytes());
  Result<ArtifactReader> reader = readBytes(bytes);
  ASSERT_TRUE(reader) << reader.status().message();
  ASSERT_EQ(reader->manifests().size(), 2u);
  EXPECT_EQ(reader->manifest(), regression());
  EXPECT_EQ(reader->constants().size(), 128u);
  EXPECT_EQ(static_cast<int>(reader->constants()[2]), 0x80); // 1.0f
  ASSERT_TRUE(reader->choose("cuda"));
  EXPECT_EQ(reader->manifest(), forDevice(regression()));
  EXPECT_EQ(reader->constants().size(), 128u);
  EXPECT_EQ(static_cast<int>(reader->constants()[2]), 0);
  EXPECT_EQ(reader->section("ptx").size(), 14u);
  EXPECT_FALSE(reader->choose("tpu"));
  EXPECT_EQ(reader->manifest().target.kind, "cuda");
  ASSERT_TRUE(reader->choose("cpu"));
  EXPECT_EQ(reader->manifest(), regression());
}

TEST(Targets, ManifestsAreOfOneModel) {
  Manifest one = regression(), other = forDevice(regression());
  EXPECT_TRUE(checkSameModel(one, other).ok());
  std::swap(other.values[0], other.values[1]);
  EXPECT_TRUE(checkSameModel(one, other).ok());
  other = forDevice(regression());
  other.values[2].shape = {4};
  other.values[4].name = "speed";
  other.values[6].dtype = DType::F64;
  other.loss = "";
  other.optimizer = "adam";
  EXPECT_EQ(checkSameModel(one, other).message(),
            "the manifests for 'cpu' and 'cuda' differ: param 'w' is not the "
            "same in both; state 'rate' is in the manifest for 'cpu' alone; "
            "output 'loss' is not the same in both; state 'speed' is in the "
            "manifest for 'cuda' alone; expected one loss, but got 'loss' and "
            "''; expected one optimizer, but got 'sgd' and 'adam'");
}

TEST(Targets, DifferingModelsAreRefused) {
  ArtifactWriter writer = writerFor(regression());
  ArtifactWriter second;
  second.setManifest(forDevice(wide(8, 1)));
  second.addConstant(std::vector<std::byte>(128));
  writer.join(std::move(second));
  Result<std::string> bytes = writer.bytes();
  ASSERT_FALSE(bytes);
  EXPECT_NE(
      bytes.status().message().find("is in the manifest for 'cuda' alone"),
      std::string::npos)
      << bytes.status().message();
}

struct Row {
  const char *name;
  void (*change)(Manifest &);
  const char *message;
};
void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

class CudaRule : public ::testing::TestWithParam<Row> {};

TEST_P(CudaRule, IsChecked) {
  Manifest m = forDevice(regression());
  ASSERT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  GetParam().change(m);
  Status status = validate(m, 128);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.message();
}

const Row rows[] = {
    {"BlockOfCpu", [](Manifest &m) { m.target.kind = "cpu"; },
     "/kernels/0/block: expected 0 sizes for the target 'cpu' but got 3"},
    {"NoBlock", [](Manifest &m) { m.kernels[0].block = {}; },
     "/kernels/0/block: expected 3 sizes for the target 'cuda' but got 0"},
    {"LargeBlock",
     [](Manifest &m) {
       m.kernels[1].block = {32, 32, 2};
     },
     "/kernels/1/block: expected at most 1024 in all but got 2048"},
    {"DeepBlock",
     [](Manifest &m) {
       m.kernels[1].block = {1, 1, 65};
     },
     "/kernels/1/block/2: expected 1 to 64 but got 65"},
    {"EmptyBlock",
     [](Manifest &m) {
       m.kernels[1].block = {0, 1, 1};
     },
     "/kernels/1/block/0: expected 1 to 1024 but got 0"},
    {"Shared", [](Manifest &m) { m.kernels[0].sharedBytes = 1 << 20; },
     "/kernels/0/shared_bytes"},
    {"NegativeShared", [](Manifest &m) { m.kernels[0].sharedBytes = -1; },
     "/kernels/0/shared_bytes"},
    {"NoGrid", [](Manifest &m) { m.programs[0].launches[0].grid = {}; },
     "/programs/0/launches/0/grid: expected 3 sizes"},
    {"LargeGrid",
     [](Manifest &m) {
       m.programs[0].launches[0].grid = {1, 65536, 1};
     },
     "/programs/0/launches/0/grid/1: expected 1 to 65535 but got 65536"},
    {"HugeGrid",
     [](Manifest &m) {
       m.programs[0].launches[0].grid = {INT64_MAX, INT64_MAX, INT64_MAX};
     },
     "/programs/0/launches/0/grid/0"},
    {"WorkIsTheGrid", [](Manifest &m) { m.programs[0].launches[0].work += 1; },
     "/programs/0/launches/0/work: expected as many as the grid has blocks"},
};

INSTANTIATE_TEST_SUITE_P(Rows, CudaRule, ::testing::ValuesIn(rows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
