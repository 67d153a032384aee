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

Manifest variant(const char *arch, std::vector<std::string> features) {
  Manifest manifest = regression();
  manifest.target = {"cpu", arch, std::move(features)};
  return manifest;
}

ArtifactWriter writerForVariants(const std::vector<Manifest> &manifests) {
  ArtifactWriter whole = writerFor(manifests[0]);
  for (size_t i = 1; i < manifests.size(); ++i)
    whole.join(writerFor(manifests[i]));
  return whole;
}

TEST(Targets, VariantsAreInOneFile) {
  ArtifactWriter writer =
      writerForVariants({variant("old", {}), variant("middle", {})});
  ArtifactWriter device;
  device.setManifest(forDevice(regression()));
  device.addCode("ptx", std::string(".version 8.0\n") + '\0');
  device.addConstant(std::vector<std::byte>(128));
  writer.join(std::move(device));
  // Other constants than the first has.
  ArtifactWriter last;
  last.setManifest(variant("new", {}));
  last.setObject("new code");
  last.addConstant(std::vector<std::byte>(128, std::byte(7)));
  writer.join(std::move(last));
  std::string bytes = *writer.bytes();
  Result<ArtifactReader> reader = readBytes(bytes);
  ASSERT_TRUE(reader) << reader.status().message();
  std::vector<std::string> names;
  for (const ArtifactReader::Section &section : reader->sections())
    names.push_back(section.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "manifest", "object.cpu", "constants", "manifest.cpu.2",
                       "object.cpu.2", "manifest.cuda", "ptx", "constants.cuda",
                       "manifest.cpu.3", "object.cpu.3", "constants.cpu.3"}));
  ASSERT_EQ(reader->manifests().size(), 4u);
  for (size_t target : {0, 1, 3}) {
    reader->choose(target);
    EXPECT_EQ(reader->constants()[2], std::byte(target == 3 ? 7 : 0x80));
    EXPECT_EQ(reader->code("object.cpu").size(),
              target == 3 ? 8 : kernelObject().size());
  }
  ASSERT_TRUE(reader->choose("cpu"));
  EXPECT_EQ(reader->manifest().target.arch, "old");
}

TEST(Targets, TooManyVariantsAreRefused) {
  std::vector<Manifest> many(10, variant("same", {}));
  EXPECT_EQ(writerForVariants(many).bytes().status().message(),
            "expected at most 9 targets of the kind 'cpu'");
  many.pop_back();
  EXPECT_TRUE(writerForVariants(many).bytes());
}

#ifdef __x86_64__
TEST(Targets, TheBestVariantThatRunsHereIsChosen) {
  using namespace runtime;
  auto load = [](const std::vector<Manifest> &manifests,
                 const std::string &wanted) {
    Options options;
    options.cpuVariant = wanted;
    return Model::load(*readBytes(*writerForVariants(manifests).bytes()),
                       options);
  };
  std::vector<Manifest> all = {
      variant("first", {"sse2"}), variant("second", {"sse2", "cx8"}),
      variant("third", {"sse2", "cx8", "time-travel"})};
  auto arch = [&](const std::string &wanted) {
    auto model = load(all, wanted);
    return model ? model->manifest().target.arch : model.status().message();
  };
  EXPECT_EQ(arch(""), "second");
  EXPECT_EQ(arch("first"), "first");
  EXPECT_EQ(arch("third"), "the artifact's code is for 'third' and this "
                           "processor lacks 'time-travel'");
  EXPECT_EQ(arch("fourth"), "the artifact has no code for 'fourth'; it has the "
                            "variants 'first', 'second', 'third'");
  all = {variant("far", {"time-travel"}), variant("farther", {"levitation"})};
  EXPECT_EQ(arch(""), "the artifact's code is for 'far' and this processor "
                      "lacks 'time-travel'; other code is for 'farther' and "
                      "this processor lacks 'levitation'");
  EXPECT_EQ(load(all, "").status().code(), Code::NoDevice);
  EXPECT_EQ(load(all, "fourth").status().code(), Code::Usage);
}
#endif

/// Code for another kind of machine says so, not what all it lacks.
TEST(Targets, OfAnotherKindOfMachine) {
  using namespace runtime;
#if defined(__aarch64__)
  const char *foreign = "64bit", *own = "aarch64", *other = "x86-64";
#else
  const char *foreign = "neon", *own = "x86-64", *other = "aarch64";
#endif
  auto model = Model::load(
      *readBytes(
          *writerForVariants({variant("far", {"crc", foreign})}).bytes()),
      Options());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.status().code(), Code::NoDevice);
  EXPECT_EQ(model.status().message(),
            std::string("the artifact's code is for 'far' and needs ") + other +
                ", but this processor is " + own);
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
  other.graph = std::string(64, 'a');
  EXPECT_EQ(checkSameModel(one, other).message(),
            "the manifests for 'cpu' and 'cuda' differ: param 'w' is not the "
            "same in both; state 'rate' is in the manifest for 'cpu' alone; "
            "output 'loss' is not the same in both; state 'speed' is in the "
            "manifest for 'cuda' alone; expected one loss, but got 'loss' and "
            "''; expected one optimizer, but got 'sgd' and 'adam'; expected "
            "one graph, but got two digests");
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

