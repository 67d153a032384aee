//===- SimulationReport.h - what a simulation has shown -------------------===//
#ifndef TANDEM_TOOLS_TANDEM_SIMULATIONREPORT_H
#define TANDEM_TOOLS_TANDEM_SIMULATIONREPORT_H

#include "tools/tandem/Simulation.h"

#include <nlohmann/json_fwd.hpp>

namespace tandem::commands {

/// Prints it for people.
void printSimulation(const std::string &name, const Simulation &simulation);
void printSweep(const std::vector<Candidate> &candidates);

/// The same as one JSON object.
nlohmann::ordered_json toJson(const Simulation &simulation);
nlohmann::ordered_json toJson(const std::vector<Candidate> &candidates);

/// "1024 ranks (data=128, tensor=8)".
std::string ranksText(const Simulation &simulation);

} // namespace tandem::commands

#endif
