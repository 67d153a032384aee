//===- ProfileFacts.h - what a profile found, as JSON ---------------------===//
//
// What `tandem profile --json` prints (docs/PROFILE_JSON.md): measured times
// beside what the machine and the compiler's tables would let one expect, and
// where in the model they are spent.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_PROFILEFACTS_H
#define TANDEM_TOOLS_TANDEM_PROFILEFACTS_H

#include "tools/tandem/Measured.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// Where a profile is from.
struct Profiled {
  std::string source; ///< the file
  const runtime::Model &model;
  const artifact::Program &program;
  /// Of the model's target, as PlannedFacts.h says; null of an artifact.
  nlohmann::ordered_json planned;
};

Result<nlohmann::ordered_json> profileFacts(const Profiled &profiled,
                                            const Measured &measured);

/// Prints what people want to know of it.
void printProfile(const nlohmann::ordered_json &facts);

} // namespace tandem::commands

#endif
