//===- Storage.h - which arguments a program may overwrite ----------------===//
//
// A program overwrites an argument's storage for two reasons: it is what it
// updates, or it is a saved value that nobody needs any more. Neither is
// allowed where another argument shows the same storage.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_STORAGE_H
#define TANDEM_PASSES_PLAN_STORAGE_H

#include "ir/Signature.h"

namespace tandem {

/// The storage of a program's arguments, as their roles say, until these
/// change.
class ArgumentStorage {
public:
  explicit ArgumentStorage(mlir::func::FuncOp func);

  /// The argument that an update called `name` gives the new value of: where a
  /// backward has two of that name, the one that it takes as it finds it;
  /// `cotangent of o` is a cotangent.
  std::optional<unsigned> updatedArgument(llvm::StringRef name) const;

  /// True if no other argument shows the storage of argument `index`. An other
  /// one does if there is a declared alias between them, or if it is the same
  /// value in the other pass.
  bool isOwn(unsigned index) const { return own[index]; }

  /// True if argument `index` is a saved value that only this program reads:
  /// made by the program's forward for it alone, in a buffer of its own.
  bool isDonated(unsigned index) const { return donated[index]; }

private:
  /// The name of the storage that an argument shows: its own, or that of what
  /// it is declared to be an alias of.
  mlir::StringAttr storageOf(RoleAttr role);
  void findDonated();

  mlir::func::FuncOp func;
  llvm::DenseMap<llvm::StringRef, unsigned> updated, cotangents;
  llvm::SmallVector<bool> own, donated;
};

} // namespace tandem

#endif
