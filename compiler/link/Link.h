//===- Link.h - one model of those that a run-time graph composes ---------===//
//
// Pieces that were compiled apart, and composed while a program ran, become one
// captured module: each call of a program is replaced by the graph of its
// model, each op of the run-time graph by ops of the dialect. What cannot be
// taken in stays a node of the run-time graph.
//
// The nodes that are taken in are closed: between two of them lies none that
// stays, since the linked program could not run around it. So nothing is taken
// in that what stays is computed of; or nothing that is computed of what stays;
// whichever leaves more.
//
// Params and states are called PIECE.NAME, where the piece has the model's name
// (a second loaded model of one name: NAME2). Inputs and outputs keep their
// names where these are unique, and are PIECE.NAME else. The only root of the
// graph, if it is one element, is the loss.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_LINK_LINK_H
#define TANDEM_COMPILER_LINK_LINK_H

#include "compiler/import/GraphFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tandem::link {

/// A model that nodes of the graph call.
struct Piece {
  std::string path;                         ///< for messages
  std::string model;                        ///< the name
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< at `capture`; null: see `why`
  std::string why;                          ///< no module of it is there
};

/// A node that is not taken in, and why.
struct Left {
  std::string node; ///< "'clip' (node 3)"
  std::string why;
};

/// An input of the linked program.
struct LinkedInput {
  std::string name;
  std::string from;  ///< for messages: "leaf (node 4)"
  int64_t leaf = -1; ///< the number of that leaf; -1: it is something else
};

struct Linked {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< at `capture`
  std::vector<std::string> programs; ///< the pieces, a name for each call
  int ops = 0;                       ///< of the run-time graph
  std::vector<LinkedInput> inputs;
  std::vector<Left> left;
};

/// Returns the module. A status, or diagnostics of the context, say what is
/// wrong; a piece that no node calls is an error, and so is a graph of which
/// nothing can be taken in.
Result<Linked> linkGraph(const GraphFile &graph, llvm::ArrayRef<Piece> pieces,
                         mlir::MLIRContext &context);

/// True if a module at `capture` has the digest that an artifact carries,
/// whatever output the artifact differentiates.
bool hasDigest(mlir::ModuleOp module, const std::string &digest);

} // namespace tandem::link

#endif
