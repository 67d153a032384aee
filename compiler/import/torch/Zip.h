//===- Zip.h - the members of a zip file ----------------------------------===//
//
// The members of PyTorch's archives are stored as they are, in one folder of
// any name. What a member says of its size is not believed beyond the size of
// the archive itself, unless it is compressed JSON of a plausible size.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_ZIP_H
#define TANDEM_COMPILER_IMPORT_TORCH_ZIP_H

#include "runtime/artifact/Status.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <vector>

struct zip;

namespace tandem::torch {

class Zip {
public:
  static Result<std::unique_ptr<Zip>> open(const std::string &path);
  /// One that is a member of another; `bytes` have to live as long.
  static Result<std::unique_ptr<Zip>> openBytes(llvm::StringRef bytes);
  ~Zip();

  bool has(const std::string &name) const;
  /// The bytes of a member.
  Result<std::string> read(const std::string &name) const;
  /// Names of members below `prefix` that end in `suffix`.
  std::vector<std::string> list(llvm::StringRef prefix,
                                llvm::StringRef suffix) const;

private:
  explicit Zip(struct zip *archive);
  struct zip *archive;
  std::string folder; ///< that everything is in: "model/"
};

} // namespace tandem::torch

#endif
