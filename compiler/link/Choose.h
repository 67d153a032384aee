//===- Choose.h - which nodes of a run-time graph are taken in ------------===//
//
// Internal to the linker.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_LINK_CHOOSE_H
#define TANDEM_COMPILER_LINK_CHOOSE_H

#include "compiler/link/Link.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::link {

struct Choice {
  std::vector<int> taken;            ///< in the order of the forward
  std::vector<const Piece *> pieces; ///< of each node; null: no program
  std::vector<Left> left;

  bool isTaken(int node) const { return isIn[static_cast<size_t>(node)]; }
  std::vector<bool> isIn; ///< of each node
};

/// Finds the pieces of the nodes, and chooses.
Result<Choice> choose(const GraphFile &graph, llvm::ArrayRef<Piece> pieces);

/// The graph function of a module at `capture`.
mlir::func::FuncOp graphOf(const Piece &piece);

/// Returns "'clip' (node 3)".
std::string describe(const GraphFile &graph, int node);

} // namespace tandem::link

#endif
