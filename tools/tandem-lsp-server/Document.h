//===- Document.h - a text of the dialect, and what its ops say -----------===//
#ifndef TANDEM_TOOLS_LSP_DOCUMENT_H
#define TANDEM_TOOLS_LSP_DOCUMENT_H

#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>
#include <optional>

namespace tandem::editor {

/// A text that was parsed. One thread uses it.
class Document {
public:
  /// Returns null where the text is no module; why is the server's to say.
  static std::unique_ptr<Document> parse(llvm::StringRef text,
                                         const mlir::DialectRegistry &registry);

  /// Returns the op whose name, or whose results' names, stand there.
  mlir::Operation *opAt(llvm::lsp::Position position) const;
  /// Returns where the name of `op` stands.
  llvm::lsp::Range nameOf(mlir::Operation *op) const;

  /// Of an op of a backward, in a dump: the op of the forward whose gradient it
  /// computes, or null.
  mlir::Operation *forwardOf(mlir::Operation *op) const;
  /// The ops that compute the gradient of `op`, in their order.
  llvm::SmallVector<mlir::Operation *> gradientOf(mlir::Operation *op) const;

private:
  Document() = default;

  std::unique_ptr<mlir::MLIRContext> context;
  mutable llvm::SourceMgr sources;
  mlir::AsmParserState state;
  mlir::OwningOpRef<mlir::Operation *> module;
};

/// A place in a file that locations of ops speak of.
struct Place {
  std::string file;
  unsigned line = 0, column = 0; ///< from 1
};

/// Returns the place in the model that `op` of a dump is from, if its location
/// says one in another file than a text that was read without a name.
std::optional<Place> placeInModel(mlir::Operation *op);

} // namespace tandem::editor

#endif
