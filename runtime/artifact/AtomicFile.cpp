//===- AtomicFile.cpp - a file that appears whole or not at all -----------===//
//
// See AtomicFile.h. The temporary file lies in the target's folder, since a
// rename does not cross file systems.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tandem::artifact {

namespace {

/// Stands between the target's name and six letters in that of its temporary
/// file.
constexpr std::string_view mark = ".tandem-tmp-";
constexpr size_t letters = 6;

Status cannot(const char *what, const std::string &path, int error) {
  return Status::failed("cannot " + std::string(what) + " '" + path +
                        "': " + std::strerror(error));
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

/// Returns how the names of the temporary files of `target` begin; a name that
/// is too long for them is cut.
std::string temporaryName(const std::string &target) {
  std::string name = target.substr(target.rfind('/') + 1);
  name.resize(std::min(name.size(), NAME_MAX - mark.size() - letters));
  return name.append(mark);
}

/// Removes what writers of `target` left that live no more.
void removeStale(const std::string &target) {
  std::string begin = temporaryName(target);
  DIR *folder = ::opendir(folderOf(target).c_str());
  if (!folder)
    return;
  while (const dirent *entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(begin) || name.size() != begin.size() + letters)
      continue;
    int fd = ::openat(::dirfd(folder), entry->d_name,
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat facts;
    if (fd >= 0 && ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) &&
        ::flock(fd, LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(::dirfd(folder), entry->d_name, 0);
    if (fd >= 0)
      ::close(fd);
  }
  ::closedir(folder);
}

/// Makes a temporary file for `target` and locks it; sets `name`. Returns its
/// descriptor, or -1 and errno.
int openTemporary(const std::string &target, std::string &name) {
  while (true) {
    name = folderOf(target) + temporaryName(target) + "XXXXXX";
    int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0)
      return fd;
    // Before it was locked another process may have found it stale; then it is
    // being removed, or was. A file system without locks removes nothing.
    bool lost = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat facts;
    bool known = ::fstat(fd, &facts) == 0;
    if (known && !lost && facts.st_nlink != 0)
      return fd;
    int error = errno;
    if (!known)
      ::unlink(name.c_str());
    ::close(fd);
    if (!known) {
      errno = error;
      return -1;
    }
  }
}

} // namespace

std::string followLinks(std::string path) {
  constexpr int mostLinks = 40; // as the kernel's own limit
  char text[PATH_MAX];
  for (int links = 0; links < mostLinks; ++links) {
    ssize_t length = ::readlink(path.c_str(), text, sizeof text);
    if (length <= 0)
      break;
    std::string to(text, size_t(length));
    path = to[0] == '/' ? to : folderOf(path) + to;
  }
  if (::realpath(folderOf(path).c_str(), text)) {
    std::string folder = text;
    if (folder.back() != '/')
      folder += '/';
    path = folder + path.substr(path.rfind('/') + 1);
  }
  return path;
}

void syncFolderOf(const std::string &path) {
  int folder =
      ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  ::fsync(folder);
  ::close(folder);
}

Result<AtomicFile> AtomicFile::create(const std::string &path,
                                      std::optional<unsigned> asked) {
  AtomicFile file;
  file.path = path;
  struct stat existing;
  bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists) {
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
  } else if (errno == ELOOP) {
    return cannot("write", path, ELOOP);
  }
  file.target = followLinks(path);
  removeStale(file.target);
  file.fd = openTemporary(file.target, file.temporary);
  if (file.fd < 0) {
    int error = errno;
    file.temporary.clear();
    return cannot("write", path, error);
  }
  // mkostemp gives 0600: an output has the mode of the file it replaces, or
  // what open(2) would give it.
  mode_t mode = 0;
  if (asked) {
    mode = *asked;
  } else if (exists) {
    mode = existing.st_mode & 07777;
  } else {
    mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  // Where nobody may change permissions, as in a sandbox, it stays its owner's.
  if (::fchmod(file.fd, mode) != 0 && errno != EPERM)
    return cannot("write", path, errno);
  return Result<AtomicFile>(std::move(file));
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : fd(std::exchange(other.fd, -1)), path(std::move(other.path)),
      target(std::move(other.target)),
      temporary(std::exchange(other.temporary, {})) {}

AtomicFile::~AtomicFile() {
  // Unlinked before it is closed, and so while it is locked.
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  if (fd >= 0)
    ::close(fd);
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
  if (temporary.empty())
    return ::close(std::exchange(fd, -1)) == 0 ? Status::success()
                                               : cannot("write", path, errno);
  // Closing it unlocks it, so that it must have its name by then. What closing
  // could report has been reported by fsync.
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return cannot("write", path, errno);
  temporary.clear();
  ::close(std::exchange(fd, -1));
  syncFolderOf(target);
  return Status::success();
}

} // namespace tandem::artifact
