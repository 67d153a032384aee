//===- AtomicFile.h - a file that appears whole or not at all -------------===//
//
// Writes go to a temporary file beside the target, TARGET.tandem-tmp-XXXXXX;
// `commit` syncs it and renames it over the target. Without a successful commit
// nothing stays and an earlier file under that name is untouched. A target that
// is not a regular file (a device, a pipe) is written directly; a link is
// followed, also one whose target does not exist yet.
//
// A process that is killed leaves its temporary file. Who next writes the same
// target removes it: a writer holds a lock (flock) on its temporary file as
// long as it lives, so one that can be locked has no writer.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_ATOMICFILE_H
#define TANDEM_RUNTIME_ARTIFACT_ATOMICFILE_H

#include "runtime/artifact/Status.h"

#include <cstddef>
#include <optional>
#include <string>

namespace tandem::artifact {

/// Returns where a file that is written as `path` will lie: symbolic links
/// followed, dangling ones too, and the folder's canonical path where there is
/// such a folder.
std::string followLinks(std::string path);

/// The names in the folder of `path` outlive a loss of power, where the folder
/// can be opened and synced.
void syncFolderOf(const std::string &path);

class AtomicFile {
public:
  /// With `mode`, its permissions from the first byte on, also where it
  /// replaces a file that others may read.
  static Result<AtomicFile> create(const std::string &path,
                                   std::optional<unsigned> mode = {});

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
  std::string path;      ///< as it was asked for
  std::string target;    ///< links followed
  std::string temporary; ///< empty when the target is written directly
};

} // namespace tandem::artifact

#endif
