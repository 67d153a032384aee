//===- Simulation.h - a step of a model on other machines -----------------===//
//
// What `simulate` asks, `compile --parallel=auto` chooses by, and both print.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_SIMULATION_H
#define TANDEM_TOOLS_TANDEM_SIMULATION_H

#include "compiler/Compile.h"
#include "tools/simulate/Calibration.h"
#include "tools/simulate/Step.h"

#include <memory>

namespace tandem::commands {

/// What a step is simulated on, as options say it.
struct SimulationOptions {
  std::string device; ///< a row of the table; empty: that of the links, or cpu
  std::string links;  ///< `h100-nvlink+ib400`; empty: the device's
  std::string machines;                  ///< a file with more rows; empty: none
  std::optional<int64_t> ranksOfMachine; ///< else as many as the links say
  std::optional<double> threads;         ///< of a rank, on processors
  std::optional<double> processors;      ///< of a machine; else the table's
  std::optional<int64_t> batches;
  bool noOverlap = false;
  std::string calibration; ///< a file with a measurement; empty: none
  /// Of one batch of a model that is not cut, if somebody has counted them.
  std::optional<double> forwardFlops;
};

/// The table of devices and links, with the rows of a file; empty: without.
Result<Machines> machinesWith(const std::string &path);

/// The rows that the options name.
struct SimulatedMachine {
  DeviceRow device;
  LinkRow inside;
  std::optional<LinkRow> between;
  int64_t ranksOfMachine = 1;
};

/// Fails with Usage where a row is not there, or the links do not go together.
Result<SimulatedMachine> machineOf(const SimulationOptions &options);

/// Fails with Usage where such a device runs no code that is compiled so
/// (`--target`; empty: for whatever it is).
Status expectCodeFor(const DeviceRow &device, const std::string &compiledFor);

/// A simulated step. Tasks have names of the manifests.
struct Simulation {
  SimulatedMachine machine;
  std::unique_ptr<std::vector<artifact::Manifest>> stages;
  std::unique_ptr<simulate::Network> network;
  simulate::StepResult step;
  int64_t vectorBits = 256; ///< of a processor
  double peak = 0;          ///< flops of a rank in a second, by the data sheet
  double modelFlops = 0;    ///< of an update, of all ranks together
  bool isOfModel = false;   ///< they are counted before the model was cut

  int64_t ranks() const { return network->ranks(); }
  /// Flops of the model, of those that all ranks could do meanwhile.
  double mfu() const;
  /// The most that a rank needs, with what batches under way keep.
  int64_t memory() const;
  bool fits() const { return double(memory()) <= machine.device.capacity; }
};

/// Compiles the model to `plan` and simulates a step. If `problem` is there,
/// nothing is printed, and it gets the first error of the compiler.
Result<Simulation> simulateModel(const std::string &path,
                                 CompileOptions compile,
                                 const SimulationOptions &options,
                                 std::string *problem = nullptr);

/// The same of an artifact, or of the stages of which it is the first.
Result<Simulation> simulateArtifact(const std::string &path,
                                    const SimulationOptions &options);

/// The same of what artifacts say, of one rank or of all stages in their order.
Result<Simulation> simulateManifests(std::vector<artifact::Manifest> stages,
                                     const SimulationOptions &options);

/// One mesh with a plan, and what came of it.
struct Candidate {
  std::string mesh, parallel;
  std::optional<Simulation> simulation;
  std::string problem; ///< why there is none
};

/// Simulates each mesh of `ranks` ranks with each plan, or, where
/// `compile.mesh` names one, each plan for that. Those that fit into memory
/// come first, the fastest in front. Says on stderr how far it is.
Result<std::vector<Candidate>> sweep(const std::string &path,
                                     const CompileOptions &compile,
                                     const SimulationOptions &options,
                                     std::optional<int64_t> ranks);

} // namespace tandem::commands

#endif
