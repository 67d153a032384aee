//===- Syntax.h - syntax errors of a text that an editor has --------------===//
//
// MLIR's server reads a text by a function that malformed ones crash
// (ir/ParseText.h). So it gets them without the parts that are malformed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_LSP_SYNTAX_H
#define TANDEM_TOOLS_LSP_SYNTAX_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace tandem::editor {

struct Syntax {
  /// What MLIR's server gets: parts (between "// -----", as it cuts a text)
  /// with syntax errors are blank, all else stands where it stood.
  std::string text;
  llvm::json::Array errors; ///< of these parts: diagnostics of LSP

  static Syntax of(llvm::StringRef text, const mlir::DialectRegistry &registry);
};

} // namespace tandem::editor

#endif
