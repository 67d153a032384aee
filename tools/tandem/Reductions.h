//===- Reductions.h - ways to make a module smaller -----------------------===//
//
// What `tandem reduce` tries. A way has places in a module, which it counts in
// an order that is the same in a copy of the module, and makes the module
// smaller at any of them. What comes of it may be wrong, or another program:
// whoever asks checks that.
//
// MLIR's own reducer (mlir-reduce) erases ops whatever uses them, which leaves
// little of a program in values, and knows no roles; so the ways are these, as
// in CIRCT, and MLIR's passes are one of them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_REDUCTIONS_H
#define TANDEM_TOOLS_TANDEM_REDUCTIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <string>

namespace tandem::commands {

struct Reduction {
  const char *name;
  /// Returns the number of places.
  size_t (*count)(mlir::ModuleOp module);
  /// Changes the places from `begin` on, to `end`.
  void (*apply)(mlir::ModuleOp module, size_t begin, size_t end);
};

/// Returns all ways, those first that make a module much smaller.
mlir::ArrayRef<Reduction> reductions();

/// Erases ops that nothing uses and that do nothing.
void eraseDeadOps(mlir::ModuleOp module);

/// How much there is in a module.
struct ModuleSize {
  size_t ops = 0, constants = 0, arguments = 0, results = 0, functions = 0;

  static ModuleSize of(mlir::ModuleOp module);
  /// A smaller module weighs less. An op weighs more than the constant that
  /// takes its place.
  size_t weight() const;
  std::string text() const;
};

} // namespace tandem::commands

#endif
