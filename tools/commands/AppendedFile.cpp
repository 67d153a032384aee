//===- AppendedFile.cpp - a file that grows while a training runs ---------===//
#include "tools/commands/AppendedFile.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/Array.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace tandem::commands {
namespace {

constexpr size_t mostInMemory = 4096;

/// Pipes and devices have no disk.
bool hasNoDisk(int error) { return error == EINVAL || error == EROFS; }

} // namespace

AppendedFile::~AppendedFile() { std::ignore = close(); }

Status AppendedFile::open(const std::string &path, bool isNew) {
  path_ = path;
  error_ = 0; // that of another name is not this one's
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (isNew ? O_EXCL : 0);
  fd_ = ::open(path.c_str(), flags, 0666);
  struct stat facts;
  if (fd_ < 0)
    fail(errno);
  // A file may have several names, and FileLock is of one. This lock stays
  // when another descriptor of the file is closed, as fcntl's does not.
  else if (::fstat(fd_, &facts) == 0 && S_ISREG(facts.st_mode) &&
           ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(std::exchange(fd_, -1));
    return Status::failed("cannot write " + io::inQuotes(path) +
                          ": another process is writing it");
  }
  return status();
}

bool AppendedFile::isEmpty() const {
  struct stat facts;
  return buffer_.empty() &&
         (!isOpen() || ::fstat(fd_, &facts) != 0 || facts.st_size == 0);
}

void AppendedFile::empty() {
  buffer_.clear();
  if (isOpen())
    std::ignore = ::ftruncate(fd_, 0);
}

void AppendedFile::append(std::string_view text) {
  if (!isOpen() || error_ != 0)
    return;
  buffer_ += text;
  if (buffer_.size() >= mostInMemory)
    flush();
}

void AppendedFile::fail(int error) {
  if (error_ == 0)
    error_ = error;
}

void AppendedFile::flush() {
  std::string_view left = buffer_;
  while (isOpen() && error_ == 0 && !left.empty()) {
    ssize_t written = ::write(fd_, left.data(), left.size());
    if (written >= 0)
      left.remove_prefix(size_t(written));
    else if (errno != EINTR)
      fail(errno);
  }
  buffer_.clear();
}

Status AppendedFile::sync() {
  if (!isOpen())
    return Status::success();
  flush();
  if (error_ == 0 && ::fdatasync(fd_) != 0 && !hasNoDisk(errno))
    fail(errno);
  if (error_ != 0)
    return close();
  if (!std::exchange(isNamed_, true))
    artifact::syncFolderOf(path_);
  return Status::success();
}

Status AppendedFile::close() {
  flush();
  if (isOpen() && ::close(std::exchange(fd_, -1)) != 0)
    fail(errno);
  return status();
}

Status AppendedFile::status() const {
  return error_ == 0 ? Status::success()
                     : Status::failed("cannot write " + io::inQuotes(path_) +
                                      ": " + std::strerror(error_));
}

} // namespace tandem::commands