/// Of 3 x 8 floats in the first buffer of "predict", which has 96 bytes.
const TensorMap map{0, 0, "f32", {8, 3}, {32}, {8, 2}, 32};

Manifest withMap() {
  Manifest m = forDevice(regression());
  m.kernels[0].tensorMaps = {map};
  return m;
}

TEST(Targets, TensorMapsAreKept) {
  Manifest m = withMap();
  m.kernels[0].tensorMaps.push_back({0, 16, "bf16", {8}, {}, {8}, 0});
  ASSERT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  Result<std::string> text = toJson(m);
  ASSERT_TRUE(text);
  Result<Manifest> again = fromJson(*text);
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(*again, m);
  // None: no field, as before there were any.
  EXPECT_EQ(toJson(forDevice(regression()))->find("tensor_maps"),
            std::string::npos);
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

class MapRule : public ::testing::TestWithParam<Row> {};

TEST_P(MapRule, IsChecked) {
  Manifest m = withMap();
  ASSERT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  GetParam().change(m);
  Status status = validate(m, 128);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(std::string("/kernels/0/tensor_maps") +
                                  GetParam().message),
            std::string::npos)
      << status.message();
}

TensorMap &first(Manifest &m) { return m.kernels[0].tensorMaps[0]; }

const Row mapRows[] = {
    {"OfCpu", [](Manifest &m) { m.target.kind = "cpu"; },
     ": expected at most 0 tensor maps but got 1"},
    {"Many", [](Manifest &m) { m.kernels[0].tensorMaps.assign(17, map); },
     ": expected at most 16 tensor maps but got 17"},
    {"Element", [](Manifest &m) { first(m).element = "f8"; },
     "/0/element: expected 'i8', 'f16', 'bf16', 'f32' or 'tf32' but got 'f8'"},
    {"Buffer", [](Manifest &m) { first(m).buffer = -1; },
     "/0/buffer: expected 0 to 2147483648 but got -1"},
    {"Offset", [](Manifest &m) { first(m).offset = 8; },
     "/0/offset: expected 0 to 281474976710656 in multiples of 16 but got 8"},
    {"NoSizes",
     [](Manifest &m) { first(m).sizes = first(m).strides = first(m).box = {}; },
     "/0/sizes: expected 1 to 5 dimensions but got 0"},
    {"Rank", [](Manifest &m) { first(m).sizes.assign(6, 1); },
     "/0/sizes: expected 1 to 5 dimensions but got 6"},
    {"Size", [](Manifest &m) { first(m).sizes[1] = 0; },
     "/0/sizes/1: expected 1 to 4294967295 but got 0"},
    {"Strides", [](Manifest &m) { first(m).strides = {}; },
     "/0/strides: expected one for each dimension but the first"},
    {"Stride", [](Manifest &m) { first(m).strides[0] = 24; },
     "/0/strides/0: expected 16 to 1099511627775 in multiples of 16 but got "
     "24"},
    {"NegativeStride", [](Manifest &m) { first(m).strides[0] = -32; },
     "/0/strides/0: expected 16 to 1099511627775 in multiples of 16 but got "
     "-32"},
    {"BoxRank", [](Manifest &m) { first(m).box = {8}; },
     "/0/box: expected one size for each dimension"},
    {"Box", [](Manifest &m) { first(m).box[1] = 257; },
     "/0/box/1: expected 1 to 256 but got 257"},
    {"Row", [](Manifest &m) { first(m).box[0] = 7; },
     "/0/box/0: expected a multiple of 16 bytes of at most 32 but got 28"},
    {"Swizzle", [](Manifest &m) { first(m).swizzle = 48; },
     "/0/swizzle: expected 0, 32, 64 or 128 but got 48"},
    {"WideRow", [](Manifest &m) { first(m).box[0] = 16; },
     "/0/box/0: expected a multiple of 16 bytes of at most 32 but got 64"},
};

