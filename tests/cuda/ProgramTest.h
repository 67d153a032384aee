//===- ProgramTest.h - runs of small programs -----------------------------===//
//
// A fixture with the programs of Emulated.h loaded, and their buffers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_CUDA_PROGRAMTEST_H
#define TANDEM_TESTS_CUDA_PROGRAMTEST_H

#include "tests/cuda/Emulated.h"

namespace tandem::test {

inline constexpr size_t evaluate = 0, forward = 1;

inline std::vector<runtime::Action> all(size_t launches) {
  return std::vector<runtime::Action>(launches, runtime::runKernel);
}

class CudaCode : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    open();
  }
  void TearDown() override {
    unload();
    Emulated::TearDown();
  }

  void load(const artifact::ArtifactReader &reader = programs()) {
    auto loaded = device->load(reader);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    code = std::move(*loaded);
    home = stream(6);
    x = allocate(length, home);
    y = allocate(length, home);
    out = allocate(length, home);
    count = allocate(length, home);
    arena = allocate(2 * length, home);
    upload(x, range(length), home);
    upload(y, range(length, 100), home);
    upload(count, std::vector<float>(length, 0), home);
    upload(out, std::vector<float>(length, -1), home);
    expectOk(device->synchronize(home));
  }

  void unload() {
    code.reset();
    for (float *data : {x, y, out, count, arena})
      if (data)
        device->release(data, home, {});
    x = y = out = count = arena = nullptr;
  }

  Status tryRun(size_t program, runtime::Stream stream, bool useGraph,
                std::vector<runtime::Action> actions = {}) {
    std::vector<void *> buffers = {x, y, out, arena, arena + length};
    if (program == forward)
      buffers = {x, count, out, arena, arena + length, nullptr};
    if (actions.empty())
      actions = all(program == evaluate ? 3 : 4);
    return code->run({program, buffers, actions, stream, useGraph});
  }
  void run(size_t program, runtime::Stream stream, bool useGraph,
           std::vector<runtime::Action> actions = {}) {
    expectOk(tryRun(program, stream, useGraph, std::move(actions)));
  }

  std::unique_ptr<runtime::DeviceCode> code;
  runtime::Stream home = nullptr;
  float *x = nullptr, *y = nullptr, *out = nullptr, *count = nullptr,
        *arena = nullptr;
};

/// 2 x + 3 y of the ranges that `load` writes.
inline std::vector<float> evaluated(float x = 0, float y = 100) {
  std::vector<float> values(length);
  for (int64_t i = 0; i < length; ++i)
    values[i] = 2 * (x + float(i)) + 3 * (y + float(i));
  return values;
}
inline std::vector<float> forwarded(float x = 0) {
  std::vector<float> values(length);
  for (int64_t i = 0; i < length; ++i)
    values[i] = 2 * (x + float(i) + 1) + 5;
  return values;
}

} // namespace tandem::test

#endif
