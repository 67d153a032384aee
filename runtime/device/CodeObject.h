//===- CodeObject.h - loads an artifact's code ----------------------------===//
//
// Gives the bytes of an ELF shared object to the dynamic linker through an
// anonymous file, so that nothing is written to disk. The code stays loaded as
// long as the object lives.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_CODEOBJECT_H
#define TANDEM_RUNTIME_DEVICE_CODEOBJECT_H

#include "runtime/artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tandem::runtime {

/// A kernel (docs/ARCHITECTURE.md, "Kernel ABI").
using KernelFunction = void (*)(void *const *buffers, int64_t begin,
                                int64_t end, void *scratch);

class CodeObject {
public:
  CodeObject() = default;
  static Result<CodeObject> load(std::span<const std::byte> elf);

  CodeObject(CodeObject &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)),
        fd(std::exchange(other.fd, -1)) {}
  CodeObject &operator=(CodeObject &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(fd, other.fd);
    return *this;
  }
  ~CodeObject();

  /// Returns the function `symbol`, or null.
  KernelFunction find(const char *symbol) const;

private:
  void *handle = nullptr;
  int fd = -1;
};

} // namespace tandem::runtime

#endif
