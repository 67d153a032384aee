//===- Inspect.cpp - `inspect` of what needs no compiler ------------------===//
#include "tools/commands/Commands.h"
#include "tools/commands/Show.h"

namespace tandem::commands {
namespace {

struct InspectOptions {
  static constexpr std::string_view
      usage = "inspect X.tdm|F.safetensors [--json]",
      description = "Shows what is in an artifact or a checkpoint.";

  std::string path;
  bool json = false;

  void declare(OptionTable &table) {
    table.positional("FILE", path, "an artifact (.tdm) or .safetensors");
    table.flag("json", json, "print it as one JSON object");
  }
};

Status inspect(const InspectOptions &options) {
  if (isShownAsCheckpoint(options.path))
    return showCheckpoint(options.path, options.json);
  auto reader = artifact::ArtifactReader::open(options.path);
  if (!reader)
    return std::move(reader).status();
  if (options.json)
    return showArtifactAsJson(*reader);
  showArtifact(*reader, options.path);
  return Status::success();
}

} // namespace

Command inspectFileCommand() {
  return commandOf<inspect>("inspect",
                            "show what is in an artifact or checkpoint");
}

} // namespace tandem::commands
