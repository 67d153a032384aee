//===- ShowArtifact.cpp - what is in an artifact --------------------------===//
//
// Values and their roles, programs, saved values with the reason for each,
// kernels, memory, sections. What is printed of a file is escaped: it may be
// anybody's.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/PlannedMemory.h"
#include "runtime/artifact/Text.h"
#include "tools/commands/ArtifactFacts.h"
#include "tools/commands/Print.h"
#include "tools/commands/Show.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

std::string shown(std::string_view text) { return artifact::printable(text); }

std::string typeText(artifact::DType dtype, const std::vector<int64_t> &shape) {
  std::string text(spelling(dtype));
  text += "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// How a param or state begins, as models say it.
std::string initText(const artifact::Value &value) {
  if (!value.init)
    return value.role == artifact::Role::Param ||
                   value.role == artifact::Role::State
               ? "to be given by --params"
               : "";
  const artifact::Init &init = *value.init;
  using Kind = artifact::Init::Kind;
  switch (init.kind) {
  case Kind::Constant:
    return "constant " + numberText(init.a);
  case Kind::Uniform:
    return "uniform from " + numberText(init.a) + " to " + numberText(init.b);
  case Kind::Normal:
    return "normal, mean " + numberText(init.a) + ", deviation " +
           numberText(init.b);
  case Kind::Counter:
    return "counter, stream " + std::to_string(init.stream) + ", scale " +
           numberText(init.a);
  case Kind::Seed:
    return "the seed";
  }
  return "";
}

/// "[0:4, 1:8:2]"
std::string sliceText(const artifact::SliceRange &range) {
  std::string text;
  for (size_t d = 0; d < range.begins.size(); ++d)
    text += (d ? ", " : "") + std::to_string(range.begins[d]) + ":" +
            std::to_string(range.ends[d]) +
            (range.steps[d] == 1 ? "" : ":" + std::to_string(range.steps[d]));
  return "[" + text + "]";
}

void printValues(const artifact::Manifest &manifest) {
  std::printf("\n%-8s %-32s %-22s %-14s %s\n", "role", "name", "type", "grad",
              "begins as");
  for (const artifact::Value &value : manifest.values) {
    std::string more = initText(value);
    if (value.high)
      more += "in [" + std::to_string(value.low.value_or(0)) + ", " +
              std::to_string(*value.high) + ")";
    for (const artifact::SliceRange &range : value.ranges)
      more += (more.empty() ? "" : "; ") + sliceText(range) + " in [" +
              std::to_string(range.low) + ", " + std::to_string(range.high) +
              ")";
    std::printf("%-8s %-32s %-22s %-14s %s\n",
                std::string(spelling(value.role)).c_str(),
                shown(value.name).c_str(),
                typeText(value.dtype, value.shape).c_str(),
                value.requiresGrad ? "requires grad" : "", more.c_str());
  }
}

/// The types of inputs and outputs in each size.
void printSizes(const artifact::Manifest &manifest) {
  if (manifest.sizes.empty())
    return;
  std::printf("\n%-20s %s\n", "size", "inputs and outputs");
  for (size_t i = 0; i < manifest.sizes.size(); ++i) {
    const artifact::Manifest size = ofSize(manifest, i);
    std::string types;
    for (const artifact::Value &value : size.values)
      if (value.role == artifact::Role::Input ||
          value.role == artifact::Role::Output)
        types += (types.empty() ? "" : ", ") + value.name + " " +
                 typeText(value.dtype, value.shape);
    std::printf("%-20s %s\n", shown(manifest.sizes[i].name).c_str(),
                shown(types).c_str());
  }
}

void printPrograms(const artifact::Manifest &manifest) {
  // Of several sizes each program says which.
  auto nameOf = [&](const artifact::Program &program) {
    return shown(manifest.sizes.empty()
                     ? program.name
                     : program.name + " (" + manifest.sizes[program.size].name +
                           ")");
  };
  size_t width = 10;
  for (const artifact::Program &program : manifest.programs)
    width = std::max(width, nameOf(program).size());
  std::printf("\n%-*s %8s %10s %12s %12s %12s\n", int(width), "program",
              "launches", "results", "GFLOP", "arena", "most in use");
  for (const artifact::Program &program : manifest.programs) {
    double flops = 0;
    for (const artifact::Launch &launch : program.launches)
      if (launch.hasKernel())
        flops += static_cast<double>(manifest.kernels[launch.kernel].flops);
    std::printf("%-*s %8zu %10zu %12.4f %12s %12s\n", int(width),
                nameOf(program).c_str(), program.launches.size(),
                program.results.size(), flops / 1e9,
                bytesText(program.arenaBytes).c_str(),
                bytesText(program.peakBytes).c_str());
  }
}

std::string shortTime(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.1f us" : "%.2f ms",
                seconds * (seconds < 1e-3 ? 1e6 : 1e3));
  return text;
}

