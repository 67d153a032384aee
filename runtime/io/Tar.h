//===- Tar.h - the files in a tar archive ---------------------------------===//
//
// Reads headers of ustar, pax and GNU one behind the other, wherever their
// bytes come from, and says where the files' bytes lie; nothing is unpacked,
// and nothing but headers is read. Any bytes give files that lie inside of the
// archive, or one Status.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_TAR_H
#define TANDEM_RUNTIME_IO_TAR_H

#include "runtime/io/Array.h"

#include <functional>

namespace tandem::io {

/// A file in an archive.
struct TarMember {
  std::string name;
  int64_t offset = 0; ///< where its bytes begin in the archive
  int64_t size = 0;
  bool isLink = false;    ///< to another file; it has no bytes
  bool isSpecial = false; ///< a device or a pipe; it has no bytes
};

class TarReader {
public:
  /// Fills `to` with the bytes of the archive from `offset` on, which it has.
  using Read = std::function<Status(int64_t offset, std::span<std::byte> to)>;

  /// `size`: the bytes of the archive.
  TarReader(Read read, int64_t size) : read_(std::move(read)), size_(size) {}

  /// Returns the next file or link; nothing at the end. Folders, devices and
  /// pipes are passed over. Fails with Usage where the archive is damaged or
  /// cut off, Unsupported where a file is in pieces (sparse, or over several
  /// archives).
  Result<std::optional<TarMember>> next();

private:
  struct Header;
  Status readHeader(Header &header, bool &isEnd);
  Status checkEnd();
  Result<std::string> readText(const Header &header);
  Status readPax(const Header &header);
  std::string at() const;

  Read read_;
  int64_t size_ = 0, place_ = 0;
  bool isOver_ = false;
  /// Of the header that follows, where its own fields do not hold it.
  std::optional<std::string> longName_;
  std::optional<int64_t> longSize_;
};

} // namespace tandem::io

#endif
