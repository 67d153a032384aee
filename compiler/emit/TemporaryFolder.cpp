//===- TemporaryFolder.cpp - files for programs that read and write files -===//
#include "compiler/emit/TemporaryFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace tandem;

Result<TemporaryFolder> TemporaryFolder::create(const std::string &prefix) {
  llvm::SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory(prefix, path))
    return Status::failed("cannot make a temporary folder: " + error.message());
  TemporaryFolder made;
  made.folder = path.str().str();
  return made;
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    (void)llvm::sys::fs::remove_directories(folder);
}

std::string TemporaryFolder::path(const std::string &name) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

Status TemporaryFolder::write(const std::string &name,
                              llvm::StringRef bytes) const {
  std::error_code error;
  llvm::raw_fd_ostream out(path(name), error);
  if (!error) {
    out << bytes;
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (error)
    return Status::failed("cannot write '" + path(name) +
                          "': " + error.message());
  return Status::success();
}

Result<std::string> TemporaryFolder::read(const std::string &name) const {
  auto bytes = llvm::MemoryBuffer::getFile(path(name));
  if (!bytes)
    return Status::failed("cannot read '" + path(name) +
                          "': " + bytes.getError().message());
  return (*bytes)->getBuffer().str();
}
