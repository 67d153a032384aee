//===- StageRuns.h - models in stages, trained over threads ---------------===//
#ifndef TANDEM_TESTS_SHARD_STAGERUNS_H
#define TANDEM_TESTS_SHARD_STAGERUNS_H

#include "tests/shard/Models.h"

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/pipeline/Pipeline.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tandem::test {

using Program = std::function<void(Trace &, const Sizes &)>;
using Readers = std::vector<artifact::ArtifactReader>;

/// Artifacts: one of a process, or one for each stage.
struct Compilation {
  Readers readers;
  std::string diagnostics;
  Status status;
};

/// How a model is compiled: for `ranks` along `pipe`, and more for other axes.
struct Way {
  int64_t ranks = 1, virtualStages = 1;
  std::string axes = {};     ///< "data=2"
  std::string parallel = {}; ///< "ddp"
  std::string plan = {};     ///< of --shard
  int64_t batch = 12;
  std::string optimizer = "adamw:lr=0.05";
  std::string clip = {}, lossScale = {}, schedule = {}, ema = {}, swa = {};
  std::vector<std::string> groups = {};
  int skips = 0; ///< with a scale: how many updates are left out

  int64_t stages() const { return ranks * virtualStages; }
  Way alone() const {
    Way one = *this;
    one.ranks = one.virtualStages = 1;
    one.axes = one.parallel = one.plan = "";
    return one;
  }
};

Compilation compiled(const Program &program, const Way &way);

/// The inputs of batch `number`, the same for all. It keeps the names that its
/// arguments show.
struct Batch {
  Batch(std::vector<artifact::Value> of, int64_t number);
  Batch(const Batch &) = delete;

  std::vector<artifact::Value> inputs;
  std::vector<runtime::Tensor> values;
  std::vector<runtime::Argument> arguments;
};

/// The stages of a rank, on one thread.
Result<pipeline::Pipeline>
pipelineOf(const Readers &stages, std::shared_ptr<comm::Communicator> world);

/// What a training leaves.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> variables;
  std::map<int64_t, int64_t> mostLive;
  /// How many ranks have a parameter.
  std::map<std::string, int> havers;
  /// What `evaluate` gives then, of the whole model.
  std::map<std::string, std::vector<double>> evaluated;
  std::map<std::string, artifact::Slot> outputs;
};

/// `updates` updates, each for `batches` batches, and then one batch more.
Trained alone(const artifact::ArtifactReader &reader, int64_t updates,
              int64_t batches);
Trained onRanks(const Readers &stages, int64_t updates, int64_t batches);

} // namespace tandem::test

#endif
