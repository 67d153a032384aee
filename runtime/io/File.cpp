//===- File.cpp - whole files, in and out ---------------------------------===//
//
// POSIX calls, since the standard library can neither sync nor say why a write
// failed. Interrupted calls are resumed.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/File.h"

#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::io {
namespace {

/// Returns "cannot VERB 'PATH': reason" for the error number `error`.
Status systemError(const char *verb, const std::string &path, int error) {
  std::string reason = std::strerror(error);
  if (!reason.empty())
    reason[0] = char(std::tolower(static_cast<unsigned char>(reason[0])));
  return Status::failed(std::string("cannot ") + verb + " " + inQuotes(path) +
                        ": " + reason);
}

template <typename Call> auto retrying(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR)
    result = call();
  return result;
}

/// A file descriptor that is closed when it goes out of scope.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Returns 0, or the error number of a failed close.
  int close() { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

private:
  int fd_;
};

Descriptor openFile(const std::string &path, int flags, mode_t mode = 0) {
  return Descriptor(
      retrying([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

/// Returns 0, or the error number.
int writeAll(int fd, std::span<const Bytes> pieces) {
  for (Bytes rest : pieces) {
    while (!rest.empty()) {
      // A single write moves at most 2^31 bytes on Linux.
      size_t chunk = std::min(rest.size(), size_t{1} << 30);
      ssize_t done = retrying([&] { return ::write(fd, rest.data(), chunk); });
      if (done < 0)
        return errno;
      rest = rest.subspan(size_t(done));
    }
  }
  return 0;
}

/// Returns the file that `path` names once symbolic links are followed; a path
/// that leads nowhere yet is its own answer.
std::string resolved(const std::string &path) {
  char *real = ::realpath(path.c_str(), nullptr);
  std::string result = real ? real : path;
  std::free(real);
  return result;
}

/// Writes, syncs and closes the new file `temporary`.
int fill(const std::string &temporary, const struct stat *previous,
         std::span<const Bytes> pieces) {
  Descriptor file = openFile(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file)
    return errno;
  int error = writeAll(file.get(), pieces);
  if (!error && previous && ::fchmod(file.get(), previous->st_mode & 07777))
    error = errno;
  if (!error && retrying([&] { return ::fsync(file.get()); }) != 0)
    error = errno;
  int closing = file.close();
  return error ? error : closing;
}

} // namespace

Result<std::vector<std::byte>> readFile(const std::string &path) try {
  Descriptor file = openFile(path, O_RDONLY);
  struct stat facts = {};
  if (!file || ::fstat(file.get(), &facts) != 0)
    return systemError("read", path, errno);
  if (S_ISDIR(facts.st_mode))
    return systemError("read", path, EISDIR);
  // The size is a first guess: a pipe has none, and a file may be growing.
  std::vector<std::byte> bytes(size_t(std::max<off_t>(facts.st_size, 0)));
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      std::byte next;
      ssize_t more = retrying([&] { return ::read(file.get(), &next, 1); });
      if (more < 0)
        return systemError("read", path, errno);
      if (more == 0)
        return bytes;
      bytes.resize(filled + std::max(filled, size_t{1} << 16));
      bytes[filled++] = next;
    }
    ssize_t done = retrying([&] {
      return ::read(file.get(), bytes.data() + filled,
                    std::min(bytes.size() - filled, size_t{1} << 30));
    });
    if (done < 0)
      return systemError("read", path, errno);
    filled += size_t(done);
    if (done == 0) {
      bytes.resize(filled);
      return bytes;
    }
  }
} catch (const std::bad_alloc &) {
  return systemError("read", path, ENOMEM);
}

Status replaceFile(const std::string &path, std::span<const Bytes> pieces) {
  static std::atomic<unsigned> serial{0};
  struct stat facts = {};
  bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode))
    return systemError("write", path, EISDIR);
  if (exists && !S_ISREG(facts.st_mode)) {
    Descriptor file = openFile(path, O_WRONLY);
    int error = file ? writeAll(file.get(), pieces) : errno;
    if (!error)
      error = file.close();
    return error ? systemError("write", path, error) : Status::success();
  }

  std::string target = resolved(path);
  size_t slash = target.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : target.substr(0, slash + 1);
  std::string temporary = folder + "/.tandem-" + std::to_string(::getpid()) +
                          "-" + std::to_string(serial++) + ".tmp";
  int error = fill(temporary, exists ? &facts : nullptr, pieces);
  if (error == EEXIST && ::unlink(temporary.c_str()) == 0)
    error = fill(temporary, exists ? &facts : nullptr, pieces);
  if (!error && ::rename(temporary.c_str(), target.c_str()) != 0)
    error = errno;
  if (error) {
    ::unlink(temporary.c_str());
    return systemError("write", path, error);
  }
  // Some file systems cannot sync a folder; the file itself is safe by then.
  Descriptor directory = openFile(folder, O_RDONLY | O_DIRECTORY);
  if (directory)
    retrying([&] { return ::fsync(directory.get()); });
  return Status::success();
}

} // namespace tandem::io
