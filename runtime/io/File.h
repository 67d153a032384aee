//===- File.h - whole files, in and out -----------------------------------===//
//
// Reading returns all bytes of a file. Writing replaces a file: the new content
// goes into a temporary file of the same folder, is synced, takes the name by
// rename, and the folder is synced; so a reader sees the old file or the new
// one, and a full disk or a crash leaves the old one. Messages hold the path
// and the system's reason.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_FILE_H
#define TANDEM_RUNTIME_IO_FILE_H

#include "runtime/io/Array.h"

#include <memory>

namespace tandem::io {

/// Returns all bytes of the file `path`.
Result<std::vector<std::byte>> readFile(const std::string &path);

/// Bytes and what keeps them.
struct SharedBytes {
  Bytes bytes;
  std::shared_ptr<const void> memory;

  SharedBytes() = default;
  explicit SharedBytes(std::vector<std::byte> bytes);
};

/// Maps the file `path`, which is not written to meanwhile (it may be
/// replaced); reads what is no regular file.
Result<SharedBytes> mapFile(const std::string &path);

/// A file that is open, of which pieces are read. Several threads may read.
class InputFile {
public:
  /// Opens the regular file `path`.
  static Result<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();

  int64_t size() const { return size_; }
  /// Fills `to` with what begins at `offset`; fails where the file ends before.
  Status readAt(int64_t offset, std::span<std::byte> to) const;

private:
  explicit InputFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

/// Returns the first `most` bytes of the file `path`, or all that it has.
Result<std::vector<std::byte>> readBegin(const std::string &path, size_t most);

/// Replaces the file `path` by the concatenation of `pieces`. A symbolic link
/// is followed; the permissions of a previous file are kept, unless they are to
/// be `mode`; a device or a pipe is written to directly. When it fails nothing
/// of the new content remains.
Status replaceFile(const std::string &path, std::span<const Bytes> pieces,
                   std::optional<unsigned> mode = {});

} // namespace tandem::io

#endif
