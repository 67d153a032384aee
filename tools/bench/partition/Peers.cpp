//===- Peers.cpp - what other systems keep and take -----------------------===//
#include "tools/bench/partition/Peers.h"
#include "tools/bench/partition/Processes.h"

#include <nlohmann/json.hpp>

#include <fstream>

using namespace tandem;
using Json = nlohmann::json;

std::optional<bench::PeerStep> bench::torchEager(const std::string &python,
                                                 const std::string &folder,
                                                 const std::string &workload) {
  auto done = run({python, folder + "/torch_train.py", "--workload", workload,
                   "--mode", "eager", "--steps", "8", "--max-seconds", "40"});
  if (!done)
    return std::nullopt;
  Json json = Json::parse(done->output, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("median_ms") ||
      !json.contains("peak_rss_mb") || !json.contains("base_rss_mb"))
    return std::nullopt;
  double megabytes =
      json["peak_rss_mb"].get<double>() - json["base_rss_mb"].get<double>();
  return PeerStep{json["median_ms"].get<double>(),
                  static_cast<int64_t>(megabytes * 1024 * 1024)};
}

std::optional<bench::PeerSaved> bench::torchSaved(const std::string &file,
                                                  const std::string &workload) {
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json["workloads"].contains(workload))
    return std::nullopt;
  PeerSaved saved;
  for (auto &[name, variant] :
       json["workloads"][workload]["variants"].items()) {
    if (!variant.contains("storage_bytes"))
      continue;
    int64_t bytes = variant["storage_bytes"].get<int64_t>();
    if (name == "eager") {
      saved.eager = bytes;
    } else if (saved.bestName.empty() || bytes < saved.best) {
      saved.best = bytes;
      saved.bestName = name;
    }
  }
  return saved;
}
