//===- Inspect.cpp - the command `inspect` --------------------------------===//
//
// Shows an artifact: its values and their roles, programs, saved values with
// the reason for each, kernels, memory, sections. A model is compiled first.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/BudgetCurve.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/InspectCode.h"
#include "tools/tandem/Session.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/PlannedMemory.h"
#include "runtime/cli/Print.h"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

static std::string typeText(am::DType dtype,
                            const std::vector<int64_t> &shape) {
  std::string text(spelling(dtype));
  text += "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

static void printValues(const am::Manifest &manifest) {
  std::printf("\n%-8s %-32s %-22s %s\n", "role", "name", "type", "");
  for (const am::Value &value : manifest.values)
    std::printf("%-8s %-32s %-22s %s\n",
                std::string(spelling(value.role)).c_str(), value.name.c_str(),
                typeText(value.dtype, value.shape).c_str(),
                value.requiresGrad ? "requires grad" : "");
}

static void printPrograms(const am::Manifest &manifest) {
  std::printf("\n%-10s %8s %10s %12s %12s %12s\n", "program", "launches",
              "results", "GFLOP", "arena", "peak");
  for (const am::Program &program : manifest.programs) {
    double flops = 0;
    for (const am::Launch &launch : program.launches)
      if (!launch.isCopy())
        flops += static_cast<double>(manifest.kernels[launch.kernel].flops);
    std::printf("%-10s %8zu %10zu %12.4f %12s %12s\n", program.name.c_str(),
                program.launches.size(), program.results.size(), flops / 1e9,
                bytesText(program.arenaBytes).c_str(),
                bytesText(program.peakBytes).c_str());
  }
}

static std::string shortTime(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.1f us" : "%.2f ms",
                seconds * (seconds < 1e-3 ? 1e6 : 1e3));
  return text;
}

/// "exp at m.mlir:7:3"
static std::string opText(const std::string &op, const std::string &where) {
  std::string_view name = op;
  if (name.starts_with("tandem."))
    name.remove_prefix(7);
  return std::string(name) + (where.empty() ? "" : " at " + where);
}

/// The memory of a training step, by what it is for.
static void printMemory(const am::Manifest &manifest) {
  if (!manifest.stepMemory)
    return;
  const am::StepMemory &memory = *manifest.stepMemory;
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
  int64_t scratch = 0;
  for (const am::Program &program : manifest.programs)
    scratch = std::max(scratch, am::scratchOfThread(manifest, program));
  if (scratch)
    std::printf("%-20s %12s\n", "and for each thread",
                bytesText(scratch).c_str());
  if (memory.host)
    std::printf("%-20s %12s\n", "beside, on the host",
                bytesText(memory.host).c_str());
}

