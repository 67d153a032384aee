//===- CodeOfDevice.cpp - which code a machine of the table would run -----===//
#include "tools/tandem/CodeOfDevice.h"

#include "passes/target/CudaModel.h"

#include <optional>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

CodeTargets commands::targetsOf(const am::ArtifactReader &reader) {
  CodeTargets targets;
  for (const am::Manifest &manifest : reader.manifests())
    targets.push_back(manifest.target);
  return targets;
}

static bool runsOn(const CudaName &code, const CudaName &device) {
  return code.isForOneAlone ? code.sm == device.sm : code.sm <= device.sm;
}

/// Whether code for `a` is later than for `b`, and both run.
static bool isLater(const CudaName &a, const CudaName &b) {
  return a.sm > b.sm || (a.sm == b.sm && a.isForOneAlone && !b.isForOneAlone);
}

Result<size_t> commands::codeFor(const DeviceRow &device,
                                 const CodeTargets &targets,
                                 const std::string &what) {
  std::optional<size_t> best;
  std::string all;
  for (size_t i = 0; i < targets.size(); ++i) {
    bool isCpu = targets[i].kind == "cpu";
    all += (all.empty() ? "" : ", ") +
           (isCpu ? "cpu" : targets[i].kind + ":" + targets[i].arch);
    if (isCpu != device.isCpu())
      continue;
    CudaName own(targets[i].arch);
    if (!isCpu && !runsOn(own, CudaName(device.target)))
      continue;
    if (!best || (!isCpu && isLater(own, CudaName(targets[*best].arch))))
      best = i;
  }
  if (best)
    return *best;
  return Status::usage(what + " code that '" + device.name + "' (" +
                       device.target + ") runs, but got code for " + all);
}