/// "exp at m.mlir:7:3"
std::string opText(const std::string &op, const std::string &where) {
  std::string_view name = op;
  if (name.starts_with("tandem."))
    name.remove_prefix(7);
  return shown(std::string(name) + (where.empty() ? "" : " at " + where));
}

/// The memory of a training step, by what it is for.
void printMemory(const artifact::Manifest &manifest) {
  if (!manifest.stepMemory)
    return;
  const artifact::StepMemory &memory = *manifest.stepMemory;
  std::pair<const char *, int64_t> rows[] = {
      {"parameters", memory.parameters}, {"states", memory.states},
      {"constants", memory.constants},   {"inputs", memory.inputs},
      {"outputs", memory.outputs},       {"gradients", memory.gradients},
      {"saved", memory.saved},           {"staged updates", memory.staged},
      {"prepared", memory.prepared},     {"arena", memory.arena}};
  std::printf("\n%-20s %12s\n", "memory of a step", "bytes");
  for (auto [name, bytes] : rows)
    if (bytes)
      std::printf("%-20s %12s\n", name, bytesText(bytes).c_str());
  std::printf("%-20s %12s\n", "peak", bytesText(memory.peak()).c_str());
  if (int64_t scratch = artifact::scratchOfStep(manifest))
    std::printf("%-20s %12s\n", "and for each thread",
                bytesText(scratch).c_str());
  if (memory.host)
    std::printf("%-20s %12s\n", "beside, on the host",
                bytesText(memory.host).c_str());
}

/// What is saved, what making it again would take, and the op that makes it.
void printSaved(const artifact::Manifest &manifest) {
  const artifact::Program *forward = manifest.findProgram("forward");
  if (!forward)
    return;
  std::map<std::string_view, const artifact::Partition::Saved *> about;
  if (manifest.partition)
    for (const artifact::Partition::Saved &saved : manifest.partition->saved)
      about[saved.name] = &saved;
  // On the device, and on the host; the column says it where there are both.
  int64_t totals[2] = {0, 0};
  bool isSplit =
      std::any_of(forward->results.begin(), forward->results.end(),
                  [](const artifact::Slot &slot) { return slot.onHost; });
  auto place = [&](bool onHost) {
    return !isSplit ? "" : onHost ? "host    " : "device  ";
  };
  std::printf("\n%-28s %-22s %10s %10s  %s%s\n", "saved", "type", "bytes",
              "again", isSplit ? "in      " : "", "reason; made by");
  for (const artifact::Slot &slot : forward->results) {
    if (slot.role != artifact::Role::Saved)
      continue;
    int64_t bytes = artifact::tensorBytes(slot.dtype, slot.shape).value_or(0);
    totals[slot.onHost] += bytes;
    auto known = about.find(slot.name);
    const artifact::Partition::Saved *saved =
        known == about.end() ? nullptr : known->second;
    std::string by = saved ? opText(saved->op, saved->where) : "";
    std::printf(
        "%-28s %-22s %10s %10s  %s%s%s%s\n", shown(slot.name).c_str(),
        typeText(slot.dtype, slot.shape).c_str(), bytesText(bytes).c_str(),
        saved && saved->seconds ? shortTime(saved->seconds).c_str() : "",
        place(slot.onHost), shown(slot.reason).c_str(), by.empty() ? "" : "; ",
        by.c_str());
  }
  for (bool onHost : {false, true})
    if (!onHost || isSplit)
      std::printf("%-28s %-22s %10s%s\n", "total", "",
                  bytesText(totals[onHost]).c_str(),
                  !isSplit ? ""
                  : onHost ? " on the host"
                           : " on the device");
}

