//===- TensorIndex.h - which file has which tensor ------------------------===//
//
// Tensors in several safetensors files, and beside them a file
// NAME.safetensors.index.json, as Hugging Face's loaders know it:
//
//   {"metadata": {"total_size": BYTES, KEY: TEXT, ...},
//    "weight_map": {TENSOR: FILE, ...},
//    "tandem": {
//      "files": {FILE: {"bytes": SIZE, "checksums": {NAME: CRC32, ...}}, ...},
//      "tensors": {TENSOR: {"shape": [...], "pieces": [
//        {"file": FILE, "name": NAME, "begin": [...], "shape": [...]}, ...]}}}}
//
// `weight_map` has the tensors that lie whole in one file. What is cut is in
// "tensors": each piece is a tensor of a file, under a name of its own, and
// `begin` is where it begins in each dimension of the whole. Checksums are of a
// tensor's bytes in its file. Without "tandem" it is an index of somebody else.
//
// Any text gives a value or one Status. What is not looked at here is whether
// the files have what the index says (TensorFiles.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_TENSORINDEX_H
#define TANDEM_RUNTIME_IO_TENSORINDEX_H

#include "runtime/io/Array.h"

#include <map>

namespace tandem::io {

struct TensorIndex {
  struct Piece {
    std::string file, name;
    std::vector<int64_t> begin, shape;
  };
  struct Cut {
    std::vector<int64_t> shape;
    std::vector<Piece> pieces; ///< inside of the shape
  };
  struct File {
    int64_t bytes = 0;
    std::map<std::string, uint32_t> checksums;
  };

  int64_t totalSize = 0; ///< bytes of all tensors
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> weightMap; ///< tensor: file
  std::map<std::string, Cut> cut;
  std::map<std::string, File> files; ///< of somebody else's: none

  static Result<TensorIndex> parse(std::string_view text);
  std::string text() const;

  /// Adds what another one has; pieces of one tensor come together.
  void add(TensorIndex other);
};

/// True for a path that names an index: it ends in ".safetensors.index.json".
bool isIndexName(std::string_view path);

/// True for a text that begins as that of an index does, and not as a
/// safetensors file.
bool isIndexText(Bytes begin);

/// True if the blocks of a tensor of `shape` cover it, each element once.
/// `problem` says what they do instead.
bool covers(std::span<const int64_t> shape,
            std::span<const TensorIndex::Piece> pieces, std::string &problem);

} // namespace tandem::io

#endif
