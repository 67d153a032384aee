//===- AtomicFile.h - a file that appears whole or not at all -------------===//
//
// Writes go to a temporary file beside the target; `commit` syncs it and
// renames it over the target. Without a successful commit nothing stays and an
// earlier file under that name is untouched. A target that is not a regular
// file (a device, a pipe) is written directly; a link is followed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_ATOMICFILE_H
#define TANDEM_RUNTIME_ARTIFACT_ATOMICFILE_H

#include "runtime/artifact/Status.h"

#include <cstddef>
#include <string>

namespace tandem::artifact {

class AtomicFile {
public:
  static Result<AtomicFile> create(const std::string &path);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Appends `bytes` bytes.
  Status write(const void *data, size_t bytes);
  /// Syncs and renames; nothing can be written after it.
  Status commit();

private:
  AtomicFile() = default;

  int fd = -1;
  std::string path;      ///< the target, links resolved
  std::string temporary; ///< empty when the target is written directly
};

} // namespace tandem::artifact

#endif
