//===- PrintProfile.cpp - what a profile found, for people ----------------===//
#include "tools/tandem/ProfileFacts.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

static std::string milliseconds(const Json &seconds) {
  return fixed(double(seconds) * 1e3, 4);
}

/// "0.9-1.2"
static std::string spread(const Json &seconds) {
  return milliseconds(seconds["low"]) + "-" + milliseconds(seconds["high"]);
}

/// Modules or lines, those first that take most; people read some.
static void printPlaces(const Json &facts, const char *list, const char *key,
                        const char *unknown) {
  constexpr size_t shown = 12;
  // What nothing is in is no column.
  std::vector<std::pair<const char *, const char *>> columns;
  for (auto [title, field] : {std::pair("forward ms", "forward_seconds"),
                              std::pair("recompute ms", "recompute_seconds"),
                              std::pair("backward ms", "gradient_seconds"),
                              std::pair("update ms", "update_seconds")})
    if (std::any_of(facts[list].begin(), facts[list].end(),
                    [&](const Json &one) { return double(one[field]) > 0; }))
      columns.emplace_back(title, field);
  Rows rows = {{list}};
  for (const auto &[title, field] : columns)
    rows[0].push_back(title);
  rows[0].push_back("of step");
  for (const Json &one : facts[list]) {
    if (rows.size() > shown)
      break;
    std::string name = one[key];
    double sum = 0;
    rows.push_back({name.empty() ? unknown : artifact::printable(name)});
    for (const auto &[title, field] : columns) {
      rows.back().push_back(milliseconds(one[field]));
      sum += double(one[field]);
    }
    rows.back().push_back(percent(sum, facts["seconds"]["median"]));
  }
  std::printf("\n");
  printTable(rows, true);
  if (facts[list].size() > shown)
    std::printf("and %zu more\n", facts[list].size() - shown);
}

static void printPasses(const Json &facts) {
  Rows rows = {{"pass", "launches", "ms", "of all launches"}};
  for (const Json &one : facts["passes"]) {
    std::string pass = one["pass"];
    rows.push_back({pass.empty() ? "(none)" : pass,
                    std::to_string(one["launches"].get<size_t>()),
                    milliseconds(one["seconds"]), percent(one["share"], 1)});
  }
  std::printf("\n");
  printTable(rows, true);
}

static void printKernels(const Json &facts) {
  bool hasRoofs = !facts["roofs"].is_null();
  double step = facts["seconds"]["median"];
  Rows rows = {{"kernel", "launches", "ms", "spread", "of step", "GB/s"}};
  if (hasRoofs)
    rows[0].insert(rows[0].end(), {"roof ms", "of roof"});
  rows[0].push_back("predicted ms");
  if (hasRoofs)
    rows[0].push_back("waited ms");
  for (const Json &counted : facts["counters"]["counted"])
    rows[0].push_back(counted);
  for (const Json &kernel : facts["kernels"]) {
    double seconds = kernel["seconds"]["median"];
    rows.push_back({kernel["kernel"], std::to_string(kernel["launches"].size()),
                    milliseconds(seconds), spread(kernel["seconds"]),
                    percent(seconds, step),
                    fixed(kernel.value("bytes_per_second", 0.0) / 1e9, 1)});
    auto add = [&](std::string text) {
      rows.back().push_back(std::move(text));
    };
    if (hasRoofs) {
      add(milliseconds(kernel["roof_seconds"]));
      add(percent(kernel["roof_seconds"], seconds));
    }
    add(milliseconds(kernel["predicted_seconds"]));
    if (hasRoofs)
      add(milliseconds(kernel["waited_seconds"]));
    for (const Json &counted : facts["counters"]["counted"])
      add(kernel.contains("counts")
              ? fixed(kernel["counts"][counted.get<std::string>()], 0)
              : "");
  }
  printTable(rows, true);
  std::printf("\n");
  Rows what;
  for (const Json &kernel : facts["kernels"])
    what.push_back({kernel["kernel"], kernel["computes"]});
  printTable(what);
}

void commands::printProfile(const Json &facts) {
  printKernels(facts);
  if (facts.contains("modules")) {
    printPasses(facts);
    printPlaces(facts, "modules", "path", "(no path)");
    printPlaces(facts, "lines", "where", "(no place)");
  }
  std::printf("\n");
  double step = facts["seconds"]["median"];
  Rows rows = {
      {"program", facts["program"].get<std::string>() + " of " +
                      artifact::printable(facts["source"].get<std::string>())},
      {"device", facts["device"].get<std::string>() + ", " +
                     facts["code"].get<std::string>()},
      {"calls", std::to_string(facts["calls"].get<size_t>())},
      {"ms", milliseconds(step) + ", " + spread(facts["seconds"])},
      {"not watched", milliseconds(facts["unwatched_seconds"]["median"]) +
                          " ms, watching takes " +
                          fixed(100 * double(facts["overhead"]), 1) +
                          "% by turns"},
      {"in launches", milliseconds(facts["launches_seconds"]["median"]) +
                          " ms, " +
                          percent(facts["launches_seconds"]["median"], step)},
      {"in kernels", milliseconds(facts["kernels_seconds"]) +
                         " ms, each undisturbed (sum of medians)"}};
  if (facts.contains("roof_seconds"))
    rows.push_back({"roofs", milliseconds(facts["roof_seconds"]) + " ms, " +
                                 percent(facts["roof_seconds"], step)});
  rows.push_back({"predicted", milliseconds(facts["predicted_seconds"]) +
                                   " ms of a typical " +
                                   facts["machine"].get<std::string>()});
  printTable(rows);
  for (const auto &[name, reason] : facts["counters"]["missing"].items())
    std::printf("not counted: %s: %s\n", name.c_str(),
                reason.get<std::string>().c_str());
  if (facts.contains("places"))
    std::printf("no modules and lines: %s\n",
                facts["places"].get<std::string>().c_str());
  if (facts.contains("emulated"))
    std::printf("times are the emulator's: they say nothing of a GPU\n");
}
