//===- InspectTypes.h - which op is computed in which type ----------------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTTYPES_H
#define TANDEM_TOOLS_TANDEM_INSPECTTYPES_H

#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Prints, of each op of the model `path` that computes floats, the type of its
/// arithmetic and why it is that, and how many ops each type has.
Status printTypes(const std::string &path, CompileOptions options);

} // namespace tandem::commands

#endif
