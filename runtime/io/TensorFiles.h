//===- TensorFiles.h - named tensors, in one file or in several -----------===//
//
// What `--params`, `--resume` and tdm_load read: a safetensors file, an index
// (TensorIndex.h), or a folder with one index. Files are mapped, so that what
// nobody asks for is not read. Opening looks at all headers: a file that is
// missing, cut short or of another index, holes, overlaps and other shapes are
// errors that name the tensor and the file. The bytes of a piece are compared
// with its checksum before they are given.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_TENSORFILES_H
#define TANDEM_RUNTIME_IO_TENSORFILES_H

#include "runtime/io/Safetensors.h"
#include "runtime/io/TensorIndex.h"

namespace tandem::io {

class TensorFiles {
public:
  struct Piece {
    TensorIndex::Piece place; ///< the file without its folder
    Bytes bytes;
    /// Of the bytes, until they were compared with it.
    mutable std::optional<uint32_t> checksum;
  };
  struct Entry {
    artifact::DType dtype;
    std::vector<int64_t> shape;
    std::vector<Piece> pieces;

    int64_t bytes() const {
      return elementCount(shape).value_or(0) * byteSize(dtype);
    }
  };

  /// Messages begin with the path.
  static Result<TensorFiles> open(const std::string &path);

  /// Returns the file that `path` means: of a folder, the one index in it.
  static Result<std::string> fileOf(const std::string &path);

  /// Returns the metadata of a file or of an index alone.
  static Result<std::map<std::string, std::string>>
  metadataOf(const std::string &path);

  const std::map<std::string, Entry> &entries() const { return entries_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }
  /// True for an index.
  bool isIndex() const { return isIndex_; }

  /// Returns the block of a tensor that begins at `begin`, inside of it. Fails,
  /// naming tensor and file, where a checksum differs.
  Result<Array> read(const std::string &name, std::span<const int64_t> begin,
                     std::span<const int64_t> shape) const;
  /// Returns a whole tensor.
  Result<Array> read(const std::string &name) const;

  /// Fails, naming tensor and file, where the bytes of a piece are not those of
  /// its checksum.
  static Status verify(const std::string &name, const Piece &piece);

private:
  Status addFile(SharedBytes bytes);
  Status addIndex(const std::string &path, std::string_view text);

  std::vector<Safetensors> files_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
  bool isIndex_ = false;
};

/// A block of a dense array.
struct Block {
  std::span<const int64_t> whole, begin;
};
/// Copies a block of `sizes` between two dense arrays.
void copyBlock(const std::byte *from, const Block &source, std::byte *to,
               const Block &target, std::span<const int64_t> sizes,
               int64_t elementBytes);

} // namespace tandem::io

#endif