INSTANTIATE_TEST_SUITE_P(Rows, MapRule, ::testing::ValuesIn(mapRows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// What a launch must have for the maps of its kernel.
TEST(Targets, MapsAreInTheirBuffers) {
  auto problemOf = [](void (*change)(TensorMap &)) {
    Manifest m = withMap();
    change(first(m));
    return validate(m, 128).message();
  };
  EXPECT_NE(problemOf([](TensorMap &map) { map.buffer = 4; })
                .find("/programs/0/launches/0/buffers: expected a buffer 4, of "
                      "which 'predict' has a tensor map, but got 4 buffers"),
            std::string::npos);
  const char *outside = "/programs/0/launches/0/buffers/0: expected a buffer "
                        "that holds the tensor of a map of 'predict' but got "
                        "96 bytes";
  for (auto change : {+[](TensorMap &map) { map.offset = 16; },
                      +[](TensorMap &map) { map.sizes[1] = 4; },
                      +[](TensorMap &map) { map.strides[0] = 48; },
                      +[](TensorMap &map) { map.sizes[0] = 4294967295; },
                      // The largest of the fields' ranges.
                      +[](TensorMap &map) { map.offset = int64_t(1) << 48; },
                      +[](TensorMap &map) {
                        map.sizes = {4294967295, 4294967295};
                        map.strides = {(int64_t(1) << 40) - 16};
                      }})
    EXPECT_NE(problemOf(change).find(outside), std::string::npos)
        << problemOf(change);
  // Beyond them nothing is computed.
  EXPECT_EQ(problemOf([](TensorMap &map) {
              map.offset = INT64_MAX;
              map.sizes = {INT64_MAX, INT64_MAX};
            }).find("/programs"),
            std::string::npos);
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

TEST(Targets, WhatIsOnTheHostIsRead) {
  Manifest m = offloadedRegression();
  m.stepMemory.emplace().host = 64;
  EXPECT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  std::string text = *toJson(m);
  EXPECT_NE(text.find(R"({"copy":true,"buffers":[9,7],"reads":[0],)"
                      R"("writes":[1]})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"in":"host","offset":0,"bytes":32})"),
            std::string::npos);
  Result<Manifest> again = fromJson(text);
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(*again, m);
  // A launch without a kernel says what it is.
  text.replace(text.find(R"("copy":true)"), 11, R"("kernel":-1)");
  EXPECT_NE(fromJson(text).status().message().find(
                "/programs/1/launches/4: expected the field 'work' but got "
                "none"),
            std::string::npos)
      << fromJson(text).status().message();
}

/// Rules of what is in the host's memory.
class HostRule : public ::testing::TestWithParam<Row> {};

TEST_P(HostRule, IsChecked) {
  Manifest m = offloadedRegression();
  GetParam().change(m);
  std::string message = validate(m, 128).message();
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

const Row hostRows[] = {
    {"OfCpu",
     [](Manifest &m) {
       m.target.kind = "cpu";
       for (Kernel &kernel : m.kernels)
         kernel.block = {};
       for (Program &program : m.programs)
         for (Launch &launch : program.launches)
           launch.grid = {};
     },
     "/programs/4/host_bytes: expected none for the target 'cpu'"},
    {"SavedAlone", [](Manifest &m) { m.programs[1].results[1].onHost = true; },
     "/programs/1/results/1/host: expected it only on a device's saved value"},
    {"NotInAnOutput",
     [](Manifest &m) {
       m.programs[1].results[2].alias = Alias{"", "pred", {}, {}};
     },
     "/programs/1/results/2/host: expected it only on a device's saved value"},
    {"BothPrograms",
     [](Manifest &m) { m.programs[2].arguments[1].onHost = false; },
     "/programs/2/arguments/1: expected 'r' to be in the host's memory as in "
     "'forward'"},
    {"NoKernel", [](Manifest &m) { m.programs[2].launches[1].buffers[1] = 1; },
     "/programs/2/launches/1/buffers/1: expected no host memory in a kernel's "
     "launch"},
    {"Bounds", [](Manifest &m) { m.programs[4].hostBytes = 0; },
     "/programs/4/buffers/12/bytes: expected 0 to 0 but got 32"},
    {"OverTheBus",
     [](Manifest &m) { m.programs[4].launches[3].buffers[1] = 13; },
     "/programs/4/launches/3/buffers: expected a copy to lead from the device "
     "to the host, or back"},
    {"OneSize", [](Manifest &m) { m.programs[4].buffers[12].bytes = 16; },
     "/programs/4/launches/3/buffers: expected buffers of one size but got 32 "
     "and 16 bytes"},
    {"OneWay",
     [](Manifest &m) {
       m.programs[4].launches[3].reads = {0, 1};
     },
     "/programs/4/launches/3: expected a copy to read its first buffer"},
    {"NotDonated",
     [](Manifest &m) {
       m.programs[2].launches[0].buffers = {5, 1};
     },
     "/programs/2/launches/0/buffers/1: expected an update in place of 'r'"},
};

INSTANTIATE_TEST_SUITE_P(Rows, HostRule, ::testing::ValuesIn(hostRows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

INSTANTIATE_TEST_SUITE_P(Rows, CudaRule, ::testing::ValuesIn(rows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
