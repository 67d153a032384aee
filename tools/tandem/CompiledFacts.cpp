//===- CompiledFacts.cpp - what is known of what a session compiled -------===//
#include "tools/tandem/CompiledFacts.h"

#include "tools/tandem/TimelineFacts.h"

#include "mlir/Pass/PassRegistry.h"

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// What a pass is for, as `tandem help passes` says it.
static std::string purposeOf(const std::string &name) {
  const mlir::PassInfo *info = mlir::PassInfo::lookup("tandem-" + name);
  if (!info)
    info = mlir::PassInfo::lookup(name);
  return info ? info->getPassDescription().str() : "";
}

static void addPasses(Json &facts, Session &session, bool hasTimes) {
  Json passes = Json::array();
  for (const PassWork &work : session.passes().passes) {
    Json row = {{"phase", work.phase}};
    if (!work.label.empty())
      row["part"] = work.label;
    row["pass"] = work.name;
    row["number"] = work.number;
    row["purpose"] = purposeOf(work.name);
    if (work.before) {
      row["runs"] = work.runs;
      row["ops_before"] = *work.before;
      row["ops_after"] = *work.after;
    }
    if (hasTimes)
      row["seconds"] = work.seconds;
    passes.push_back(std::move(row));
  }
  facts["passes"] = std::move(passes);
  if (!hasTimes)
    return;
  Json phases = Json::array();
  for (const PhaseTime &time : session.times())
    phases.push_back({{"phase", time.phase}, {"seconds", time.seconds}});
  facts["phase_seconds"] = std::move(phases);
}

static Result<Json> factsOf(const artifact::ArtifactReader &reader,
                            const Json &planned, Session &session,
                            bool hasTimes) {
  auto facts = reportFacts(reader, planned);
  if (facts && !session.passes().passes.empty())
    addPasses(*facts, session, hasTimes);
  return facts;
}

Result<Json> commands::compiledFacts(const artifact::ArtifactReader &reader,
                                     const Json &planned, Session &session) {
  return factsOf(reader, planned, session, /*hasTimes=*/false);
}

Result<Json> commands::pageFacts(const artifact::ArtifactReader &reader,
                                 const Json &planned, Session &session,
                                 const std::string &path) {
  auto facts = factsOf(reader, planned, session, /*hasTimes=*/true);
  if (facts)
    (*facts)["timeline"] = timelineFacts(reader, path);
  return facts;
}
