//===- ShowStages.cpp - the stages of a pipeline, beside each other -------===//
#include "runtime/artifact/StageFiles.h"
#include "runtime/artifact/Text.h"
#include "runtime/pipeline/Pipeline.h"
#include "runtime/pipeline/Schedule.h"
#include "tools/commands/Print.h"
#include "tools/commands/Show.h"

#include <cstdio>

namespace tandem::commands {
namespace {

using artifact::Manifest;
using artifact::Role;

int64_t bytesOf(const artifact::Value &value) {
  int64_t bytes = byteSize(value.dtype);
  for (int64_t size : value.shape)
    bytes *= size;
  return bytes;
}

/// What the kernels of a program compute.
double flopsOf(const Manifest &manifest, std::string_view name) {
  double flops = 0;
  if (const artifact::Program *program = manifest.findProgram(name))
    for (const artifact::Launch &launch : program->launches)
      if (launch.hasKernel())
        flops += double(manifest.kernels[size_t(launch.kernel)].flops);
  return flops;
}

void printStage(const Manifest &manifest) {
  const artifact::Pipeline &own = *manifest.pipeline;
  int64_t params = 0, bytes = 0, kernels = 0, given = 0;
  for (const artifact::Value &value : manifest.values)
    if (value.role == Role::Param) {
      ++params;
      bytes += bytesOf(value);
    }
  for (const std::string &name : own.gives)
    given += bytesOf(*manifest.findOutput(name));
  for (std::string_view name : {"forward", "backward"})
    if (const artifact::Program *program = manifest.findProgram(name))
      kernels += int64_t(program->launches.size());
  int64_t group = comm::ranksOf(manifest.mesh);
  int64_t rank = own.stage % own.ranks * group;
  std::string ranks = std::to_string(rank);
  if (group > 1)
    ranks += "-" + std::to_string(rank + group - 1);
  std::printf(
      "%5lld %5s %8lld %12.3f %12.3f %7lld %12s %7zu %12s %5lld\n",
      static_cast<long long>(own.stage), ranks.c_str(),
      static_cast<long long>(kernels), flopsOf(manifest, "forward") / 1e6,
      flopsOf(manifest, "backward") / 1e6, static_cast<long long>(params),
      bytesText(bytes).c_str(), own.gives.size(), bytesText(given).c_str(),
      static_cast<long long>(own.stages - own.stage));
}

} // namespace

void showStages(const Manifest &manifest, const std::string &path) {
  if (!manifest.pipeline)
    return;
  const artifact::Pipeline &own = *manifest.pipeline;
  std::printf("\nstage %lld of a pipeline of %lld stages on %lld ranks\n",
              static_cast<long long>(own.stage),
              static_cast<long long>(own.stages),
              static_cast<long long>(pipeline::ranksOf(manifest)));
  std::printf("%5s %5s %8s %12s %12s %7s %12s %7s %12s %5s\n", "stage", "rank",
              "launches", "MFLOP", "backward", "params", "bytes", "gives",
              "bytes", "live");
  for (int64_t stage = 0; stage < own.stages; ++stage) {
    if (stage == own.stage) {
      printStage(manifest);
      continue;
    }
    std::string file = artifact::stagePath(path, stage);
    auto other = own.stage == 0 ? artifact::ArtifactReader::open(file)
                                : Result<artifact::ArtifactReader>(
                                      Status::failed("not looked for"));
    if (other && other->manifest().pipeline &&
        other->manifest().pipeline->digest == own.digest)
      printStage(other->manifest());
    else if (own.stage == 0)
      std::printf("%5lld is not in %s\n", static_cast<long long>(stage),
                  artifact::inQuotes(file).c_str());
  }
  std::printf("live: how many batches are under way at most\n");
  std::printf("%-20s", "--accumulate");
  for (int64_t batches : {1, 2, 4, 8, 16, 32, 64})
    std::printf(" %6lld", static_cast<long long>(batches));
  std::printf("\n%-20s", "a rank is idle, %");
  for (int64_t batches : {1, 2, 4, 8, 16, 32, 64})
    std::printf(" %6.1f",
                100 * pipeline::bubbleOf(own.stages, own.ranks, batches));
  std::printf("\n");
}

} // namespace tandem::commands
