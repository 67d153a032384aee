//===- ExplainParts.cpp - what answers are made of ------------------------===//
#include "tools/tandem/ExplainParts.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/artifact/Text.h"

#include <algorithm>
#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using artifact::inQuotes;
using Json = nlohmann::ordered_json;

std::string explain::percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", part * 100);
  return text;
}

std::string explain::things(size_t count, const std::string &one,
                            const std::string &many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string explain::few(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kFew); ++i)
    text += (i ? ", " : "") + inQuotes(names[i]);
  if (names.size() > kFew)
    text += " and " + std::to_string(names.size() - kFew) + " more";
  return text;
}

Status explain::unknown(const std::string &what, const std::string &name,
                        const std::vector<std::string> &known) {
  std::vector<std::string_view> views(known.begin(), known.end());
  std::string message = "there is no " + what + " " + inQuotes(name);
  std::string nearest(nearestName(name, views));
  if (!nearest.empty())
    return Status::usage(message + " (did you mean " + inQuotes(nearest) +
                         "?)");
  // A part of a name is near, too.
  std::vector<std::string> parts;
  for (const std::string &one : known)
    if (one.find(name) != std::string::npos)
      parts.push_back(one);
  return Status::usage(message + (parts.empty()
                                      ? "; known are " + few(known)
                                      : "; near it are " + few(parts)));
}

/// True if the launch has the buffer of a slot ("argument" or "result") among
/// its `reads` or `writes`.
static bool touches(const Json &program, const Json &launch,
                    const std::string &place, size_t index,
                    const char *access) {
  const Json &places = launch[access];
  return std::any_of(places.begin(), places.end(), [&](const Json &at) {
    const Json &buffer =
        program["buffers"][launch["buffers"][at.get<size_t>()].get<size_t>()];
    return buffer["in"] == place && buffer["index"] == index;
  });
}

std::vector<size_t> explain::launchesOf(const Json &program,
                                        const std::string &place, size_t index,
                                        const std::string &access) {
  std::vector<size_t> found;
  const Json &launches = program["launches"];
  for (size_t i = 0; i < launches.size(); ++i) {
    if (touches(program, launches[i], place, index, access.c_str()))
      found.push_back(i);
    if (access == "reads" &&
        touches(program, launches[i], place, index, "writes"))
      break;
  }
  return found;
}

std::vector<std::string> explain::namesOf(const FactsView &view,
                                          const Json &program,
                                          const std::vector<size_t> &launches) {
  std::vector<std::string> names;
  for (size_t i : launches) {
    const Json &launch = program["launches"][i];
    std::string name =
        launch.contains("kernel")
            ? textAt(view.manifest()["kernels"][launch["kernel"].get<size_t>()],
                     "symbol")
        : launch.contains("collective") ? textAt(launch["collective"], "op")
                                        : "copy";
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}
