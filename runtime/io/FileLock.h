//===- FileLock.h - who writes a file for long ----------------------------===//
//
// A file that a process writes again and again (a checkpoint, a log) belongs to
// that process meanwhile: another one that wants it is refused, and told which
// process has it. The file itself is replaced by each write, so what is locked
// is a file beside it, FILE.tandem-lock. It is removed with the lock; one that
// a killed process left is locked by nobody, and is taken over.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_FILELOCK_H
#define TANDEM_RUNTIME_IO_FILELOCK_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::io {

class FileLock {
public:
  /// Locks `path` for this process until the result is gone. What is no regular
  /// file is not locked, nor is anything on a file system without locks.
  static Result<FileLock> take(const std::string &path);
  /// Returns the name of the lock's own file.
  static std::string nameFor(const std::string &path);

  FileLock() = default;
  FileLock(FileLock &&other) noexcept;
  FileLock &operator=(FileLock &&other) noexcept;
  ~FileLock() { release(); }

private:
  void release();

  int fd_ = -1;
  std::string name_; ///< of the lock's own file
};

} // namespace tandem::io

#endif
