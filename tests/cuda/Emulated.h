//===- Emulated.h - a GPU for tests, on the driver emulator ---------------===//
//
// Opens the device layer over the driver emulator, as a device of the real kind
// ("cuda"), so that what is tested is what runs on a GPU. Kernels are PTX whose
// twins are functions here. Every test ends with no error of the emulator: no
// race, no missing wait, no access out of bounds, nothing leaked.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_CUDA_EMULATED_H
#define TANDEM_TESTS_CUDA_EMULATED_H

#include "cuda/CudaDevice.h"
#include "cuda/emulator/Control.h"
#include "runtime/artifact/ArtifactWriter.h"

#include <functional>
#include <gtest/gtest.h>

namespace tandem::test {

/// The policies under which work is ordered; what does not depend on luck holds
/// under all of them.
inline const char *const policies[] = {"eager", "lazy", "others-first",
                                       "random:1", "random:2"};

class Emulated : public ::testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  /// Opens device 0 with the emulator's present settings.
  Result<std::shared_ptr<runtime::Backend>> tryOpen();
  void open();
  /// Closes it; nothing may be left on the device.
  void close();
  cuda::CudaDevice &gpu() { return static_cast<cuda::CudaDevice &>(*device); }

  runtime::Stream stream(int number) { return *device->side(number); }
  float *allocate(int64_t floats, runtime::Stream stream = nullptr);
  void upload(void *to, const std::vector<float> &values,
              runtime::Stream stream = nullptr);
  /// Waits for the stream.
  std::vector<float> download(const void *from, size_t count,
                              runtime::Stream stream = nullptr);
  /// Starts the log anew; `log` returns its lines.
  void startLog();
  std::string log();

  std::shared_ptr<runtime::Backend> device;
  /// What the emulator found wrong is expected, and was looked at.
  bool hasErrors = false;

private:
  /// What devices that were lost have left behind.
  size_t liveBefore = 0;
  std::vector<size_t> handlesBefore;
};

void expectOk(const Status &status);
void expectError(const Status &status, const std::string &part);
/// Returns count numbers from `first` on.
std::vector<float> range(size_t count, float first = 0);

/// The elements of every tensor of the test programs.
inline constexpr int64_t length = 64;

/// An artifact of small programs over `length` floats:
///   'evaluate': out = 2 x + 3 y, each product on a stream of its own
///   'forward':  pred = (x + 1) * 2 through scratch memory, then + constant 5;
///               count += 1 in place
/// `change` may break the manifest's kernels.
artifact::ArtifactReader
programs(const std::function<void(artifact::Manifest &)> &change = {},
         const std::function<void(artifact::ArtifactWriter &)> &sections = {});

} // namespace tandem::test

#endif
