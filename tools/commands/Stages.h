//===- Stages.h - a model in stages, as commands train it -----------------===//
//
// The artifact of a pipeline is a file for each stage, which lie side by side
// (runtime/artifact/StageFiles.h). Each rank loads those of its stages.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_STAGES_H
#define TANDEM_TOOLS_COMMANDS_STAGES_H

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/pipeline/Pipeline.h"
#include "tools/commands/Checkpoint.h"

#include <deque>

namespace tandem::commands {

/// Connects the ranks that the stages are for, and loads this rank's. `first`
/// is the file of the options, stage 0. Fails with Unsupported for --profile,
/// which is of one model.
Result<pipeline::Pipeline> openStages(const ModelOptions &options,
                                      const artifact::ArtifactReader &first);

/// Fails with Usage unless `file` with this manifest is `stage` of the artifact
/// `path`, whose stage 0 is `first`: one compilation wrote all of them.
Status checkStage(const artifact::Manifest &manifest, const std::string &file,
                  int64_t stage, const artifact::Manifest &first,
                  const std::string &path);

/// Reads the manifests of all stages of the artifact `path`, whose stage 0 is
/// `first`, in their order.
Result<std::vector<artifact::Manifest>>
manifestsOfStages(const std::string &path, const artifact::Manifest &first);

/// A manifest and a program that have the inputs of the whole model, to match
/// data with.
struct StageInputs {
  artifact::Manifest manifest;
  explicit StageInputs(const artifact::Manifest &stage);
  const artifact::Program &program() const { return manifest.programs[0]; }
};

/// Tensors by name, all of which the first rank gets, each once: of those that
/// several ranks have, that of the first of them. Others get nothing. They are
/// dense and on the host; all ranks call it.
Result<std::vector<NamedTensor>> gatherTensors(std::vector<NamedTensor> own,
                                               comm::Communicator &world);

/// Batches that go through all stages together, and then have their losses one
/// after the other. Between these the model is that after all of them.
class StageBatches {
public:
  /// Begins where the models' states are. One update for `batches`.
  Status begin(pipeline::Pipeline &stages, int64_t batches);

  /// True unless losses are left of batches that are done.
  bool isBetween() const { return losses_.empty(); }
  /// True if the last batch was the last one of an update.
  bool endedUpdate() const { return losses_.empty() && updated_; }
  /// How many batches were added up since the last update.
  int64_t pending() const { return pending_; }

  /// Sets `loss` to that of the next batch. Where none is left, does as many as
  /// an update takes, and at most `most`; `endsPass`: these are the last ones
  /// of the pass, after which there is an update.
  Status step(int64_t most, bool endsPass,
              const pipeline::Pipeline::GiveBatch &give, runtime::Tensor &loss);

private:
  pipeline::Pipeline *stages_ = nullptr;
  std::deque<double> losses_;
  int64_t batches_ = 1, pending_ = 0;
  bool updated_ = false; ///< behind those that are done
};

} // namespace tandem::commands

#endif
