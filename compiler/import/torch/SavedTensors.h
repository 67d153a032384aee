//===- SavedTensors.h - dictionaries of tensors that torch.save wrote -----===//
//
// torch.save writes a zip file: storages as they are, and a pickle that says
// which tensor is where. A pickle is a program, and it is not run. What it says
// of a dictionary of tensors has one form, a few instructions that make
// numbers, texts, tuples and dictionaries, and calls of four names; that form
// is read as data. Nothing that is named is looked up, and a pickle that says
// anything else is refused.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_SAVEDTENSORS_H
#define TANDEM_COMPILER_IMPORT_TORCH_SAVEDTENSORS_H

#include "compiler/import/TensorData.h"
#include "runtime/artifact/Status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tandem::torch {

struct SavedTensor {
  std::string name;
  TensorPtr data;  ///< one for all that show one storage alike; null if unread
  std::string why; ///< it is unread
  std::string storage;       ///< the name of the one it shows
  bool requiresGrad = false; ///< a parameter that does
};

/// Gives the bytes of a storage by its name.
using StorageReader =
    llvm::function_ref<Result<std::string>(const std::string &)>;

/// Reads a file of torch.save whose content is a dictionary of tensors.
/// Unsupported if it is well formed and has something else in it.
Result<std::vector<SavedTensor>> readSavedFile(llvm::StringRef file);

/// Reads what its pickle says, with the storages beside it.
Result<std::vector<SavedTensor>> readSavedTensors(llvm::StringRef pickle,
                                                  StorageReader storage);

/// Elements of `size` bytes in row-major order, from a storage in which they
/// stand `strides` apart; nothing if they lie outside.
std::optional<std::string> denseOf(llvm::StringRef storage,
                                   const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &strides,
                                   int64_t offset, int64_t size);

} // namespace tandem::torch

#endif
