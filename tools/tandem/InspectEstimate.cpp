//===- InspectEstimate.cpp - what programs would take on a GPU ------------===//
#include "tools/tandem/InspectEstimate.h"

#include "runtime/artifact/DeviceFiles.h"
#include "runtime/io/Argument.h"
#include "tools/simulate/Estimate.h"
#include "tools/tandem/CodeOfDevice.h"
#include "tools/tandem/LoadFacts.h"
#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Simulation.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::simulate;
using nlohmann::ordered_json;
namespace am = tandem::artifact;

/// The code that such a device would run.
static Result<const am::Manifest *>
manifestFor(const am::ArtifactReader &reader, const DeviceRow &device) {
  auto code = codeFor(device, targetsOf(reader), "--estimate needs");
  if (!code)
    return std::move(code).status();
  return &reader.manifests()[*code];
}

/// The typical device of the first code for CUDA.
static const DeviceRow *deviceOf(const am::ArtifactReader &reader) {
  for (const am::Manifest &manifest : reader.manifests())
    if (manifest.target.kind == "cuda")
      return &typicalDevice(manifest.target);
  return nullptr;
}

static Result<DeviceRow> deviceOf(const am::ArtifactReader &reader,
                                  const EstimateOptions &options) {
  auto machines = machinesWith(options.machines);
  if (!machines)
    return std::move(machines).status();
  const DeviceRow *row = nullptr;
  if (options.device.empty()) {
    row = deviceOf(reader);
    if (!row)
      return Status::usage("--estimate is of code for cuda, but there is none; "
                           "'simulate' tells of other machines");
    // A file may say it differently.
    return machines->devices().find(row->name)->second;
  }
  std::string error;
  row = machines->device(options.device, error);
  if (!row)
    return Status::usage("--estimate: " + error);
  if (row->isCpu())
    return Status::usage("--estimate is of GPUs, but '" + row->name +
                         "' is none; 'simulate' tells of other machines");
  return *row;
}

