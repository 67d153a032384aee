//===- Link.cpp - links object files in process ---------------------------===//
//
// LLD reads and writes files, so the objects pass through a private temporary
// folder that is removed whatever happens.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace tandem;

static llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return llvm::errorCodeToError(error);
  out << bytes;
  out.close();
  error = out.error();
  out.clear_error();
  return llvm::errorCodeToError(error);
}

Result<std::string>
tandem::linkSharedObject(const std::vector<std::string> &objects) {
  // LLD keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);

  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("tandem-link", folder))
    return Status::failed("cannot make a temporary folder: " + error.message());
  auto cleanup = llvm::scope_exit(
      [&] { (void)llvm::sys::fs::remove_directories(folder); });

  std::vector<std::string> names;
  for (size_t i = 0; i < objects.size(); ++i) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, std::to_string(i) + ".o");
    if (llvm::Error error = writeFile(path, objects[i]))
      return Status::failed("cannot write '" + path.str().str() +
                            "': " + llvm::toString(std::move(error)));
    names.push_back(path.str().str());
  }
  llvm::SmallString<128> output(folder);
  llvm::sys::path::append(output, "kernels.so");
  std::string outputName = output.str().str();
  std::vector<const char *> arguments = {
      "ld.lld",          "-shared",          "--strip-all",
      "--build-id=none", "--hash-style=gnu", "-z",
      "noexecstack",     "--threads=1",      "-o",
      outputName.c_str()};
  for (const std::string &name : names)
    arguments.push_back(name.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return Status::failed("linking failed: " + messages);
  auto bytes = llvm::MemoryBuffer::getFile(outputName);
  if (!bytes)
    return Status::failed("cannot read '" + outputName +
                          "': " + bytes.getError().message());
  return (*bytes)->getBuffer().str();
}
