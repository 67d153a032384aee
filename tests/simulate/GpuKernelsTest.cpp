//===- GpuKernelsTest.cpp - what kernels take on a GPU --------------------===//
#include "tests/support/Folder.h"
#include "tools/simulate/Estimate.h"
#include "tools/simulate/KernelSummary.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tandem::simulate {
namespace {

using artifact::DType;
using artifact::Kernel;
using artifact::Launch;
using artifact::Manifest;

TEST(KernelSummary, TypesAreThoseOfTheOp) {
  KernelSummary read = readSummary(
      "matmul 16x768xbf16 f32 8x0xi64 -> 16x2304xf16 transpose_rhs");
  EXPECT_EQ(read.op, "matmul");
  ASSERT_EQ(read.operands.size(), 3u);
  EXPECT_EQ(read.operands[0].shape, (std::vector<int64_t>{16, 768}));
  EXPECT_EQ(read.operands[0].bytes(), 16 * 768 * 2);
  EXPECT_TRUE(read.operands[1].shape.empty());
  EXPECT_EQ(read.operands[1].bytes(), 4);
  EXPECT_EQ(read.operands[2].bytes(), 0);
  ASSERT_EQ(read.results.size(), 1u);
  EXPECT_EQ(read.results[0].dtype, DType::F16);
}

// It is for people: whatever stands there, nothing is wrong with the file.
TEST(KernelSummary, AnyTextIsTaken) {
  for (const char *text :
       {"", " ", "->", "matmul", "matmul x", "matmul 3x -> x3",
        "a 99999999999x", "a 99999999999999999999999x2", "matmul -3x4 -> nan",
        "a 4xf32x4"})
    EXPECT_LE(readSummary(text).operands.size(), 1u) << text;
}

/// 1,000 multiprocessors of 1e9 flops in bf16 each, all rates as they are.
DeviceRow device() {
  DeviceRow row;
  row.name = "test";
  row.target = "cuda:sm_90";
  row.multiprocessors = 1000;
  row.narrow = 1e12;
  row.f32 = 1e11;
  row.memory = 1e12;
  return row;
}

/// A product by wgmma of so many blocks, each of 1e9 flops.
Kernel product(int64_t blocks) {
  Kernel kernel;
  kernel.symbol = "matmul_0";
  kernel.kind = "contraction";
  kernel.dtype = DType::BF16;
  kernel.flops = blocks * 1000000000;
  kernel.block = {384, 1, 1};
  kernel.tensorMaps.resize(2);
  kernel.summary = "matmul 1024x1024xbf16 1024x1024xbf16 -> 1024x1024xbf16";
  return kernel;
}

Launch launchOf(int64_t blocks) {
  Launch launch;
  launch.kernel = 0;
  launch.grid = {blocks, 1, 1};
  return launch;
}

TEST(GpuKernels, ABlockMoreThanProcessorsTakesAWaveMore) {
  Gpu gpu(device());
  KernelTime full = gpu.timeOf(product(1000), launchOf(1000)),
             more = gpu.timeOf(product(1001), launchOf(1001));
  EXPECT_EQ(full.what, "products by wgmma");
  EXPECT_NEAR(full.parts.products, 1 / 0.97, 1e-9);
  EXPECT_NEAR(full.parts.waves, 0, 1e-9);
  EXPECT_NEAR(more.parts.products, 1.001 / 0.97, 1e-9);
  EXPECT_NEAR(more.parts.waves, 0.999 / 0.97, 1e-9);
  EXPECT_DOUBLE_EQ(full.least, 1);
}

TEST(GpuKernels, WhatIsStoredBehindAProductTakesTimeInEachWave) {
  Gpu gpu(device());
  Kernel plain = product(2000), fused = product(2000);
  plain.bytes = 4 << 20;                       // the factors
  fused.bytes = plain.bytes + 2000ll * 30'000; // 1 us of a block's stores
  double without = gpu.timeOf(plain, launchOf(2000)).parts.around,
         with = gpu.timeOf(fused, launchOf(2000)).parts.around;
  EXPECT_NEAR(with - without, 2e-6, 1e-12);
}

TEST(GpuKernels, RowsThatAreNoPiecesAreGathered) {
  Gpu gpu(device());
  Kernel kernel = product(1000);
  kernel.tensorMaps.clear();
  kernel.block = {128, 1, 1};
  kernel.summary = "matmul 1024x1024xbf16 1024x1024xbf16 -> 1024x1024";
  double whole = gpu.timeOf(kernel, launchOf(1000)).parts.products;
  kernel.summary = "matmul 1024x1023xbf16 1024x1023xbf16 -> 1024x1024";
  KernelTime gathered = gpu.timeOf(kernel, launchOf(1000));
  EXPECT_EQ(gathered.what, "products by mma.sync, gathered");
  EXPECT_GT(gathered.parts.products, 2 * whole);
  // On sm_80 it is the native instruction.
  DeviceRow ampere = device();
  ampere.target = "cuda:sm_80";
  EXPECT_LT(Gpu(ampere).timeOf(kernel, launchOf(1000)).parts.products,
            gathered.parts.products);
}

// ptxas multiplies f16 on sm_90 where it multiplies f8 on sm_89.
TEST(GpuKernels, BytesHaveARateOfTheirOwn) {
  Kernel kernel = product(1000);
  kernel.tensorMaps.clear();
  kernel.block = {128, 1, 1};
  kernel.dtype = DType::BF16;
  auto secondsOn = [&](const char *target) {
    DeviceRow row = device();
    row.target = target;
    return Gpu(row).timeOf(kernel, launchOf(1000)).parts.products;
  };
  double half = secondsOn("cuda:sm_89"), onHopper = secondsOn("cuda:sm_90");
  kernel.summary = "matmul 1024x1024xf8E4M3FN 1024x1024xf8E4M3FN -> 1024x1024";
  for (DType type : {DType::F8E4M3FN, DType::F8E5M2}) {
    kernel.dtype = type;
    EXPECT_NEAR(secondsOn("cuda:sm_89"), half / 2, 1e-9 * half);
    EXPECT_GT(secondsOn("cuda:sm_90"), onHopper);
  }
  for (DType type : {DType::I8, DType::U8}) {
    kernel.dtype = type;
    EXPECT_NEAR(secondsOn("cuda:sm_90"), onHopper / 2, 1e-9 * onHopper);
  }
  Gpu gpu(device());
  KernelTime time = gpu.timeOf(kernel, launchOf(1000));
  EXPECT_EQ(time.what, "8-bit products by mma.sync");
  EXPECT_DOUBLE_EQ(time.least, 0.5);
  // By warpgroups bytes have twice bf16's rate, of which f8 leave a tenth to
  // the sums in f32.
  Kernel groups = product(1000);
  groups.dtype = DType::BF16;
  double halves = gpu.timeOf(groups, launchOf(1000)).parts.products;
  groups.dtype = DType::I8;
  time = gpu.timeOf(groups, launchOf(1000));
  EXPECT_EQ(time.what, "8-bit products by wgmma");
  EXPECT_NEAR(time.parts.products, halves / 2, 1e-9 * halves);
  groups.dtype = DType::F8E5M2;
  EXPECT_NEAR(gpu.timeOf(groups, launchOf(1000)).parts.products,
              halves / 2 / 0.9, 1e-9 * halves);
  // Rows that are no pieces of 16 bytes.
  kernel.summary = "matmul 1024x1032xu8 1024x1032xu8 -> 1024x1024";
  EXPECT_EQ(gpu.timeOf(kernel, launchOf(1000)).what,
            "8-bit products by mma.sync, gathered");
}

/// A forward of heads of 64 in tiles of 128 x 128.
Kernel attention(int64_t batches, bool byWarpgroups) {
  Kernel kernel;
  kernel.symbol = "attention_forward_0";
  kernel.kind = "contraction";
  kernel.dtype = DType::BF16;
  kernel.flops = batches * 4 * 1024 * 1024 * 64;
  std::string one = " " + std::to_string(batches) + "x1024x64xbf16";
  kernel.summary = "attention_forward" + one + one + one + " ->" + one;
  kernel.block = {byWarpgroups ? 384 : 128, 1, 1};
  if (byWarpgroups) {
    kernel.tensorMaps.resize(3);
    for (artifact::TensorMap &map : kernel.tensorMaps)
      map.box = {64, 128, 1};
  }
  return kernel;
}

TEST(GpuKernels, SoftmaxOfWarpgroupsIsHiddenInPart) {
  DeviceRow row = device();
  row.achievedAttention = 0.5;
  Gpu gpu(row);
  KernelTime warps = gpu.timeOf(attention(1000, false), launchOf(8000)),
             groups = gpu.timeOf(attention(1000, true), launchOf(8000));
  EXPECT_EQ(warps.what, "attention");
  EXPECT_EQ(groups.what, "attention by wgmma");
  double products = 1000. * 4 * 1024 * 1024 * 64 / (1e12 * 0.97),
         softmax = 1000. * 1024 * 1024 * 13 / (1e11 / 2);
  EXPECT_NEAR(groups.parts.products, products, 1e-6);
  // The longer one, and half of the other.
  ASSERT_GT(products, softmax);
  EXPECT_NEAR(groups.parts.elements, 0.5 * softmax, 1e-6);
  // A block's first rows, its first softmax, half of which is hidden in other
  // steps, and its results of 16 KiB.
  EXPECT_NEAR(groups.parts.around,
              8 * (1.5e-6 + 0.5 * softmax / 64 + 16384 / 30e9) + 1.5e-6, 1e-9);
  EXPECT_NEAR(warps.parts.products, products * 0.97 / 0.3, 1e-6);
}

TEST(GpuKernels, MaskedScoresOfATileTakeTime) {
  Gpu gpu(device());
  Kernel causal = attention(1000, true);
  causal.flops /= 2;
  causal.summary += " causal";
  KernelTime whole = gpu.timeOf(attention(1000, true), launchOf(8000)),
             half = gpu.timeOf(causal, launchOf(8000));
  // Of 8 x 8 tiles 36.
  EXPECT_NEAR(half.parts.products, whole.parts.products * 36 / 64, 1e-6);
}

TEST(GpuKernels, FewThreadsLeaveMemoryIdle) {
  Gpu gpu(device());
  Kernel kernel;
  kernel.kind = "reduction";
  kernel.bytes = 1000000;
  kernel.block = {256, 1, 1};
  KernelTime few = gpu.timeOf(kernel, launchOf(8)),
             many = gpu.timeOf(kernel, launchOf(8000));
  EXPECT_EQ(few.what, "reduction");
  EXPECT_DOUBLE_EQ(few.parts.memory, 1e-6);
  // 32 bytes of each thread in 700 ns.
  EXPECT_NEAR(few.parts.waves, 1e-6 * (1e12 * 700e-9 / 32 / (8 * 256) - 1),
              1e-12);
  EXPECT_EQ(many.parts.waves, 0);
  EXPECT_DOUBLE_EQ(many.least, 1e-6);
}

Manifest manifest() {
  Manifest made;
  made.kernels = {product(1000), product(2000)};
  made.kernels[1].symbol = "matmul_1";
  artifact::Program program;
  program.name = "step";
  program.launches = {launchOf(1000), launchOf(2000), launchOf(1000)};
  program.launches[1].kernel = 1;
  made.programs = {program};
  return made;
}

class MeasuredFile {
public:
  explicit MeasuredFile(const std::string &text)
      : path(folder / "measured.json") {
    std::ofstream(path) << text;
  }

private:
  test::Folder folder;

public:
  const std::string path;
};

TEST(Estimate, SumsAreThoseOfTheLaunches) {
  auto programs = estimate(manifest(), Gpu(device()));
  ASSERT_EQ(programs.size(), 1u);
  ASSERT_EQ(programs[0].kinds.size(), 1u);
  EXPECT_EQ(programs[0].all.launches, 3);
  EXPECT_EQ(programs[0].all.flops, 4e12);
  double sum = 0;
  for (auto [kernel, seconds] : programs[0].launches)
    sum += seconds;
  EXPECT_NEAR(programs[0].all.parts.seconds(), sum, 1e-12);
}

TEST(Estimate, AMeasurementCorrectsItsKind) {
  Gpu gpu(device());
  Manifest known = manifest();
  double once = gpu.timeOf(known.kernels[0], launchOf(1000)).parts.seconds();
  MeasuredFile file(
      R"({"device": "test", "kernels": [{"kernel": "matmul_0", "ms": )" +
      std::to_string(2e3 * once) + "}]}");
  auto kinds = readMeasuredKinds(file.path, known, gpu);
  ASSERT_TRUE(kinds.ok()) << kinds.status().message();
  ASSERT_EQ(kinds->size(), 1u);
  EXPECT_NEAR(kinds->at("products by wgmma"), 2, 1e-6);
  EXPECT_NEAR(estimate(known, gpu, *kinds)[0].all.parts.seconds(),
              2 * estimate(known, gpu)[0].all.parts.seconds(), 1e-5);
}

TEST(Estimate, WrongMeasurementsAreRefused) {
  Gpu gpu(device());
  Manifest known = manifest();
  auto errorOf = [&](const std::string &text) {
    auto kinds = readMeasuredKinds(MeasuredFile(text).path, known, gpu);
    return kinds ? std::string("none") : kinds.status().message();
  };
  auto expect = [&](const std::string &text, const char *part) {
    EXPECT_NE(errorOf(text).find(part), std::string::npos) << errorOf(text);
  };
  expect("[]", "expected an object");
  expect("{", "expected an object");
  expect("{}", "expected a list 'kernels'");
  expect(R"({"devise": "a100", "kernels": [1]})", "unknown field 'devise'");
  expect(R"({"kernels": []})", "expected a list 'kernels'");
  expect(R"({"device": 1, "kernels": [1]})", "'device' to be a text");
  expect(R"({"device": "a100", "kernels": [1]})", "measured on 'a100'");
  expect(R"({"kernels": [1]})", "but got 1");
  expect(R"({"kernels": [{"kernel": "matmul_0", "ms": -1}]})", "at least");
  expect(R"({"kernels": [{"kernel": "matmul_0", "ms": 1e9}]})", "at most");
  expect(R"({"kernels": [{"kernel": "other", "ms": 1}]})", "no kernel 'other'");
}

} // namespace
} // namespace tandem::simulate
