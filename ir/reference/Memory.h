//===- Memory.h - memory that refs share, for the reference --------------===//
//
// A storage is a list of numbers. A ref is a storage and, for each of the ref's
// elements, the position in it: a view of a ref is then the view's own
// reference evaluation, applied to positions, and aliases need no care.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_MEMORY_H
#define TANDEM_IR_REFERENCE_MEMORY_H

#include "ir/Dialect.h"
#include "ir/reference/Array.h"

#include <memory>
#include <optional>
#include <string>

namespace tandem::reference {

/// Memory, as elements of one type.
struct Memory {
  Memory(mlir::Type element, int64_t size);
  /// Storage that holds these elements.
  Memory(mlir::Type element, const std::vector<double> &elements);

  void free();
  /// As many elements as it was made with, none of them filled.
  void allocate();
  bool isFreed() const { return filled.empty(); }

  std::string name; ///< of the argument or declared storage; "" if made inside
  mlir::Type element;
  std::vector<double> elements;
  std::vector<bool> filled; ///< which elements were written; empty if freed
};

/// A handle to storage: what it shows, and as which type of elements.
struct Ref {
  /// The whole of `storage`, row-major.
  static Ref whole(std::shared_ptr<Memory> storage,
                   llvm::ArrayRef<int64_t> shape);
  /// New storage that holds `value`.
  static Ref holding(RefType type, const Array &value);
  /// The view that `op`, which can be taken of refs, makes of this ref.
  Ref view(mlir::Operation *op) const;
  /// The view that the steps of a role's alias make (dictionaries with `op` and
  /// the attributes of that op). Fails, with an error at `loc`, where a step is
  /// no view of what the one before it shows.
  mlir::FailureOr<Ref> view(mlir::ArrayAttr steps, mlir::Location loc) const;

  /// The elements; nothing if one of them is freed or was never filled.
  std::optional<Array> read() const;
  /// False, and nothing is written, if the storage is freed.
  [[nodiscard]] bool write(const Array &value) const;

  std::shared_ptr<Memory> storage;
  Array positions;
  mlir::Type element;
};

} // namespace tandem::reference

#endif
