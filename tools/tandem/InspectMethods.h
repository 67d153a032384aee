//===- InspectMethods.h - how kernels can be computed ---------------------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTMETHODS_H
#define TANDEM_TOOLS_TANDEM_INSPECTMETHODS_H

#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Prints, of each distinct kernel of the model or dump `path` for which there
/// are several methods, what the tables of methods say: which is chosen, and
/// the reason against each other one. As one JSON object if `asJson`.
Status printMethods(const std::string &path, CompileOptions options,
                    bool asJson);

} // namespace tandem::commands

#endif
