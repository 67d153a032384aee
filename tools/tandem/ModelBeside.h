//===- ModelBeside.h - what an artifact was compiled from -----------------===//
#ifndef TANDEM_TOOLS_TANDEM_MODELBESIDE_H
#define TANDEM_TOOLS_TANDEM_MODELBESIDE_H

#include "compiler/link/Link.h"
#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Returns the model that lies beside an artifact, X.mlir or X.json of X.tdm,
/// at `capture`; or, without a module, why it is not that of the artifact.
Result<link::Piece> modelBeside(Session &session, const std::string &artifact);

} // namespace tandem::commands

#endif