/// The ops of the forward that the backward runs again.
void printRepeated(const artifact::Manifest &manifest) {
  if (!manifest.partition || manifest.partition->repeated.empty())
    return;
  double seconds = 0;
  std::printf("\n%-50s %10s %10s  %s\n", "computed again", "bytes", "time",
              "reason");
  for (const artifact::Partition::Repeated &op : manifest.partition->repeated) {
    seconds += op.seconds;
    std::printf("%-50s %10s %10s  %s\n", opText(op.op, op.where).c_str(),
                bytesText(op.bytes).c_str(), shortTime(op.seconds).c_str(),
                shown(op.reason).c_str());
  }
  std::printf("%-50s %10s %10s\n", "total", "", shortTime(seconds).c_str());
}

std::string chainText(const artifact::Alias &alias) {
  std::string text =
      artifact::inQuotes(alias.of.empty() ? alias.output : alias.of);
  for (const artifact::View &view : alias.views)
    text += ", " + std::string(spelling(view.op));
  return text;
}

/// What an update is of. A state has no gradient, however it is written: a
/// running mean, a counter.
const char *updateText(const artifact::Manifest &manifest,
                       const artifact::Slot &slot) {
  for (const artifact::Value &value : manifest.values)
    if (value.name == slot.name && value.role == artifact::Role::State)
      return "next value of a state";
  return slot.visible ? "data, differentiated" : "data";
}

/// What the programs write, and what shares memory.
void printMutations(const artifact::Manifest &manifest) {
  bool isFirst = true;
  auto row = [&](const std::string &program, const std::string &name,
                 const std::string &change, const std::string &where) {
    if (isFirst)
      std::printf("\n%-10s %-24s %-36s %s\n", "in", "value", "change", "by");
    isFirst = false;
    std::printf("%-10s %-24s %-36s %s\n", shown(program).c_str(),
                shown(name).c_str(), change.c_str(), shown(where).c_str());
  };
  for (const artifact::Program &program : manifest.programs) {
    if (program.name != "forward" && program.name != "backward")
      continue;
    for (const artifact::Slot &slot : program.arguments) {
      if (slot.alias)
        row(program.name, slot.name, "is a view of " + chainText(*slot.alias),
            "declared");
      if (slot.metadata)
        row(program.name, slot.name, "metadata: " + chainText(*slot.metadata),
            slot.where);
      if (slot.storage)
        row(program.name, slot.name, "storage: " + chainText(*slot.storage),
            slot.where);
      if (slot.resize)
        row(program.name, slot.name,
            "size: " + std::to_string(*slot.resize) + " elements", slot.where);
    }
    for (const artifact::Slot &slot : program.results)
      if (slot.role == artifact::Role::Update)
        row(program.name, slot.name, updateText(manifest, slot), slot.where);
    for (const artifact::OutputAlias &output : program.aliases)
      row(program.name, output.name, "is a view of " + chainText(output.alias),
          output.partOf);
  }
  if (manifest.mutatedInBackward.empty())
    return;
  std::printf("\nrequires grad and is written by the backward, so that "
              "create_graph is refused:\n");
  for (int64_t index : manifest.mutatedInBackward)
    std::printf("  %s (index %lld)\n",
                shown(manifest.values[index].name).c_str(),
                static_cast<long long>(index));
}

