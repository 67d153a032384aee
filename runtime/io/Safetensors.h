//===- Safetensors.h - named tensors in one file --------------------------===//
//
// The format of parameters and checkpoints: u64 header length, a JSON object
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}},
// then the tensors' bytes, gapless. Reading refuses offsets out of range,
// overlaps, holes, and byte counts that disagree with dtype and shape. Writing
// is deterministic: names sorted, tensors in descending order of element size
// (so that each is aligned), then name. Any bytes give a value or one Status.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_SAFETENSORS_H
#define TANDEM_RUNTIME_IO_SAFETENSORS_H

#include "runtime/io/Array.h"

#include <map>

namespace tandem::io {

/// The contents of a safetensors file, with the bytes they refer to.
class Safetensors {
public:
  struct Entry {
    artifact::DType dtype;
    std::vector<int64_t> shape;
    size_t offset; ///< in the file
    size_t bytes;
  };

  /// Checks and takes over the bytes of a file.
  static Result<Safetensors> parse(std::vector<std::byte> file);

  /// Reads the file `path`; messages begin with it.
  static Result<Safetensors> read(const std::string &path);

  const std::map<std::string, Entry> &entries() const { return entries_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }

  /// Returns the tensor `name`, whose bytes this object owns, or nothing.
  std::optional<ArrayView> find(const std::string &name) const;

private:
  std::vector<std::byte> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Returns the length field, the header and its padding, and appends to `order`
/// the tensors in the order in which their bytes follow.
std::vector<std::byte>
safetensorsHeader(const std::map<std::string, ArrayView> &tensors,
                  const std::map<std::string, std::string> &metadata,
                  std::vector<ArrayView> &order);

/// Replaces the file `path`.
Status writeSafetensors(const std::string &path,
                        const std::map<std::string, ArrayView> &tensors,
                        const std::map<std::string, std::string> &metadata);

} // namespace tandem::io

#endif
