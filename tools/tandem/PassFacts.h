//===- PassFacts.h - what the passes of a compilation did, as JSON --------===//
#ifndef TANDEM_TOOLS_TANDEM_PASSFACTS_H
#define TANDEM_TOOLS_TANDEM_PASSFACTS_H

#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Session.h"

namespace tandem::commands {

/// Returns the facts of an artifact (ReportFacts.h). If the session compiled it
/// and recorded the passes, also `passes` (docs/INSPECT_JSON.md), and with
/// times, which differ each time, their `seconds` and `phase_seconds`: a page
/// has these, and what `inspect --json` prints has not.
Result<nlohmann::ordered_json>
compiledFacts(const artifact::ArtifactReader &reader,
              const nlohmann::ordered_json &planned, Session &session,
              bool hasTimes);

} // namespace tandem::commands

#endif
