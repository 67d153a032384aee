//===- CompiledFacts.h - what is known of what a session compiled ---------===//
#ifndef TANDEM_TOOLS_TANDEM_COMPILEDFACTS_H
#define TANDEM_TOOLS_TANDEM_COMPILEDFACTS_H

#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Returns the facts of an artifact (ReportFacts.h), and, if the session
/// compiled it and recorded the passes, `passes` (docs/INSPECT_JSON.md).
Result<nlohmann::ordered_json>
compiledFacts(const artifact::ArtifactReader &reader,
              const nlohmann::ordered_json &planned, Session &session);

/// The same for a page, which also has times of passes, which differ each time,
/// and the timeline of a step. `path` is as TimelineFacts.h says.
Result<nlohmann::ordered_json> pageFacts(const artifact::ArtifactReader &reader,
                                         const nlohmann::ordered_json &planned,
                                         Session &session,
                                         const std::string &path);

} // namespace tandem::commands

#endif
