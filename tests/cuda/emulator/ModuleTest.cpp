//===- ModuleTest.cpp - modules and the limits of launches ----------------===//
#include "EmulatorTest.h"

#include "cuda/BuiltinKernels.h"

#include <cstring>

using namespace tandem::test;
using namespace tandem::cuda;

namespace {
class Modules : public Emulator {
protected:
  /// Loads a module that is refused, and returns "NAME: log".
  std::string refused(const std::string &image) {
    CUmodule module = nullptr;
    char log[256] = "untouched";
    char information[16] = "untouched";
    CUjit_option options[] = {
        CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log)), information,
                      reinterpret_cast<void *>(sizeof(information))};
    const CUresult result =
        cuModuleLoadDataEx(&module, image.c_str(), 4, options, values);
    EXPECT_EQ(module, nullptr);
    EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
    EXPECT_STREQ(information, "");
    return nameOf(result) + ": " + log;
  }
};
} // namespace

TEST_F(Modules, Refused) {
  EXPECT_EQ(refused("hello"), "CUDA_ERROR_INVALID_IMAGE: expected an emulation "
                              "image or PTX");
  EXPECT_EQ(refused(".version 8.0\n.target sm_100\n"),
            "CUDA_ERROR_NO_BINARY_FOR_GPU: the code is for sm_100, the device "
            "is sm_90");
  EXPECT_EQ(refused(".version 8.0\n.target sm_80\n.visible .entry mine()\n"
                    ".visible .entry yours()\n"),
            "CUDA_ERROR_INVALID_PTX: the emulator does not run PTX, and has no "
            "twin of 'mine', 'yours'");
  // The code of a GPU: an ELF of machine 190.
  std::string cubin(64, '\0');
  std::memcpy(cubin.data(),
              "\x7f"
              "ELF\x02",
              5);
  cubin[18] = static_cast<char>(190);
  EXPECT_EQ(refused(cubin),
            "CUDA_ERROR_NO_BINARY_FOR_GPU: the emulator runs emulation images "
            "and no code of GPUs (ELF machine 190)");
  cubin[18] = 62; // an image that is none
  EXPECT_EQ(refused(cubin).substr(0, 26), "CUDA_ERROR_INVALID_IMAGE: ");
  CUmodule module = nullptr;
  EXPECT_CU_ERROR(cuModuleLoadData(&module, nullptr), INVALID_VALUE);
}

TEST_F(Modules, Functions) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, builtinKernels().c_str()));
  EXPECT_CU_ERROR(cuModuleGetFunction(&function, module, "none"), NOT_FOUND);
  EXPECT_CU_ERROR(
      cuModuleGetFunction(&function, reinterpret_cast<CUmodule>(this), "x"),
      INVALID_HANDLE);
  EXPECT_CU(cuModuleGetFunction(&function, module, "tandem_fill_b64"));
  int value = 0;
  EXPECT_CU(cuFuncGetAttribute(
      &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  EXPECT_EQ(value, 48 * 1024);
  EXPECT_CU_ERROR(cuFuncSetAttribute(
                      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      227 * 1024 + 1),
                  INVALID_VALUE);
  CUdeviceptr none = 0;
  size_t bytes = 0;
  EXPECT_CU_ERROR(cuModuleGetGlobal_v2(&none, &bytes, module, "x"), NOT_FOUND);
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_CU_ERROR(cuModuleUnload(module), INVALID_HANDLE);
  EXPECT_CU_ERROR(
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
      INVALID_HANDLE);
}

// A kernel that is queued runs though its module is unloaded.
TEST_F(Modules, UnloadedWithWorkQueued) {
  ASSERT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, builtinKernels().c_str()));
  EXPECT_CU(cuModuleGetFunction(&fill, module, "tandem_fill_b64"));
  CUdeviceptr x = array();
  FillParameters parameters{x, 0x4000000040000000, kElements / 2};
  void *pointers[] = {&parameters.to, &parameters.bits, &parameters.elements};
  EXPECT_CU(
      cuLaunchKernel(fill, 2, 1, 1, 256, 1, 1, 0, nullptr, pointers, nullptr));
  // Parameters are read at the call.
  parameters = {};
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_EQ(get(x), 2.f);
}

