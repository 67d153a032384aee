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

#include "runtime/io/File.h"

#include <functional>
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
  static Result<Safetensors> parse(SharedBytes file);

  /// Reads the file `path`; messages begin with it.
  static Result<Safetensors> read(const std::string &path);
  /// The same of a file that nobody writes to: only what is looked at is read.
  static Result<Safetensors> map(const std::string &path);

  const std::map<std::string, Entry> &entries() const { return entries_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }
  size_t bytes() const { return file_.bytes.size(); }

  /// Returns the tensor `name`, whose bytes this object owns, or nothing.
  std::optional<ArrayView> find(const std::string &name) const;

private:
  SharedBytes file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// The type of a tensor.
struct TensorType {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
};

/// Returns the length field, the header and its padding, and appends to `order`
/// the names of the tensors in the order in which their bytes follow.
std::vector<std::byte>
safetensorsHeader(const std::map<std::string, TensorType> &tensors,
                  const std::map<std::string, std::string> &metadata,
                  std::vector<std::string> &order);

/// Takes the next bytes of a tensor.
using TakeBytes = std::function<Status(Bytes)>;

/// Replaces the file `path`. `give` passes the bytes of one tensor on, in
/// pieces of any sizes; the whole file is in nobody's memory.
Status writeSafetensors(
    const std::string &path, const std::map<std::string, TensorType> &tensors,
    const std::map<std::string, std::string> &metadata,
    const std::function<Status(const std::string &, const TakeBytes &)> &give);

/// The same of tensors in memory.
Status writeSafetensors(const std::string &path,
                        const std::map<std::string, ArrayView> &tensors,
                        const std::map<std::string, std::string> &metadata);

} // namespace tandem::io

#endif
