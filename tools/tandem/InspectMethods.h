//===- InspectMethods.h - how kernels can be computed ---------------------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTMETHODS_H
#define TANDEM_TOOLS_TANDEM_INSPECTMETHODS_H

#include "tools/tandem/Session.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// Prints, of each distinct kernel of the model or dump `path` for which there
/// are several methods, what the tables of methods say: which is chosen, and
/// the reason against each other one. As one JSON object if `asJson`.
Status printMethods(const std::string &path, CompileOptions options,
                    bool asJson);

/// Adds to what PlannedFacts.h says of modules after `plan` which methods were
/// considered for their kernels (docs/INSPECT_JSON.md): `methods` of a target,
/// equal kernels once, and the place among them of a launch.
void addMethods(nlohmann::ordered_json &planned, const Modules &modules);

} // namespace tandem::commands

#endif
