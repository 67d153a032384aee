//===- PlannedFacts.h - what a plan says that an artifact does not --------===//
#ifndef TANDEM_TOOLS_TANDEM_PLANNEDFACTS_H
#define TANDEM_TOOLS_TANDEM_PLANNEDFACTS_H

#include "compiler/Compile.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// Returns, for each module after `plan`, its programs (docs/INSPECT_JSON.md):
/// where in the model each launch is from, and its schedule; of forward,
/// backward and evaluate also the ops.
nlohmann::ordered_json plannedFacts(const Modules &modules);

} // namespace tandem::commands

#endif
