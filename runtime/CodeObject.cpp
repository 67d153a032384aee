//===- CodeObject.cpp - loads an artifact's code --------------------------===//
//
// The anonymous file stays open as long as the code is loaded: the dynamic
// linker knows an object by its path, which here is the number of the
// descriptor, and would take a second object with the same number for the
// first.
//
//===----------------------------------------------------------------------===//
#include "runtime/CodeObject.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::runtime {

namespace {

#if defined(__x86_64__)
constexpr int hostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int hostMachine = EM_AARCH64;
#else
#error "the runtime knows x86-64 and AArch64"
#endif

Status checkHeader(std::span<const std::byte> elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header))
    return Status::failed("the artifact has no code object");
  std::memcpy(&header, elf.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    return Status::failed("the artifact's code object is no 64-bit ELF shared "
                          "object");
  if (header.e_machine != hostMachine)
    return Status::noDevice(
        "the artifact's code is for machine " +
        std::to_string(header.e_machine) + " but this is machine " +
        std::to_string(hostMachine) + " (numbers of the ELF standard)");
  return Status::success();
}

} // namespace

Result<CodeObject> CodeObject::load(std::span<const std::byte> elf) {
  if (Status status = checkHeader(elf); !status)
    return status;
  CodeObject object;
  object.fd = ::memfd_create("tandem-code", MFD_CLOEXEC);
  if (object.fd < 0)
    return Status::failed(std::string("cannot load the artifact's code: ") +
                          std::strerror(errno));
  for (size_t done = 0; done < elf.size();) {
    ssize_t count = ::write(object.fd, elf.data() + done, elf.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return Status::failed(std::string("cannot load the artifact's code: ") +
                            std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  std::string path = "/proc/self/fd/" + std::to_string(object.fd);
  object.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object.handle) {
    const char *why = ::dlerror();
    return Status::failed(std::string("cannot load the artifact's code: ") +
                          (why ? why : "unknown reason"));
  }
  return Result<CodeObject>(std::move(object));
}

CodeObject::~CodeObject() {
  if (handle)
    ::dlclose(handle);
  if (fd >= 0)
    ::close(fd);
}

KernelFunction CodeObject::find(const char *symbol) const {
  return handle ? reinterpret_cast<KernelFunction>(::dlsym(handle, symbol))
                : nullptr;
}

} // namespace tandem::runtime
