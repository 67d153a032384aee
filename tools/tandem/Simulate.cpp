//===- Simulate.cpp - the command `simulate` ------------------------------===//
#include "compiler/CheckOptions.h"
#include "tools/commands/Print.h"
#include "tools/simulate/Pictures.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/ModelBeside.h"
#include "tools/tandem/SimulationFlags.h"
#include "tools/tandem/SimulationReport.h"
#include "tools/tandem/WriteText.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::commands;

namespace {
struct SimulateOptions {
  static constexpr std::string_view
      usage = "simulate X.tdm|MODEL [options]",
      description =
          "Says what a step of training takes on machines that are not there: "
          "its time and what bounds it, communication that nothing hides, the "
          "bubble of a pipeline, the memory of a rank. A model is compiled as "
          "far as to its plan; nothing runs. 'tandem help machines' lists "
          "devices and links.";

  std::string path, trace, svg;
  bool json = false, isSweep = false;
  std::optional<int64_t> devices;
  SimulationOptions machine;
  CompileFlags flags;

  void declare(OptionTable &table);
};
} // namespace

void SimulateOptions::declare(OptionTable &table) {
  table.positional("FILE", path, "an artifact (.tdm), or a model");
  declareMachine(machine, table, "");
  table
      .integer("batches", "K", machine.batches, 1, 1 << 16,
               "batches for one update, as 'train --accumulate=K'")
      .byDefault("1");
  table.flag("no-overlap", machine.noOverlap,
             "ranks communicate while nothing is computed");
  table
      .flag("sweep", isSweep,
            "simulate every plan for the axes of --mesh, or every mesh of "
            "--devices with every plan, and rank them by time")
      .notFor(".tdm", "an artifact, which has one plan");
  table
      .integer("devices", "N", devices, 1, 1 << 20,
               "how many ranks there are, for --sweep")
      .needs("sweep")
      .excludes("mesh", "it says how many there are");
  table.flag("json", json, "print it as one JSON object");
  table
      .text("trace", "F.json", trace,
            "write the timeline in Chrome's trace format, for Perfetto")
      .excludes("sweep", "it is of one step");
  table.text("svg", "F.svg", svg, "write the timeline as a picture")
      .excludes("sweep", "it is of one step");
  size_t own = table.options().size();
  table.groupOf("compile");
  flags.declare(table);
  for (size_t i = own; i < table.options().size(); ++i) {
    Option &option = table.options()[i];
    if (option.name != "force")
      option.notFor(".tdm", "an artifact, which is compiled");
    if (option.name == "parallel")
      option.excludes("sweep", "it tries all plans");
  }
}

static Status runSweep(const SimulateOptions &command,
                       const CompileOptions &options) {
  if (!command.devices && options.mesh.empty())
    return Status::usage("--sweep needs --devices or --mesh");
  auto candidates =
      sweep(command.path, options, command.machine, command.devices);
  if (!candidates)
    return candidates.status();
  if (command.json)
    std::printf("%s\n", toJson(*candidates).dump(1).c_str());
  else
    printSweep(*candidates);
  bool hasAny = false;
  for (const Candidate &one : *candidates)
    hasAny |= one.simulation.has_value();
  return hasAny ? Status::success()
                : Status::failed("no plan could be simulated");
}

static Status runSimulate(const SimulateOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finish(options); !s)
    return s;
  Files files;
  command.flags.declare(files, command.path);
  declare(files, command.machine);
  files.writes({"--trace", command.trace, {io::FileKind::Profile}});
  files.writes({"--svg", command.svg, {io::FileKind::Svg}});
  if (Status s = files.check(command.flags.force); !s)
    return s;
  // Before the model is compiled.
  auto machine = machineOf(command.machine);
  if (!machine)
    return std::move(machine).status();
  if (Status s = expectCodeFor(machine->device, options.target); !s)
    return s;
  if (command.isSweep)
    return runSweep(command, options);
  bool isArtifact = std::string_view(command.path).ends_with(".tdm");
  auto simulation = isArtifact
                        ? simulateArtifact(command.path, command.machine)
                        : simulateModel(command.path, options, command.machine);
  if (!simulation)
    return std::move(simulation).status();
  if (command.machine.ranksOfMachine && simulation->ranks() == 1)
    return Status::usage("--ranks-per-machine has no effect: there is one "
                         "rank");
  if (command.json)
    std::printf("%s\n", toJson(*simulation).dump(1).c_str());
  else
    printSimulation(command.path, *simulation);
  if (!command.trace.empty())
    if (Status s =
            writeText(command.trace, simulate::toTrace(simulation->step));
        !s)
      return s;
  if (command.svg.empty())
    return Status::success();
  std::string title = command.path + " on " + ranksText(*simulation);
  return writeText(command.svg, simulate::toSvg(simulation->step, title));
}

Command commands::simulateCommand() {
  return commandOf<runSimulate>("simulate",
                                "say what a step would take on other machines");
}
