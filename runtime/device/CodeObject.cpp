//===- CodeObject.cpp - loads an artifact's code --------------------------===//
//
// The anonymous file stays open as long as the code is loaded: the dynamic
// linker knows an object by its path, which here is the number of the
// descriptor, and would take a second object with the same number for the
// first.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CodeObject.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
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

/// No memory that is run may be written: neither the object's own, nor the
/// stack, which the dynamic linker makes executable for an object that asks for
/// it, or does not say.
Status checkSegments(std::span<const std::byte> elf, const Elf64_Ehdr &header) {
  bool hasStack = false, isRight = true;
  size_t count = header.e_phnum;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > elf.size() ||
      count > (elf.size() - header.e_phoff) / sizeof(Elf64_Phdr))
    return Status::failed("the artifact's code object is damaged: expected its "
                          "table of segments within the file");
  for (size_t i = 0; i < count; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, elf.data() + header.e_phoff + i * sizeof(Elf64_Phdr),
                sizeof(segment));
    hasStack |= segment.p_type == PT_GNU_STACK;
    if (segment.p_type == PT_LOAD || segment.p_type == PT_GNU_STACK)
      isRight &= !((segment.p_flags & PF_X) && (segment.p_flags & PF_W));
  }
  if (hasStack && isRight)
    return Status::success();
  return Status::failed("the artifact's code object wants memory that is both "
                        "written and run");
}

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
  return checkSegments(elf, header);
}

} // namespace

Result<CodeObject> CodeObject::load(std::span<const std::byte> elf) {
  if (Status status = checkHeader(elf); !status)
    return status;
  CodeObject object;
  auto cannot = [] {
    return Status::failed(std::string("cannot load the artifact's code: ") +
                          std::strerror(errno));
  };
  object.fd = ::memfd_create("tandem-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (object.fd < 0)
    return cannot();
  for (size_t done = 0; done < elf.size();) {
    ssize_t count = ::write(object.fd, elf.data() + done, elf.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return cannot();
    done += static_cast<size_t>(count);
  }
  // What is mapped to be run is what was checked: from here on nobody who has
  // the descriptor can write to the file or change its size or its seals.
  // The system may look at the file's memory itself just now (it moves pages,
  // or counts their use); it waits for its end a while, and then says EBUSY.
  for (int left = 10;
       ::fcntl(object.fd, F_ADD_SEALS,
               F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0;
       --left)
    if (errno != EBUSY || left == 0)
      return cannot();
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
