//===- Link.cpp - links object files in process ---------------------------===//
//
// LLD reads and writes files, so the objects pass through a temporary folder.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/Link.h"
#include "compiler/emit/TemporaryFolder.h"

#include "lld/Common/Driver.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ELF/ELFConfig.h"
#include "llvm/ObjCopy/ELF/ELFObjcopy.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace tandem;

Result<std::string> tandem::renameSymbol(llvm::StringRef object,
                                         llvm::StringRef from,
                                         llvm::StringRef to) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(object, "kernel.o"));
  if (!file)
    return Status::failed(llvm::toString(file.takeError()));
  llvm::objcopy::CommonConfig config;
  config.SymbolsToRename[from] = to;
  std::string bytes;
  llvm::raw_string_ostream out(bytes);
  if (llvm::Error error = llvm::objcopy::elf::executeObjcopyOnBinary(
          config, {}, llvm::cast<llvm::object::ELFObjectFileBase>(**file), out))
    return Status::failed(llvm::toString(std::move(error)));
  return bytes;
}

/// For LLD, which takes what is in quotes as a name whatever it has.
static std::string versionScript(const std::vector<std::string> &exported) {
  std::string text = "{\nglobal:\n";
  for (const std::string &name : exported)
    text += "\"" + name + "\";\n";
  return text + "local: *;\n};\n";
}

Result<std::string>
tandem::linkSharedObject(const std::vector<std::string> &objects,
                         const std::vector<std::string> &exported) {
  // LLD keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);

  auto folder = TemporaryFolder::create("tandem-link");
  if (!folder)
    return folder.status();
  std::vector<std::string> names;
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string name = std::to_string(i) + ".o";
    if (Status s = folder->write(name, objects[i]); !s)
      return s;
    names.push_back(folder->path(name));
  }
  if (Status s = folder->write("exported", versionScript(exported)); !s)
    return s;
  std::string outputName = folder->path("kernels.so");
  std::string script = "--version-script=" + folder->path("exported");
  std::vector<const char *> arguments = {
      "ld.lld",          "-shared",          "--strip-all",
      "--build-id=none", "--hash-style=gnu", "-z",
      "noexecstack",     "--threads=1",      "-o",
      outputName.c_str()};
  if (!exported.empty())
    arguments.push_back(script.c_str());
  for (const std::string &name : names)
    arguments.push_back(name.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return Status::failed("linking failed: " + messages);
  return folder->read("kernels.so");
}
