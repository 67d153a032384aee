//===- NoKernelEmulator.cpp - builds without the kernel emulator ----------===//
//
// Emulation images are refused; twins (Control.h) run.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/KernelEmulator.h"

namespace tandem::emulator {

class LoadedImage {};

Result<Image> Image::load(std::span<const std::byte>) {
  return Status::unsupported("this build has no kernel emulator");
}
Image::Image(Image &&) noexcept = default;
Image &Image::operator=(Image &&) noexcept = default;
Image::~Image() = default;
const Kernel *Image::find(std::string_view) const { return nullptr; }
std::span<const Kernel> Image::kernels() const { return {}; }

Status launch(const LaunchRequest &, MemoryObserver *) {
  return Status::unsupported("this build has no kernel emulator");
}

} // namespace tandem::emulator
