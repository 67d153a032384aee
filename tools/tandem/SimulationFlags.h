//===- SimulationFlags.h - the options that say what to simulate ----------===//
#ifndef TANDEM_TOOLS_TANDEM_SIMULATIONFLAGS_H
#define TANDEM_TOOLS_TANDEM_SIMULATIONFLAGS_H

#include "tools/commands/Files.h"
#include "tools/commands/Options.h"
#include "tools/tandem/Simulation.h"

namespace tandem::commands {

/// The options of `simulate` that say on what. `needs`, a condition, is what
/// they are for; empty: always.
void declareMachine(SimulationOptions &options, OptionTable &table,
                    std::string_view needs);
/// Says which files these options read.
void declare(Files &files, const SimulationOptions &options);

/// Returns the page of help about devices and links: the tables.
std::string machinesHelp();

} // namespace tandem::commands

#endif