TEST_F(Modules, LimitsOfLaunches) {
  CUfunction function = increment;
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  void *parameters[] = {&y, &x};
  struct Shape {
    unsigned grid[3], block[3], shared;
  };
  const Shape bad[] = {
      {{0, 1, 1}, {1, 1, 1}, 0},          {{1, 1, 1}, {0, 1, 1}, 0},
      {{1, 1, 1}, {1025, 1, 1}, 0},       {{1, 1, 1}, {32, 33, 1}, 0},
      {{1, 1, 1}, {1, 1, 65}, 0},         {{1, 65536, 1}, {1, 1, 1}, 0},
      {{1, 1, 65536}, {1, 1, 1}, 0},      {{1, 1, 1}, {1, 1, 1}, 48 * 1024 + 1},
      {{0x80000000, 1, 1}, {1, 1, 1}, 0},
  };
  for (const auto &[grid, block, shared] : bad)
    EXPECT_CU_ERROR(cuLaunchKernel(function, grid[0], grid[1], grid[2],
                                   block[0], block[1], block[2], shared,
                                   nullptr, parameters, nullptr),
                    INVALID_VALUE);
  EXPECT_CU(cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 * 1024));
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 32, 32, 1, 200 * 1024, nullptr,
                           parameters, nullptr));
  EXPECT_CU_ERROR(
      cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      INVALID_VALUE);
  void *extra[] = {nullptr};
  EXPECT_CU_ERROR(
      cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra),
      NOT_SUPPORTED);
  EXPECT_EQ(get(y), 2.f);
}

TEST_F(Modules, Occupancy) {
  CUfunction function = increment;
  int blocks = 0, size = 0;
  auto at = [&](int threads, size_t shared) {
    EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function,
                                                          threads, shared));
    return blocks;
  };
  EXPECT_EQ(at(256, 0), 8);
  EXPECT_EQ(at(32, 0), 32);
  EXPECT_EQ(at(1000, 0), 2);
  EXPECT_EQ(at(128, 100 * 1024), 2);
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&blocks, &size, function, nullptr,
                                             0, 0));
  EXPECT_EQ(size, 1024);
  EXPECT_EQ(blocks, 2 * 132);
}

/// Launches one of the layer's own kernels on device memory.
class Builtin : public EveryPolicy {
protected:
  void SetUp() override {
    EveryPolicy::SetUp();
    ASSERT_CU(cuModuleLoadData(&module, builtinKernels().c_str()));
  }
  void TearDown() override {
    EXPECT_CU(cuModuleUnload(module));
    EveryPolicy::TearDown();
  }
  void run(const char *name, std::vector<void *> parameters) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, builtinBlock, 1, 1, 0, nullptr,
                             parameters.data(), nullptr));
  }
  /// Adds two numbers of a type, given and returned as bits.
  template <typename T> T add(const char *name, T x, T y) {
    CUdeviceptr at = array(3 * sizeof(T));
    const T both[] = {x, y};
    EXPECT_CU(cuMemcpyHtoD_v2(at, both, sizeof(both)));
    AddParameters p{at + 2 * sizeof(T), at, at + sizeof(T), 1};
    run(name, {&p.to, &p.x, &p.y, &p.elements});
    T sum = {};
    EXPECT_CU(cuMemcpyDtoH_v2(&sum, at + 2 * sizeof(T), sizeof(T)));
    return sum;
  }
  CUmodule module = nullptr;
};
TANDEM_EVERY_POLICY(Builtin);

TEST_P(Builtin, Sums) {
  EXPECT_EQ(add("tandem_add_f32", 1.5f, 2.25f), 3.75f);
  EXPECT_EQ(add("tandem_add_f64", 1e-17, 1.0), 1.0 + 1e-17);
  EXPECT_EQ(add<uint16_t>("tandem_add_f16", 0x3c00, 0x4000), 0x4200);
  // 1 + 2^-11 is half way: to the even one.
  EXPECT_EQ(add<uint16_t>("tandem_add_f16", 0x3c00, 0x1000), 0x3c00);
  EXPECT_EQ(add<uint16_t>("tandem_add_bf16", 0x3f80, 0x4000), 0x4040);
}

// A transposed copy of a 2 x 3 matrix.
TEST_P(Builtin, StridedCopy) {
  CUdeviceptr at = array(48);
  const float matrix[] = {0, 1, 2, 10, 11, 12};
  EXPECT_CU(cuMemcpyHtoD_v2(at, matrix, sizeof(matrix)));
  CopyParameters p;
  p.to = at + 24;
  p.from = at;
  p.elements = 6;
  p.layout.sizes[0] = 2;
  p.layout.sizes[1] = 3;
  p.layout.toStrides[0] = 4;
  p.layout.toStrides[1] = 8;
  p.layout.fromStrides[0] = 12;
  p.layout.fromStrides[1] = 4;
  run("tandem_copy_b32", {&p.to, &p.from, &p.elements, &p.layout});
  std::vector<float> result(6);
  EXPECT_CU(cuMemcpyDtoH_v2(result.data(), p.to, 24));
  EXPECT_EQ(result, (std::vector<float>{0, 10, 1, 11, 2, 12}));
  // Out of its memory: an error, and nothing else.
  p.elements = 1;
  p.to = at + 48;
  run("tandem_copy_b32", {&p.to, &p.from, &p.elements, &p.layout});
  expectOneError({"kernel 'tandem_copy_b32'", "writes 4 bytes"});
}
