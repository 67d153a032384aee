//===- Inspect.cpp - the command `inspect` --------------------------------===//
//
// Shows an artifact: its values and their roles, programs, saved values with
// the reason for each, kernels, memory, sections. A model is compiled first.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/Session.h"

#include "nlohmann/json.hpp"

#include <cstdio>

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

static std::string bytesText(int64_t bytes) {
  char text[32];
  if (bytes < 10'000)
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  else if (bytes < 10'000'000)
    std::snprintf(text, sizeof text, "%.1f KB", bytes / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f MB", bytes / 1e6);
  return text;
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
      flops += static_cast<double>(manifest.kernels[launch.kernel].flops);
    std::printf("%-10s %8zu %10zu %12.4f %12s %12s\n", program.name.c_str(),
                program.launches.size(), program.results.size(), flops / 1e9,
                bytesText(program.arenaBytes).c_str(),
                bytesText(program.peakBytes).c_str());
  }
}

static void printSaved(const am::Manifest &manifest) {
  const am::Program *forward = manifest.findProgram("forward");
  if (!forward)
    return;
  int64_t total = 0;
  std::printf("\n%-28s %-22s %10s  %s\n", "saved", "type", "bytes", "reason");
  for (const am::Slot &slot : forward->results) {
    if (slot.role != am::Role::Saved)
      continue;
    int64_t bytes = am::tensorBytes(slot.dtype, slot.shape).value_or(0);
    total += bytes;
    std::printf("%-28s %-22s %10s  %s\n", slot.name.c_str(),
                typeText(slot.dtype, slot.shape).c_str(),
                bytesText(bytes).c_str(), slot.reason.c_str());
  }
  std::printf("%-28s %-22s %10s\n", "total", "", bytesText(total).c_str());
}

static void printKernels(const am::Manifest &manifest) {
  std::vector<int> uses(manifest.kernels.size());
  for (const am::Program &program : manifest.programs)
    for (const am::Launch &launch : program.launches)
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

Status commands::inspect(std::string_view tool, Words words) {
  OptionTable table("inspect X.tdm|MODEL [options]",
                    "Shows what is in an artifact; a model is compiled first, "
                    "in memory.");
  std::string path;
  bool json = false;
  CompileFlags flags;
  table.positional("FILE", path, "an artifact (.tdm) or a model");
  table.flag("json", json, "print the manifest as JSON");
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
  Result<am::ArtifactReader> reader = std::string_view(path).ends_with(".tdm")
                                          ? am::ArtifactReader::open(path)
                                          : Session(options).loaded(path);
  if (!reader)
    return reader.status();
  const am::Manifest &manifest = reader->manifest();
  if (json) {
    auto text = am::toJson(manifest);
    if (!text)
      return text.status();
    std::printf("%s\n", nlohmann::ordered_json::parse(*text).dump(1).c_str());
    return Status::success();
  }
  std::printf("model %s, %s, for %s %s%s%s%s%s\n", manifest.model.c_str(),
              manifest.producer.c_str(), manifest.target.kind.c_str(),
              manifest.target.arch.c_str(),
              manifest.loss.empty() ? "" : ", loss ", manifest.loss.c_str(),
              manifest.optimizer.empty() ? "" : ", optimizer ",
              manifest.optimizer.c_str());
  printValues(manifest);
  printPrograms(manifest);
  printSaved(manifest);
  printKernels(manifest);
  printSections(*reader);
  return Status::success();
}
