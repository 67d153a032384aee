//===- ConfigFuzz.cpp - any bytes as options in a file --------------------===//
//
// A file that is accepted gives words of options that there are. What a table
// resolves from them is a file again, which gives the same options.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Fuzz.h"
#include "tools/commands/Config.h"

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::fuzz;

namespace {

/// A table with one option of each kind.
struct Table {
  Table() {
    table.text("config", "F", config, "a file");
    table.integer("epochs", "N", epochs, 0, INT64_MAX, "passes");
    table.number("lr", "RATE", rate, "a rate");
    table.flag("json", json, "a flag");
    table.optionalText("anomaly", "KIND", isAnomaly, anomaly, "a kind");
    table.list("data", "NAME=@FILE", data, "rows").keyed();
    table.list("cast", "RULE", casts, "rules");
    table.text("save", "F", save, "a file").excludes("json", "so");
  }

  OptionTable table{"fuzz", "Is fuzzed."};
  std::string config, anomaly, save;
  std::optional<int64_t> epochs;
  std::optional<double> rate;
  bool json = false, isAnomaly = false;
  std::vector<std::string> data, casts;
};

std::vector<std::string_view> viewsOf(const std::vector<ConfigWord> &words) {
  std::vector<std::string_view> views;
  for (const ConfigWord &word : words)
    views.push_back(word.text);
  return views;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Table first, second;
  auto words = wordsOfConfig(first.table, {}, "run.toml", text);
  if (!words) {
    requireMessage(words.status());
    return 0;
  }
  for (const auto &[word, place] : *words) {
    require(place.starts_with("run.toml:"));
    require(word.starts_with("--"));
    require(first.table.find(word.substr(2, word.find('=') - 2)) != nullptr);
  }
  if (!first.table.parse(viewsOf(*words)))
    return 0;
  std::string resolved = configOf(first.table);
  auto again = wordsOfConfig(second.table, {}, "resolved.toml", resolved);
  require(again.ok());
  require(second.table.parse(viewsOf(*again)).ok());
  require(first.epochs == second.epochs && first.rate == second.rate &&
          first.json == second.json && first.save == second.save &&
          first.anomaly == second.anomaly && first.data == second.data &&
          first.casts == second.casts);
  return 0;
}
