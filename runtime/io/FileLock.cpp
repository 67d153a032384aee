//===- FileLock.cpp - who writes a file for long --------------------------===//
//
// The lock is fcntl's, which knows the process that holds it. It is lost when
// this process closes any descriptor of the file, so the file has one alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/FileLock.h"

#include "runtime/artifact/AtomicFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tandem::io {
namespace {

struct flock wholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Returns 0 if `name` is still the name of the open file `fd`, ENOENT if it is
/// not, or why that cannot be told.
int whyNotNamed(int fd, const std::string &name) {
  struct stat open, named;
  if (::fstat(fd, &open) != 0 || ::stat(name.c_str(), &named) != 0)
    return errno;
  bool same = open.st_dev == named.st_dev && open.st_ino == named.st_ino;
  return same ? 0 : ENOENT;
}

Status cannotWrite(const std::string &path, const std::string &reason) {
  return Status::failed("cannot write '" + path + "': " + reason);
}

} // namespace

std::string FileLock::nameFor(const std::string &path) {
  return artifact::followLinks(path) + ".tandem-lock";
}

Result<FileLock> FileLock::take(const std::string &path) {
  FileLock lock;
  struct stat facts;
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return lock;
  std::string name = nameFor(path);
  while (true) {
    int fd =
        ::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
      return cannotWrite(path,
                         std::string("its lock: ") + std::strerror(errno));
    struct flock wanted = wholeFile();
    if (::fcntl(fd, F_SETLK, &wanted) != 0) {
      bool held = errno == EACCES || errno == EAGAIN;
      struct flock holder = wholeFile();
      bool known = held && ::fcntl(fd, F_GETLK, &holder) == 0;
      ::close(fd);
      if (!held)
        return lock;
      if (known && holder.l_type == F_UNLCK)
        continue; // it is free by now
      return cannotWrite(path, known && holder.l_pid > 0
                                   ? "process " + std::to_string(holder.l_pid) +
                                         " is writing it"
                                   : "another process is writing it");
    }
    // A lock is empty: what has content is somebody's file.
    if (::fstat(fd, &facts) == 0 && facts.st_size > 0) {
      ::close(fd);
      return cannotWrite(path, "'" + name + "' is there and is no lock");
    }
    lock.fd_ = fd;
    lock.name_ = name;
    // Who held it may have removed the name between the two calls.
    int reason = whyNotNamed(fd, name);
    if (reason == 0)
      return lock;
    lock.name_.clear();
    lock.release();
    if (reason != ENOENT)
      return cannotWrite(path,
                         std::string("its lock: ") + std::strerror(reason));
  }
}

FileLock::FileLock(FileLock &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::exchange(other.name_, {})) {
}

FileLock &FileLock::operator=(FileLock &&other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  return *this;
}

void FileLock::release() {
  // Removed while it is locked, so that nobody else's is removed.
  if (fd_ >= 0 && !name_.empty())
    ::unlink(name_.c_str());
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
  name_.clear();
}

} // namespace tandem::io
