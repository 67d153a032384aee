//===- InspectShardings.h - which ranks have what -------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTSHARDINGS_H
#define TANDEM_TOOLS_TANDEM_INSPECTSHARDINGS_H

#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Prints, of each program of the model or dump `path`, how the arguments and
/// results are divided among the ranks of the mesh, and each collective: its
/// bytes, what needs it, and where that is.
Status printShardings(const std::string &path, CompileOptions options);

} // namespace tandem::commands

#endif
