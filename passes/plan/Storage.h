//===- Storage.h - which arguments a program may overwrite ----------------===//
//
// A program overwrites an argument's storage for two reasons: it is what it
// updates, or it is a saved value that nobody needs any more. Neither is
// allowed where another argument shows the same storage.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_STORAGE_H
#define TANDEM_PASSES_PLAN_STORAGE_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// The argument that an update called `name` gives the new value of: where a
/// backward has two of that name, the one that it takes as it finds it;
/// `cotangent of o` is a cotangent.
std::optional<unsigned> updatedArgument(mlir::func::FuncOp func,
                                        llvm::StringRef name);

/// For each argument: whether no other one shows its storage. An other one does
/// if there is a declared alias between them, or if it is the same value in the
/// other pass.
llvm::SmallVector<bool> haveOwnStorage(mlir::func::FuncOp func);

/// True if argument `index` is a saved value that only this program reads: made
/// by the program's forward for it alone, in a buffer of its own.
bool isDonated(mlir::func::FuncOp func, unsigned index);

} // namespace tandem

#endif
