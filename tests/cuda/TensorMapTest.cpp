//===- TensorMapTest.cpp - parameters that are tensor maps ----------------===//
//
// 'thrice' of the test programs with a map of what it reads, of which it takes
// the address. The emulator's driver refuses what the driver refuses.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/TensorMap.h"
#include "cuda/Driver.h"
#include "tests/cuda/ProgramTest.h"

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using runtime::Stream;

namespace {

const artifact::TensorMap vectorMap{0, 16, "f32", {length - 4}, {}, {32}, 128};

/// From the map's place on 3 y, before it 3 times the first of those.
void mappedThrice(void **p, const TandemEmulatorLaunch *launch) {
  const auto &map = *static_cast<const emulator::TensorMap *>(p[2]);
  float *to = *static_cast<float **>(p[1]);
  bool isMap = reinterpret_cast<uintptr_t>(&map) % 64 == 0 &&
               map.magic == emulator::TensorMap::kMagic && map.rank == 1 &&
               map.elementType == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 &&
               map.sizes[0] == length - 4 && map.boxes[0] == 32 &&
               map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
               map.elementStrides[0] == 1;
  auto *from = reinterpret_cast<const float *>(map.address);
  if (!launch->access(launch, to, length * 4, 1) || !isMap ||
      !launch->access(launch, from, (length - 4) * 4, 0))
    return;
  for (int64_t i = 0; i < length; ++i)
    to[i] = 3 * from[i < 4 ? 0 : i - 4];
}

class TensorMaps : public CudaCode {
protected:
  void SetUp() override {
    CudaCode::SetUp();
    const size_t bytes[] = {8, 8, sizeof(CUtensorMap)};
    tandemEmulatorRegisterKernel("thrice", bytes, 3, mappedThrice);
    load(programs([](artifact::Manifest &manifest) {
      manifest.kernels[1].tensorMaps = {vectorMap};
    }));
  }

  std::vector<float> expected(float firstY = 100) {
    std::vector<float> values = evaluated(0, firstY);
    for (int i = 0; i < 4; ++i)
      values[i] += 3 * (4 - static_cast<float>(i));
    return values;
  }
};

TEST_F(TensorMaps, FollowTheBuffers) {
  float *other = allocate(length, home);
  upload(other, range(length, 300), home);
  for (const char *policy : policies)
    for (bool useGraph : {false, true}) {
      SCOPED_TRACE(std::string(policy) + (useGraph ? ", graph" : ", streams"));
      tandemEmulatorSetPolicy(policy);
      for (int round = 0; round < 2; ++round) {
        run(evaluate, home, useGraph);
        EXPECT_EQ(download(out, length, home), expected());
        std::swap(y, other);
        run(evaluate, home, useGraph);
        EXPECT_EQ(download(out, length, home), expected(300));
        std::swap(y, other);
      }
    }
  device->release(other, home, {});
}

TEST_F(TensorMaps, AreEncodedOnlyForNewAddresses) {
  float *other = allocate(length, home);
  upload(other, range(length, 300), home);
  auto encoded = [] { return tandemEmulatorGetCounts().tensorMaps; };
  for (bool useGraph : {false, true}) {
    run(evaluate, home, useGraph);
    uint64_t before = encoded();
    uint64_t graphs = tandemEmulatorGetCounts().graphInstantiations;
    run(evaluate, home, useGraph);
    std::swap(x, other); // the map is not of this one
    run(evaluate, home, useGraph);
    EXPECT_EQ(encoded(), before);
    std::swap(y, other);
    run(evaluate, home, useGraph);
    EXPECT_EQ(encoded(), before + 1);
    EXPECT_EQ(tandemEmulatorGetCounts().graphInstantiations, graphs);
    expectOk(device->synchronize(home));
  }
  device->release(other, home, {});
}

/// A launch in flight keeps the map that it was launched with.
TEST_F(TensorMaps, AreCopiedAtTheLaunch) {
  float *other = allocate(length, home), *out2 = allocate(length, home);
  upload(other, range(length, 300), home);
  for (bool useGraph : {false, true}) {
    tandemEmulatorSetPolicy("lazy");
    run(evaluate, home, useGraph);
    std::swap(y, other);
    std::swap(out, out2);
    run(evaluate, home, useGraph);
    EXPECT_EQ(download(out, length, home), expected(300));
    std::swap(y, other);
    std::swap(out, out2);
    EXPECT_EQ(download(out, length, home), expected());
  }
  device->release(other, home, {});
  device->release(out2, home, {});
}

TEST_F(TensorMaps, AnAddressThatCopiesCannotTake) {
  run(evaluate, home, false);
  ++y;
  expectError(tryRun(evaluate, home, false),
              "program 'evaluate': cuTensorMapEncodeTiled failed: "
              "CUDA_ERROR_INVALID_VALUE");
  --y;
  run(evaluate, home, false);
  EXPECT_EQ(download(out, length, home), expected());
}

/// What cuTensorMapEncodeTiled is called with; a good call but for one thing.
struct Call {
  CUtensorMap map[2];
  CUtensorMap *to = map;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  unsigned rank = 3;
  uintptr_t address = 4096;
  uint64_t sizes[5] = {64, 32, 3}, strides[4] = {128, 4096};
  unsigned box[5] = {64, 32, 1}, steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;

  CUresult make(const cuda::Driver &driver) {
    return driver->tensorMapEncodeTiled(
        to, type, rank, reinterpret_cast<void *>(address), sizes, strides, box,
        steps, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

TEST_F(Emulated, TensorMapsAreChecked) {
  open();
  Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
  ASSERT_TRUE(driver) << driver.status().message();
  EXPECT_EQ(Call().make(*driver), CUDA_SUCCESS);
  struct Row {
    const char *name;
    void (*change)(Call &);
  };
  const Row rows[] = {
      {"the map's alignment",
       [](Call &c) {
         c.to = reinterpret_cast<CUtensorMap *>(
             reinterpret_cast<char *>(c.map) + 32);
       }},
      {"no map", [](Call &c) { c.to = nullptr; }},
      {"no rank", [](Call &c) { c.rank = 0; }},
      {"rank", [](Call &c) { c.rank = 6; }},
      {"no address", [](Call &c) { c.address = 0; }},
      {"address", [](Call &c) { c.address += 8; }},
      {"size", [](Call &c) { c.sizes[1] = 0; }},
      {"large size", [](Call &c) { c.sizes[1] = (uint64_t(1) << 32) + 1; }},
      {"stride", [](Call &c) { c.strides[1] += 8; }},
      {"large stride", [](Call &c) { c.strides[1] = uint64_t(1) << 40; }},
      {"box", [](Call &c) { c.box[1] = 257; }},
      {"empty box", [](Call &c) { c.box[2] = 0; }},
      {"row of a box", [](Call &c) { c.box[0] = 60; }},
      {"span of the swizzle",
       [](Call &c) { c.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }},
      {"element stride", [](Call &c) { c.steps[0] = 9; }},
      {"no element stride", [](Call &c) { c.steps[0] = 0; }},
      {"type", [](Call &c) { c.type = static_cast<CUtensorMapDataType>(77); }},
  };
  for (const Row &row : rows) {
    Call call;
    row.change(call);
    EXPECT_EQ(call.make(*driver), CUDA_ERROR_INVALID_VALUE) << row.name;
  }
}

} // namespace
