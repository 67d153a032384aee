//===- Relay.h - between an editor and MLIR's language server -------------===//
//
// All messages pass as they are, but for texts, of which MLIR's server gets
// what has no syntax errors (Syntax.h), and for what it says:
//   diagnostics with the syntax errors
//   hover       what Tandem makes of the op: the gradient that follows from it,
//               its kernels, what is saved or computed again
//   definition  of an op of a backward, where the server knows none: the op of
//               the forward whose gradient it computes, or its place in the
//               model
// What `tandem inspect` compiles with is an initialization option:
// {"tandem": {"options": ["--optimizer=adamw:lr=1e-3"]}}.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_LSP_RELAY_H
#define TANDEM_TOOLS_LSP_RELAY_H

#include "mlir/IR/DialectRegistry.h"

#include <cstdio>
#include <string>

namespace tandem::editor {

/// Passes messages on until the server's answers end, which it closes when the
/// editor's messages end or it exits. `self` is this program's path: `tandem`
/// lies beside it.
void relay(const mlir::DialectRegistry &registry, const std::string &self,
           std::FILE *fromEditor, int toServer, std::FILE *fromServer,
           int toEditor);

} // namespace tandem::editor

#endif