static Result<MeasuredKinds> measuredKinds(const am::Manifest &manifest,
                                           const Gpu &gpu,
                                           const std::string &path) {
  if (path.empty())
    return MeasuredKinds();
  if (Status status = am::expectNoDevice(path); !status)
    return status;
  auto artifact = measuredArtifact(path);
  if (!artifact)
    return std::move(artifact).status();
  if (artifact->empty())
    return readMeasuredKinds(path, manifest, gpu);
  auto reader = am::ArtifactReader::open(*artifact);
  if (!reader)
    return std::move(reader).status();
  auto measured = manifestFor(*reader, gpu.row());
  if (!measured)
    return std::move(measured).status().in(io::inQuotes(*artifact));
  return readMeasuredKinds(path, **measured, gpu);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static void printRow(const KindOfLaunches &kind) {
  const TimeParts &parts = kind.parts;
  double seconds = parts.seconds();
  auto ms = [](double value) { return value * 1e3; };
  std::printf("%-36s %8lld %8.3f %8.2f %8.2f %8.2f %6.0f %6.2f  %8.2f %8.2f "
              "%8.2f %8.2f %8.2f %8.2f\n",
              kind.what.c_str(), static_cast<long long>(kind.launches),
              kind.flops / 1e12, kind.bytes / 1e9, ms(seconds), ms(kind.least),
              seconds > 0 ? kind.flops / seconds / 1e12 : 0,
              seconds > 0 ? kind.bytes / seconds / 1e12 : 0, ms(parts.products),
              ms(parts.elements), ms(parts.memory), ms(parts.waves),
              ms(parts.around), ms(parts.launches));
}

/// A program in words and a table.
static void printText(const ProgramEstimate &program,
                      const am::Manifest &manifest, const Gpu &gpu) {
  const KindOfLaunches &all = program.all;
  std::string size = manifest.sizes.size() > 1
                         ? ", size " + std::to_string(program.size)
                         : std::string();
  double seconds = all.parts.seconds();
  std::printf("%s%s: %.2f ms on %s (%s, %lld multiprocessors), %.2f at least; "
              "%.0f %% of %.0f TFLOP/s\n\n",
              program.name.c_str(), size.c_str(), seconds * 1e3,
              gpu.row().name.c_str(), manifest.target.arch.c_str(),
              static_cast<long long>(gpu.multiprocessors()), all.least * 1e3,
              seconds > 0 ? 100 * all.flops / seconds / gpu.row().narrow : 0,
              gpu.row().narrow / 1e12);
  std::printf("%-36s %8s %8s %8s %8s %8s %6s %6s  %8s %8s %8s %8s %8s %8s\n",
              "ms of", "launches", "TFLOP", "GB", "all", "least", "TF/s",
              "TB/s", "products", "elements", "memory", "waves", "around",
              "launches");
  for (const KindOfLaunches &kind : program.kinds)
    printRow(kind);
  printRow(all);
  if (program.uncounted)
    std::printf("%lld copies and exchanges are not counted\n",
                static_cast<long long>(program.uncounted));
}

/// Of a step that is one program, its parts need not be told.
static bool isTold(const ProgramEstimate &program,
                   const std::vector<ProgramEstimate> &programs) {
  bool hasStep = std::any_of(
      programs.begin(), programs.end(), [&](const ProgramEstimate &other) {
        return other.name == "step" && other.size == program.size;
      });
  return !hasStep || program.name == "step";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static ordered_json toJson(const KindOfLaunches &kind) {
  const TimeParts &parts = kind.parts;
  return {{"what", kind.what},
          {"launches", kind.launches},
          {"flops", kind.flops},
          {"bytes", kind.bytes},
          {"seconds", parts.seconds()},
          {"least", kind.least},
          {"parts",
           {{"products", parts.products},
            {"elements", parts.elements},
            {"memory", parts.memory},
            {"waves", parts.waves},
            {"around", parts.around},
            {"launches", parts.launches}}}};
}

static ordered_json toJson(const ProgramEstimate &program,
                           const am::Manifest &manifest) {
  ordered_json kinds = ordered_json::array(), launches = kinds;
  for (const KindOfLaunches &kind : program.kinds)
    kinds.push_back(toJson(kind));
  for (auto [kernel, seconds] : program.launches)
    launches.push_back({{"kernel", manifest.kernels[size_t(kernel)].symbol},
                        {"seconds", seconds}});
  return {{"name", program.name},           {"size", program.size},
          {"all", toJson(program.all)},     {"kinds", std::move(kinds)},
          {"uncounted", program.uncounted}, {"launches", std::move(launches)}};
}

Status commands::printEstimate(const am::ArtifactReader &reader,
                               const EstimateOptions &options, bool asJson) {
  auto device = deviceOf(reader, options);
  if (!device)
    return std::move(device).status();
  auto manifest = manifestFor(reader, *device);
  if (!manifest)
    return std::move(manifest).status();
  Gpu gpu(*device);
  auto measured = measuredKinds(**manifest, gpu, options.calibration);
  if (!measured)
    return std::move(measured).status();
  std::vector<ProgramEstimate> programs = estimate(**manifest, gpu, *measured);
  if (asJson) {
    ordered_json list = ordered_json::array();
    for (const ProgramEstimate &program : programs)
      list.push_back(toJson(program, **manifest));
    ordered_json all = {{"kind", "estimate"},
                        {"version", 1},
                        {"device", device->name},
                        {"source", device->source},
                        {"arch", (*manifest)->target.arch},
                        {"calibrated", *measured},
                        {"programs", std::move(list)}};
    std::printf("%s\n", jsonText(all).c_str());
    return Status::success();
  }
  bool isFirst = true;
  for (const ProgramEstimate &program : programs) {
    if (!isTold(program, programs))
      continue;
    std::printf("%s", isFirst ? "" : "\n");
    printText(program, **manifest, gpu);
    isFirst = false;
  }
  std::printf("%s", measured->empty()
                        ? "\nNothing of this was measured on such a device: "
                          "docs/ESTIMATE.md says how far it can be off.\n"
                        : "\n");
  for (const auto &[what, factor] : *measured)
    std::printf("%s took %.2f times the estimate\n", what.c_str(), factor);
  return Status::success();
}