void printKernels(const artifact::Manifest &manifest) {
  std::vector<int> uses(manifest.kernels.size());
  for (const artifact::Program &program : manifest.programs)
    for (const artifact::Launch &launch : program.launches)
      if (launch.hasKernel())
        ++uses[launch.kernel];
  std::printf("\n%-44s %-12s %5s %12s %12s %4s\n", "kernel", "class", "uses",
              "MFLOP", "bytes", "ops");
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    const artifact::Kernel &kernel = manifest.kernels[i];
    std::printf("%-44s %-12s %5d %12.3f %12s %4zu\n",
                shown(kernel.symbol).c_str(), shown(kernel.kind).c_str(),
                uses[i], kernel.flops / 1e6, bytesText(kernel.bytes).c_str(),
                kernel.ops.size());
  }
}

void printSections(const artifact::ArtifactReader &reader) {
  std::printf("\n%-14s %12s\n", "section", "bytes");
  for (const auto &section : reader.sections())
    std::printf("%-14s %12zu\n", shown(section.name).c_str(),
                section.bytes.size());
  std::printf("%-14s %12zu\n", "file", reader.fileBytes());
}

std::string targetText(const artifact::Manifest &manifest) {
  return shown(manifest.target.kind + " " + manifest.target.arch);
}

void printHead(const artifact::ArtifactReader &reader) {
  const artifact::Manifest &manifest = reader.manifest();
  std::string targets;
  for (const artifact::Manifest &one : reader.manifests())
    targets += (targets.empty() ? "" : " and ") + targetText(one);
  std::printf("model %s, %s, for %s%s%s%s%s\n", shown(manifest.model).c_str(),
              shown(manifest.producer).c_str(), targets.c_str(),
              manifest.loss.empty() ? "" : ", loss ",
              shown(manifest.loss).c_str(),
              manifest.optimizer.empty() ? "" : ", optimizer ",
              shown(manifest.optimizer).c_str());
}

} // namespace

void showArtifact(const artifact::ArtifactReader &reader,
                  const std::string &path) {
  printHead(reader);
  showStages(reader.manifest(), path);
  printValues(reader.manifest());
  printSizes(reader.manifest());
  for (const artifact::Manifest &manifest : reader.manifests()) {
    if (reader.manifests().size() > 1)
      std::printf("\n---- for %s ----\n", targetText(manifest).c_str());
    printPrograms(manifest);
    printMemory(manifest);
    printSaved(manifest);
    printRepeated(manifest);
    printMutations(manifest);
    printKernels(manifest);
    showCollectives(manifest);
    if (manifest.target.kind == "cuda")
      showGrids(manifest);
  }
  printSections(reader);
}

Result<nlohmann::ordered_json>
artifactFacts(const artifact::ArtifactReader &reader) {
  nlohmann::ordered_json all = {{"kind", "artifact"},
                                {"version", factsVersion},
                                {"manifests", nlohmann::ordered_json::array()}};
  for (const artifact::Manifest &manifest : reader.manifests()) {
    auto text = artifact::toJson(manifest);
    if (!text)
      return text.status();
    all["manifests"].push_back(
        nlohmann::ordered_json::parse(std::string_view(*text)));
  }
  auto sections = nlohmann::ordered_json::array();
  for (const auto &section : reader.sections())
    sections.push_back({{"name", artifact::printable(section.name)},
                        {"bytes", section.bytes.size()}});
  all["file"] = {{"bytes", reader.fileBytes()},
                 {"sections", std::move(sections)}};
  return all;
}

Status showArtifactAsJson(const artifact::ArtifactReader &reader) {
  auto facts = artifactFacts(reader);
  if (facts)
    std::printf("%s\n", facts->dump(1).c_str());
  return facts.status();
}

} // namespace tandem::commands
