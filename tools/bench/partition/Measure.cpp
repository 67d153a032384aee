//===- Measure.cpp - a workload's artifacts, and how they run -------------===//
#include "tools/bench/partition/Measure.h"
#include "tools/bench/partition/Processes.h"

#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

using namespace tandem;
using Json = nlohmann::json;

Result<bench::Compiled> bench::compile(const std::string &model,
                                       const workloads::Workload &workload,
                                       const std::string &name,
                                       const std::vector<std::string> &flags) {
  Compiled compiled;
  compiled.path = model + "." + name + ".tdm";
  std::vector<std::string> words = {sibling("tandem"),
                                    "compile",
                                    model,
                                    "-o",
                                    compiled.path,
                                    "--optimizer=" + workload.optimizer};
  words.insert(words.end(), flags.begin(), flags.end());
  auto begin = std::chrono::steady_clock::now();
  auto done = run(words);
  if (!done)
    return done.status();
  compiled.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  auto reader = artifact::ArtifactReader::open(compiled.path);
  if (!reader)
    return reader.status();
  compiled.manifest = reader->manifest();
  return compiled;
}

/// Adds a round of one artifact.
static Status addRound(const bench::Compiled &artifact, double seconds,
                       int64_t bare, bench::Ran &ran) {
  auto done = bench::run({bench::sibling("tandem-run"), "bench", artifact.path,
                          "--program=step", "--warmup=2",
                          "--seconds=" + std::to_string(seconds), "--json"});
  if (!done)
    return done.status();
  Json json = Json::parse(done->output, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("median_ms") ||
      !json.contains("actual_peak_bytes"))
    return Status::failed("expected 'tandem-run bench' to print its results");
  ran.milliseconds.push_back(json["median_ms"].get<double>());
  ran.actualPeak = json["actual_peak_bytes"].get<int64_t>();
  ran.residentBytes = std::max(ran.residentBytes, done->peakBytes - bare);
  return Status::success();
}

Result<std::vector<bench::Ran>>
bench::runByTurns(const std::vector<Compiled> &artifacts, int rounds,
                  double seconds) {
  auto bare = run({sibling("tandem-run"), "bench", "--help"});
  if (!bare)
    return bare.status();
  std::vector<Ran> all(artifacts.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < artifacts.size(); ++i)
      if (Status s = addRound(artifacts[i], seconds, bare->peakBytes, all[i]);
          !s)
        return s;
  for (Ran &ran : all)
    std::sort(ran.milliseconds.begin(), ran.milliseconds.end());
  return all;
}
