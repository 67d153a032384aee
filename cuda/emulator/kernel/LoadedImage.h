//===- LoadedImage.h - what belongs to a loaded image ---------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_LOADEDIMAGE_H
#define TANDEM_CUDA_EMULATOR_KERNEL_LOADEDIMAGE_H

#include "cuda/emulator/KernelEmulator.h"

namespace tandem::emulator {

class LoadedImage {
public:
  LoadedImage() = default;
  LoadedImage(const LoadedImage &) = delete;
  LoadedImage &operator=(const LoadedImage &) = delete;
  ~LoadedImage();

  void *handle = nullptr;
  int fd = -1;
  std::vector<Kernel> kernels;
};

} // namespace tandem::emulator

#endif
