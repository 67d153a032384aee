//===- File.cpp - whole files, in and out ---------------------------------===//
//
// Reading is POSIX calls, since the standard library cannot say why one failed;
// interrupted ones are resumed. Writing is AtomicFile's.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/File.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/DeviceFiles.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tandem::io {
namespace {

Status cannotRead(const std::string &path, int error) {
  return Status::failed("cannot read " + inQuotes(path) + ": " +
                        std::strerror(error));
}

template <typename Call> auto retrying(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR)
    result = call();
  return result;
}

/// A file that is open for reading, or a negative number.
class Descriptor {
public:
  explicit Descriptor(const std::string &path)
      : fd_(retrying(
            [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); })) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }

private:
  int fd_;
};

} // namespace

Result<std::vector<std::byte>> readFile(const std::string &path) try {
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  Descriptor file(path);
  struct stat facts = {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
    return cannotRead(path, errno);
  if (S_ISDIR(facts.st_mode))
    return cannotRead(path, EISDIR);
  // The size is a first guess: a pipe has none, and a file may be growing.
  std::vector<std::byte> bytes(size_t(std::max<off_t>(facts.st_size, 0)));
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      std::byte next;
      ssize_t more = retrying([&] { return ::read(file.get(), &next, 1); });
      if (more < 0)
        return cannotRead(path, errno);
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
      return cannotRead(path, errno);
    filled += size_t(done);
    if (done == 0) {
      bytes.resize(filled);
      return bytes;
    }
  }
} catch (const std::bad_alloc &) {
  return cannotRead(path, ENOMEM);
}

Result<InputFile> InputFile::open(const std::string &path) {
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  InputFile file(path);
  struct stat facts = {};
  file.fd_ =
      retrying([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (file.fd_ < 0 || ::fstat(file.fd_, &facts) != 0)
    return cannotRead(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Status::usage("expected a regular file but got " + inQuotes(path));
  file.size_ = facts.st_size;
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

InputFile::~InputFile() {
  if (fd_ >= 0)
    ::close(fd_);
}

Status InputFile::readAt(int64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    ssize_t done = retrying([&] {
      return ::pread(fd_, to.data(), std::min(to.size(), size_t{1} << 30),
                     off_t(offset));
    });
    if (done < 0)
      return cannotRead(path_, errno);
    if (done == 0)
      return Status::failed("cannot read " + inQuotes(path_) +
                            ": it has become shorter");
    offset += done;
    to = to.subspan(size_t(done));
  }
  return Status::success();
}

SharedBytes::SharedBytes(std::vector<std::byte> given) {
  auto kept = std::make_shared<std::vector<std::byte>>(std::move(given));
  bytes = *kept;
  memory = std::move(kept);
}

Result<SharedBytes> mapFile(const std::string &path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0)
    return cannotRead(path, errno);
  if (!S_ISREG(facts.st_mode) || facts.st_size == 0) {
    auto read = readFile(path);
    if (!read)
      return std::move(read).status();
    return SharedBytes(*std::move(read));
  }
  Descriptor file(path);
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
    return cannotRead(path, errno);
  auto size = size_t(facts.st_size);
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return cannotRead(path, errno);
  SharedBytes mapped;
  mapped.bytes = {static_cast<const std::byte *>(data), size};
  mapped.memory = std::shared_ptr<const void>(data, [size](const void *memory) {
    ::munmap(const_cast<void *>(memory), size);
  });
  return mapped;
}

Result<std::vector<std::byte>> readBegin(const std::string &path, size_t most) {
  Descriptor file(path);
  if (file.get() < 0)
    return cannotRead(path, errno);
  std::vector<std::byte> bytes(most);
  size_t filled = 0;
  ssize_t done = 1;
  while (done > 0 && filled < most) {
    done = retrying([&] {
      return ::read(file.get(), bytes.data() + filled, most - filled);
    });
    if (done < 0)
      return cannotRead(path, errno);
    filled += size_t(done);
  }
  bytes.resize(filled);
  return bytes;
}

Status replaceFile(const std::string &path, std::span<const Bytes> pieces,
                   std::optional<unsigned> mode) {
  auto file = artifact::AtomicFile::create(path, mode);
  if (!file)
    return std::move(file).status();
  for (Bytes piece : pieces)
    if (Status status = file->write(piece.data(), piece.size()); !status)
      return status;
  return file->commit();
}

} // namespace tandem::io
