//===- Image.cpp - loads emulation images ---------------------------------===//
//
// The dynamic linker gets the image through an anonymous file that stays open
// as long as the image is loaded (it knows an object by its path, which here is
// the number of the descriptor).
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/kernel/Functions.h"
#include "cuda/emulator/kernel/LoadedImage.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::emulator {

namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
/// Images are compiled for x86-64-v3.
const char *missingInstructions() {
  if (!__builtin_cpu_supports("avx2"))
    return "AVX2";
  if (!__builtin_cpu_supports("fma"))
    return "FMA";
  return __builtin_cpu_supports("bmi2") ? nullptr : "BMI2";
}
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
const char *missingInstructions() { return nullptr; }
#else
#error "the kernel emulator knows x86-64 and AArch64"
#endif

Status checkHeader(std::span<const std::byte> elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header))
    return Status::failed("the emulation image is no ELF shared object");
  std::memcpy(&header, elf.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    return Status::failed("the emulation image is no ELF shared object");
  if (header.e_machine != kMachine)
    return Status::noDevice("the emulation image is for machine " +
                            std::to_string(header.e_machine) +
                            " but this is machine " + std::to_string(kMachine) +
                            " (numbers of the ELF standard)");
  if (const char *missing = missingInstructions())
    return Status::noDevice(std::string("emulating kernels needs a processor "
                                        "with ") +
                            missing);
  return Status::success();
}

Status writeAll(int fd, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return Status::failed(std::string("cannot load the emulation image: ") +
                            std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  return Status::success();
}

/// Fills in the functions that the image calls.
Status bind(const artifact::EmulatedImage &image) {
  std::string unknown;
  for (uint32_t c = 0; c < image.chunkCount; ++c) {
    const artifact::EmulatedChunk &chunk = *image.chunks[c];
    for (uint32_t i = 0; i < chunk.functionCount; ++i) {
      chunk.functions[i] = kernel::findFunction(chunk.functionNames[i]);
      if (!chunk.functions[i])
        unknown += std::string(unknown.empty() ? "'" : ", '") +
                   chunk.functionNames[i] + "'";
    }
  }
  if (unknown.empty())
    return Status::success();
  return Status::unsupported("the kernel emulator has no " + unknown +
                             "; it is older than the compiler that made the "
                             "emulation image");
}

} // namespace

LoadedImage::~LoadedImage() {
  if (handle)
    ::dlclose(handle);
  if (fd >= 0)
    ::close(fd);
}

Image::Image(std::unique_ptr<LoadedImage> loaded) : loaded(std::move(loaded)) {}
Image::Image(Image &&) noexcept = default;
Image &Image::operator=(Image &&) noexcept = default;
Image::~Image() = default;

Result<Image> Image::load(std::span<const std::byte> elf) {
  if (Status status = checkHeader(elf); !status)
    return status;
  auto loaded = std::make_unique<LoadedImage>();
  loaded->fd = ::memfd_create("tandem-emulation", MFD_CLOEXEC);
  if (loaded->fd < 0)
    return Status::failed(std::string("cannot load the emulation image: ") +
                          std::strerror(errno));
  if (Status status = writeAll(loaded->fd, elf); !status)
    return status;
  std::string path = "/proc/self/fd/" + std::to_string(loaded->fd);
  loaded->handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->handle) {
    const char *why = ::dlerror();
    return Status::failed(std::string("cannot load the emulation image: ") +
                          (why ? why : "unknown reason"));
  }
  auto *found = static_cast<const artifact::EmulatedImage *>(
      ::dlsym(loaded->handle, artifact::kEmulationSymbol));
  if (!found)
    return Status::failed(std::string("the emulation image does not define '") +
                          artifact::kEmulationSymbol + "'");
  const artifact::EmulatedImage &image = *found;
  if (image.version != artifact::kEmulationVersion)
    return Status::unsupported("the emulation image has version " +
                               std::to_string(image.version) +
                               " but this emulator reads version " +
                               std::to_string(artifact::kEmulationVersion));
  if (Status status = bind(image); !status)
    return status;
  for (uint32_t c = 0; c < image.chunkCount; ++c) {
    const artifact::EmulatedChunk &chunk = *image.chunks[c];
    for (uint32_t i = 0; i < chunk.kernelCount; ++i) {
      const artifact::EmulatedKernel &code = chunk.kernels[i];
      Kernel kernel;
      kernel.name = code.name;
      kernel.parameterBytes.assign(code.parameterBytes,
                                   code.parameterBytes + code.parameterCount);
      kernel.sharedBytes = code.sharedBytes;
      kernel.chunk = &chunk;
      kernel.code = &code;
      loaded->kernels.push_back(std::move(kernel));
    }
  }
  return Image(std::move(loaded));
}

const Kernel *Image::find(std::string_view name) const {
  for (const Kernel &kernel : loaded->kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

std::span<const Kernel> Image::kernels() const { return loaded->kernels; }

} // namespace tandem::emulator
