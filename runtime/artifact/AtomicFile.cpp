//===- AtomicFile.cpp - a file that appears whole or not at all -----------===//
//
// See AtomicFile.h. The temporary file lies in the target's folder, since a
// rename does not cross file systems.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/AtomicFile.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tandem::artifact {

namespace {

Status cannot(const char *what, const std::string &path, int error) {
  return Status::failed("cannot " + std::string(what) + " '" + path +
                        "': " + std::strerror(error));
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  struct stat existing;
  if (::stat(path.c_str(), &existing) == 0) {
    if (S_ISDIR(existing.st_mode))
      return cannot("write", path, EISDIR);
    if (!S_ISREG(existing.st_mode)) {
      file.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (file.fd < 0)
        return cannot("write", path, errno);
      return Result<AtomicFile>(std::move(file));
    }
    // Renaming over a file that the user may not write would succeed.
    if (::access(path.c_str(), W_OK) != 0)
      return cannot("write", path, errno);
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved))
      file.path = resolved;
  }
  std::string name = file.path + ".XXXXXX";
  file.fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (file.fd < 0)
    return cannot("write", path, errno);
  file.temporary = name;
  // mkostemp gives 0600: an output has the mode of the file it replaces, or
  // what open(2) would give it.
  mode_t mode = 0;
  if (::stat(file.path.c_str(), &existing) == 0) {
    mode = existing.st_mode & 07777;
  } else {
    mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  if (::fchmod(file.fd, mode) != 0)
    return cannot("write", path, errno);
  return Result<AtomicFile>(std::move(file));
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : fd(std::exchange(other.fd, -1)), path(std::move(other.path)),
      temporary(std::exchange(other.temporary, {})) {}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    ::close(fd);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status AtomicFile::write(const void *data, size_t bytes) {
  const char *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t done = ::write(fd, from, bytes);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return cannot("write", path, errno);
    from += done;
    bytes -= static_cast<size_t>(done);
  }
  return Status::success();
}

Status AtomicFile::commit() {
  // Pipes and devices cannot be synced: EINVAL and EROFS say so.
  if (::fsync(fd) != 0 && !(temporary.empty() && errno != EIO))
    return cannot("write", path, errno);
  if (::close(std::exchange(fd, -1)) != 0)
    return cannot("write", path, errno);
  if (temporary.empty())
    return Status::success();
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return cannot("write", path, errno);
  temporary.clear();
  // The new name is safe once its folder is on disk; a folder that cannot be
  // opened or synced does not undo the file.
  int folder =
      ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return Status::success();
}

} // namespace tandem::artifact
