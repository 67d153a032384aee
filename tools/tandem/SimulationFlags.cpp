//===- SimulationFlags.cpp - the options that say what to simulate --------===//
#include "tools/tandem/SimulationFlags.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

template <typename Rows>
static std::vector<std::string> namesOf(const Rows &rows) {
  std::vector<std::string> names;
  for (const auto &row : rows)
    names.push_back(row.first);
  return names;
}

void commands::declareMachine(SimulationOptions &options, OptionTable &table,
                              std::string_view needs) {
  auto own = [&](Option &option) -> Option & {
    return needs.empty() ? option : option.needs(needs, "it is simulated");
  };
  own(table.text("device", "NAME", options.device,
                 "the device of a rank ('tandem help machines')"))
      .byDefault("that of --links, or cpu")
      .completes([] { return namesOf(Machines::builtin().devices()); })
      .example("h100");
  own(table.text("links", "INSIDE[+BETWEEN]", options.links,
                 "the link between the ranks of a machine, and that between "
                 "machines"))
      .byDefault("the device's, in one machine")
      .completes([] { return namesOf(Machines::builtin().links()); })
      .example("h100-nvlink+ib400");
  own(table.text("machines", "F.json", options.machines,
                 "a file with more devices and links, or others of the same "
                 "names"));
  own(table.integer("ranks-per-machine", "N", options.ranksOfMachine, 1,
                    1 << 20, "how many ranks share a machine"))
      .byDefault("what the link says");
  own(table.number("rank-threads", "N", options.threads,
                   "the processors of a rank, where these are the device; what "
                   "is left of its part of the machine communicates"))
      .above(0)
      .atMost(4096)
      .byDefault("its part of the machine");
  own(table.text("calibrate", "F.json", options.calibration,
                 "a measured step, {\"step_ms\": 41.2, \"ranks\": 2}, that "
                 "rates are corrected by"));
}

void commands::declare(Files &files, const SimulationOptions &options) {
  files.reads("--machines", options.machines);
  files.reads("--calibrate", options.calibration);
}

static std::string printed(const char *format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string commands::machinesHelp() {
  const Machines &machines = Machines::builtin();
  std::string text =
      printed("%-14s %-12s %10s %9s %9s %10s  %s\n", "device", "target", "GB/s",
              "f32 TF/s", "bf16 TF/s", "GB", "links");
  for (const auto &[name, row] : machines.devices())
    text += printed("%-14s %-12s %10.0f %9.1f %9.1f %10.0f  %s\n", name.c_str(),
                    row.target.c_str(), row.memory / 1e9, row.f32 / 1e12,
                    row.narrow / 1e12, row.capacity / 1e9, row.links.c_str());
  text += printed("\n%-14s %10s %10s %9s  %s\n", "link", "GB/s", "us",
                  "achieves", "where");
  for (const auto &[name, row] : machines.links())
    text += printed("%-14s %10.2f %10.1f %9.2f  %s\n", name.c_str(),
                    row.rate / 1e9, row.latency * 1e6, row.achieved,
                    row.ranks ? printed("inside of a machine of %lld ranks",
                                        static_cast<long long>(row.ranks))
                                    .c_str()
                    : row.isShared ? "between machines, for all ranks of one"
                                   : "between machines, for each rank");
  return text +
         "\nGB/s are those of data sheets, of a link each way. Where the "
         "numbers are from, and how a file adds to them: "
         "docs/SIMULATION.md.\n";
}
