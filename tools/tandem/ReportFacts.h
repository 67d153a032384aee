//===- ReportFacts.h - all that is known of a compilation, as JSON --------===//
//
// What `tandem inspect --json` prints and a report shows
// (docs/INSPECT_JSON.md): the facts of the artifact, and what the compiler's
// tables make of them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_REPORTFACTS_H
#define TANDEM_TOOLS_TANDEM_REPORTFACTS_H

#include "passes/target/Machines.h"
#include "tools/commands/ArtifactFacts.h"

#include <optional>

namespace tandem::commands {

/// Returns the artifact's facts with `summaries`, one for each manifest: peaks,
/// what programs and kernels cost, and the time that they are expected to take.
/// Beside an artifact that was just compiled, `planned` is a list for each
/// size of what its modules say (PlannedFacts.h); else it is empty.
Result<nlohmann::ordered_json>
reportFacts(const artifact::ArtifactReader &reader,
            const nlohmann::ordered_json &planned);

/// The typical device of a target, which predictions are of.
const DeviceRow &typicalDevice(const artifact::Target &target);

/// The seconds that the kernels of a step are predicted to take, one after the
/// other: of `step`, else of `forward` and `backward`. In the first size; as in
/// `summaries`. Nothing where there is neither.
std::optional<double> predictedStep(const artifact::Manifest &manifest);

} // namespace tandem::commands

#endif
