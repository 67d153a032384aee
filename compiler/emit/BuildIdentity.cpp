//===- BuildIdentity.cpp - which compiler this is, to the byte ------------===//
#include "compiler/emit/BuildIdentity.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <elf.h>
#include <link.h>
#include <vector>

using namespace tandem;

namespace {
struct Objects {
  std::vector<std::string> identities;
  std::string problem;
};
} // namespace

/// The build id in a segment of notes; empty if it has none.
static llvm::StringRef buildIdIn(llvm::StringRef notes) {
  auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t(3); };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::copy_n(notes.data(), sizeof header, reinterpret_cast<char *>(&header));
    notes = notes.drop_front(sizeof header);
    size_t name = padded(header.n_namesz), text = padded(header.n_descsz);
    if (name + text > notes.size())
      break;
    if (header.n_type == NT_GNU_BUILD_ID &&
        notes.take_front(header.n_namesz) == llvm::StringRef("GNU\0", 4))
      return notes.substr(name, header.n_descsz);
    notes = notes.drop_front(name + text);
  }
  return {};
}

static int addObject(dl_phdr_info *object, size_t, void *to) {
  auto &objects = *static_cast<Objects *>(to);
  llvm::StringRef name = object->dlpi_name;
  if (name.starts_with("linux-vdso"))
    return 0; // The kernel's.
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const auto *notes =
        reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
    llvm::StringRef id = buildIdIn({notes, segment.p_memsz});
    if (id.empty())
      continue;
    objects.identities.push_back("id " + llvm::toHex(id));
    return 0;
  }
  std::string path = name.empty() ? "/proc/self/exe" : name.str();
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file) {
    objects.problem = "'" + path + "' has no build id, and cannot be read: " +
                      file.getError().message();
    return 1;
  }
  auto bytes = llvm::arrayRefFromStringRef((*file)->getBuffer());
  objects.identities.push_back("file " +
                               llvm::toHex(llvm::BLAKE3::hash<32>(bytes)));
  return 0;
}

Result<std::string> tandem::buildIdentity() {
  static const Objects objects = [] {
    Objects found;
    dl_iterate_phdr(addObject, &found);
    // The order in which they are loaded is nothing of them.
    std::sort(found.identities.begin(), found.identities.end());
    return found;
  }();
  if (!objects.problem.empty())
    return Status::failed(objects.problem);
  llvm::BLAKE3 hash;
  for (const std::string &identity : objects.identities)
    hash.update(identity + "\n");
  return llvm::toHex(hash.final<32>(), /*LowerCase=*/true);
}