/// What is saved, what making it again would take, and the op that makes it.
static void printSaved(const am::Manifest &manifest) {
  const am::Program *forward = manifest.findProgram("forward");
  if (!forward)
    return;
  std::map<std::string_view, const am::Partition::Saved *> about;
  if (manifest.partition)
    for (const am::Partition::Saved &saved : manifest.partition->saved)
      about[saved.name] = &saved;
  // On the device, and on the host; the column says it where there are both.
  int64_t totals[2] = {0, 0};
  bool isSplit = std::any_of(forward->results.begin(), forward->results.end(),
                             [](const am::Slot &slot) { return slot.onHost; });
  auto place = [&](bool onHost) {
    return !isSplit ? "" : onHost ? "host    " : "device  ";
  };
  std::printf("\n%-28s %-22s %10s %10s  %s%s\n", "saved", "type", "bytes",
              "again", isSplit ? "in      " : "", "reason; made by");
  for (const am::Slot &slot : forward->results) {
    if (slot.role != am::Role::Saved)
      continue;
    int64_t bytes = am::tensorBytes(slot.dtype, slot.shape).value_or(0);
    totals[slot.onHost] += bytes;
    auto known = about.find(slot.name);
    const am::Partition::Saved *saved =
        known == about.end() ? nullptr : known->second;
    std::string by = saved ? opText(saved->op, saved->where) : "";
    std::printf(
        "%-28s %-22s %10s %10s  %s%s%s%s\n", slot.name.c_str(),
        typeText(slot.dtype, slot.shape).c_str(), bytesText(bytes).c_str(),
        saved && saved->seconds ? shortTime(saved->seconds).c_str() : "",
        place(slot.onHost), slot.reason.c_str(), by.empty() ? "" : "; ",
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
static void printRepeated(const am::Manifest &manifest) {
  if (!manifest.partition || manifest.partition->repeated.empty())
    return;
  double seconds = 0;
  std::printf("\n%-50s %10s %10s  %s\n", "computed again", "bytes", "time",
              "reason");
  for (const am::Partition::Repeated &op : manifest.partition->repeated) {
    seconds += op.seconds;
    std::printf("%-50s %10s %10s  %s\n", opText(op.op, op.where).c_str(),
                bytesText(op.bytes).c_str(), shortTime(op.seconds).c_str(),
                op.reason.c_str());
  }
  std::printf("%-50s %10s %10s\n", "total", "", shortTime(seconds).c_str());
}

static std::string chainText(const am::Alias &alias) {
  std::string text = "'" + (alias.of.empty() ? alias.output : alias.of) + "'";
  for (const am::View &view : alias.views)
    text += ", " + std::string(spelling(view.op));
  return text;
}

/// What the programs write, and what shares memory.
static void printMutations(const am::Manifest &manifest) {
  bool isFirst = true;
  auto row = [&](const std::string &program, const std::string &name,
                 const std::string &change, const std::string &where) {
    if (isFirst)
      std::printf("\n%-10s %-24s %-36s %s\n", "in", "value", "change", "by");
    isFirst = false;
    std::printf("%-10s %-24s %-36s %s\n", program.c_str(), name.c_str(),
                change.c_str(), where.c_str());
  };
  for (const am::Program &program : manifest.programs) {
    if (program.name != "forward" && program.name != "backward")
      continue;
    for (const am::Slot &slot : program.arguments) {
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
    for (const am::Slot &slot : program.results)
      if (slot.role == am::Role::Update)
        row(program.name, slot.name,
            slot.visible ? "data, differentiated" : "data", slot.where);
    for (const am::OutputAlias &output : program.aliases)
      row(program.name, output.name, "is a view of " + chainText(output.alias),
          output.partOf);
  }
  if (manifest.mutatedInBackward.empty())
    return;
  std::printf("\nrequires grad and is written by the backward, so that "
              "create_graph is refused:\n");
  for (int64_t index : manifest.mutatedInBackward)
    std::printf("  %s (index %lld)\n", manifest.values[index].name.c_str(),
                static_cast<long long>(index));
}

static void printKernels(const am::Manifest &manifest) {
  std::vector<int> uses(manifest.kernels.size());
  for (const am::Program &program : manifest.programs)
    for (const am::Launch &launch : program.launches)
      if (!launch.isCopy())
        ++uses[launch.kernel];
  std::printf("\n%-44s %-12s %5s %12s %12s %4s\n", "kernel", "class", "uses",
              "MFLOP", "bytes", "ops");
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    const am::Kernel &kernel = manifest.kernels[i];
    std::printf("%-44s %-12s %5d %12.3f %12s %4zu\n", kernel.symbol.c_str(),
                kernel.kind.c_str(), uses[i], kernel.flops / 1e6,
                bytesText(kernel.bytes).c_str(), kernel.ops.size());
  }
}

static void printSections(const am::ArtifactReader &reader) {
  std::printf("\n%-14s %12s\n", "section", "bytes");
  for (const auto &section : reader.sections())
    std::printf("%-14s %12zu\n", section.name.c_str(), section.bytes.size());
  std::printf("%-14s %12zu\n", "file", reader.fileBytes());
}

/// The manifest, or an array of those of several targets.
static Status printJson(const am::ArtifactReader &reader) {
  auto all = nlohmann::ordered_json::array();
  for (const am::Manifest &manifest : reader.manifests()) {
    auto text = am::toJson(manifest);
    if (!text)
      return text.status();
    all.push_back(nlohmann::ordered_json::parse(*text));
  }
  std::printf("%s\n", (all.size() == 1 ? all[0] : all).dump(1).c_str());
  return Status::success();
}

static std::string targetText(const am::Manifest &manifest) {
  return manifest.target.kind + " " + manifest.target.arch;
}

static void printHead(const am::ArtifactReader &reader) {
  const am::Manifest &manifest = reader.manifest();
  std::string targets;
  for (const am::Manifest &one : reader.manifests())
    targets += (targets.empty() ? "" : " and ") + targetText(one);
  std::printf("model %s, %s, for %s%s%s%s%s\n", manifest.model.c_str(),
              manifest.producer.c_str(), targets.c_str(),
              manifest.loss.empty() ? "" : ", loss ", manifest.loss.c_str(),
              manifest.optimizer.empty() ? "" : ", optimizer ",
              manifest.optimizer.c_str());
}

/// Prints the curve, and writes it to `path`, if there is one.
static Status showBudgetCurve(const std::string &model, const std::string &path,
                              const CompileOptions &options,
                              std::optional<double> seconds) {
  bool isSvg = std::string_view(path).ends_with(".svg");
  if (!path.empty() && !isSvg && !std::string_view(path).ends_with(".json"))
    return Status::usage("expected --budget-curve=FILE to end in .json or "
                         ".svg, but got '" +
                         path + "'");
  if (std::string_view(model).ends_with(".tdm"))
    return Status::usage("--budget-curve needs a model: an artifact has one "
                         "budget");
  auto curve = budgetCurve(model, options, seconds);
  if (!curve)
    return curve.status();
  std::fputs(toTable(*curve).c_str(), stdout);
  if (path.empty())
    return Status::success();
  std::string text = isSvg ? toSvg(*curve) : toJson(*curve);
  auto file = am::AtomicFile::create(path);
  if (!file)
    return file.status();
  Status status = file->write(text.data(), text.size());
  return status ? file->commit() : status;
}

Status commands::inspect(std::string_view tool, Words words) {
  OptionTable table("inspect X.tdm|MODEL [options]",
                    "Shows what is in an artifact; a model is compiled first, "
                    "in memory.");
  std::string path;
  bool json = false, ptx = false, resources = false;
  bool curve = false;
  std::string kernel, curvePath;
  std::optional<double> measured;
  CompileFlags flags;
  table.positional("FILE", path, "an artifact (.tdm) or a model");
  table.flag("json", json, "print the manifest as JSON");
  table.optionalText("ptx", "KERNEL", ptx, kernel,
                     "print the PTX of all kernels, or of one");
  table.flag("kernels", resources,
             "print the registers, shared memory and spills of each kernel\n"
             "for cuda, as ptxas reports them");
  table.optionalText(
      "budget-curve", "FILE", curve, curvePath,
      "print planned peak and time of a step under memory\n"
      "budgets from 0 to 1; write them to FILE.json or FILE.svg");
  table.number("measure", "SECONDS", measured,
               "with --budget-curve: run each plan's step for so long");
  flags.declare(table);
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  CompileOptions options;
  if (Status s = flags.finish(options); !s)
    return s;
  if (measured && (!curve || *measured <= 0))
    return Status::usage("--measure needs --budget-curve and a time above 0");
  if (curve)
    return showBudgetCurve(path, curvePath, options, measured);
  Session session(options);
  if (std::string_view(path).ends_with(".onnx") && !json && !ptx) {
    std::fputs(session.summary(path).c_str(), stdout);
    if (Status s = session.status(); !s)
      return s;
    std::printf("\n");
  }
  Result<am::ArtifactReader> reader = std::string_view(path).ends_with(".tdm")
                                          ? am::ArtifactReader::open(path)
                                          : session.loaded(path);
  if (!reader)
    return reader.status();
  if (ptx)
    return printPtx(*reader, kernel);
  if (resources)
    return printResources(*reader);
  if (json)
    return printJson(*reader);
  printHead(*reader);
  printValues(reader->manifest());
  for (const am::Manifest &manifest : reader->manifests()) {
    if (reader->manifests().size() > 1)
      std::printf("\n---- for %s ----\n", targetText(manifest).c_str());
    printPrograms(manifest);
    printMemory(manifest);
    printSaved(manifest);
    printRepeated(manifest);
    printMutations(manifest);
    printKernels(manifest);
    if (manifest.target.kind == "cuda")
      printGrids(manifest);
  }
  printSections(*reader);
  return Status::success();
}
