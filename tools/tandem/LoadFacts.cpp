//===- LoadFacts.cpp - the facts of an artifact or a model ----------------===//
#include "tools/tandem/LoadFacts.h"

#include "tools/tandem/PlannedFacts.h"
#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Session.h"

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

bool commands::isArtifact(std::string_view path) {
  return path.ends_with(".tdm");
}

Result<LoadedFacts> commands::loadFacts(const std::string &path,
                                        const CompileOptions &options) {
  Session session(options);
  Json planned = Json::array();
  session.whenPlanned = [&](const Modules &modules) {
    planned.push_back(plannedFacts(modules));
  };
  auto reader = isArtifact(path) ? artifact::ArtifactReader::open(path)
                                 : session.loaded(path);
  if (!reader)
    return reader.status();
  auto facts = reportFacts(*reader, planned);
  if (!facts)
    return facts.status();
  return LoadedFacts{*std::move(reader), *std::move(facts)};
}

std::string commands::jsonText(const Json &json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}
