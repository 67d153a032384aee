//===- TemporaryFolder.h - files for programs that read and write files ---===//
//
// A private folder that is removed, with all in it, whatever happens.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_TEMPORARYFOLDER_H
#define TANDEM_COMPILER_EMIT_TEMPORARYFOLDER_H

#include "runtime/artifact/Status.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace tandem {

class TemporaryFolder {
public:
  /// Makes a folder whose name begins with `prefix`.
  static Result<TemporaryFolder> create(const std::string &prefix);

  TemporaryFolder(TemporaryFolder &&other) noexcept
      : folder(std::move(other.folder)) {
    other.folder.clear();
  }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  /// Returns the path of the file `name`.
  std::string path(const std::string &name) const;
  Status write(const std::string &name, llvm::StringRef bytes) const;
  Result<std::string> read(const std::string &name) const;

private:
  TemporaryFolder() = default;
  std::string folder;
};

} // namespace tandem

#endif
