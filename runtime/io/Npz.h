//===- Npz.h - NumPy's archive of arrays ----------------------------------===//
//
// An .npz file is a zip archive of .npy files. Reads stored and deflated
// members, zip64 included, and checks their checksums; writes stored members
// in the order of their names, with a fixed date, so that equal arrays give
// equal bytes. Any bytes give a value or one Status. Before a member is
// unpacked, its stated size is compared with the type and shape at its begin,
// and whoever reads it may refuse these; what is allocated is bounded by the
// file's size and deflate's best ratio (about 1000 to 1).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_NPZ_H
#define TANDEM_RUNTIME_IO_NPZ_H

#include "runtime/io/Array.h"

#include <functional>
#include <map>

namespace tandem::io {

/// Says whether an array of that type and shape is wanted at all; may be empty.
using ArrayCheck =
    std::function<Status(artifact::DType, std::span<const int64_t>)>;

/// The table of contents of an .npz file; `file` must outlive it.
class NpzArchive {
public:
  /// Reads the table of contents. No member is unpacked.
  static Result<NpzArchive> open(Bytes file);

  /// Returns the names of the arrays (without ".npy"), sorted.
  std::vector<std::string> names() const;

  /// Unpacks and parses the array `name`, if `check` wants it.
  Result<Array> read(const std::string &name,
                     const ArrayCheck &check = {}) const;

private:
  struct Member {
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed, unpacked, header;
  };

  Status readDirectory(uint64_t count, uint64_t offset, uint64_t bytes);
  Result<Bytes> packedBytes(const Member &member) const;
  Result<std::vector<std::byte>> unpack(const Member &member,
                                        const ArrayCheck &check) const;

  Bytes file_;
  std::map<std::string, Member> members_;
};

/// Reads the array `member` of the file `path`; if it is empty, the array
/// `otherwise`, or the only one there is. Messages begin with the path and name
/// the arrays that exist.
Result<Array> readNpz(const std::string &path, const std::string &member,
                      const std::string &otherwise,
                      const ArrayCheck &check = {});

/// Replaces the file `path`. Arrays of bf16 are written as f32.
Status writeNpz(const std::string &path,
                const std::map<std::string, ArrayView> &arrays);

} // namespace tandem::io

#endif
