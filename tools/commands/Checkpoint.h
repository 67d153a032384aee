//===- Checkpoint.h - parameters and training state in safetensors files --===//
//
// A checkpoint is every parameter and state of a model under its name, and
// where training stands and what of as metadata: what is needed to go on as if
// it had never stopped, and to see that it is the same training.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_CHECKPOINT_H
#define TANDEM_TOOLS_COMMANDS_CHECKPOINT_H

#include "runtime/io/TensorFiles.h"
#include "runtime/model/Model.h"
#include "runtime/pipeline/Pipeline.h"
#include "tools/commands/Inputs.h"
#include "tools/commands/RateGroups.h"

#include <map>
#include <set>

namespace tandem::commands {

/// The most epochs, steps and rows of a training, which is what f64, and so any
/// JSON, holds: what is counted from there by one command does not overflow.
inline constexpr int64_t mostSteps = int64_t(1) << 53;

/// Where training stands: `step` of `epoch` is the next one to do. Numbers are
/// at most `mostSteps`.
struct Position {
  int64_t epoch = 0;      ///< complete passes over the data
  int64_t step = 0;       ///< steps done in the pass that follows
  int64_t totalSteps = 0; ///< steps done in all
  uint64_t seed = 0;
  int64_t rows = 0, batch = 0;
  bool shuffle = true;
  /// Batches of an update; 0 after a checkpoint of before, which does not say.
  int64_t accumulate = 0;
  /// Of the pass that was begun: the sum of the losses of its steps, and how
  /// many these are; fewer than `step` after a checkpoint of before 0.2.0.
  double lossSum = 0;
  int64_t losses = 0;
  /// What is known of the best evaluation (Best.h); empty: nothing.
  std::string best = {};
  /// An evaluation after this step was interrupted: it is still to be done.
  bool owesEvaluation = false;
};

/// What is trained on what. A digest is empty where it is not known.
struct Origin {
  std::string model; ///< the module's name
  std::string graph; ///< the manifest's digest of the model's graph
  std::string data;  ///< JSON: {name: "f32 [N, 64] CRC32"} of each array
};

/// True for a parameter, and for a state that is not one of a training.
bool isOfModel(const artifact::Value &value,
               const artifact::Manifest &manifest);

/// Overwrites the parameters and the model's own states (running statistics).
/// The optimizer's states and that of random numbers belong to a training, and
/// stay. Fails, naming all problems, unless the file `path` has every parameter
/// and own state with the right shape; then nothing is changed. With `average`
/// parameters that have an average of this name there are given that.
Status loadParameters(runtime::Model &model, const std::string &path,
                      const std::string &average = "");

/// An average of parameters that an artifact can have.
struct AverageKind {
  std::string_view name;   ///< of --average
  std::string_view state;  ///< of a parameter, before its name
  std::string_view count;  ///< above 0 once it has one, before its name
  std::string_view option; ///< of compile, that makes it
};
inline constexpr AverageKind averageKinds[] = {
    {"ema", "ema:", "ema_count:", "--ema"},
    {"swa", "swa:", "swa_count:", "--swa"},
    {"schedulefree", "schedulefree.x:", "schedulefree.weight_sum:",
     "--optimizer=schedulefree"}};
/// The row of a name that --average takes.
const AverageKind &averageKind(std::string_view name);

/// The same of what the file has with the right shape; the rest stays as it is.
/// `models` are those of this rank: one, or its stages. Returns what that is of
/// the models of all ranks, for people. Fails if nothing fits. All ranks call
/// it.
Result<std::string> loadWhatFits(std::span<runtime::Model> models,
                                 const std::string &path);

/// A checkpoint that was read.
class Checkpoint {
public:
  static Result<Checkpoint> read(const std::string &path);

  const Position &position() const { return position_; }
  const Origin &origin() const { return origin_; }
  /// Returns how many batches wait for an update in it.
  int64_t pending() const;

  /// Overwrites every parameter and state, the optimizer's too; `notes` says of
  /// what there is none, and that begins anew, and what is left behind. Rates
  /// of groups, of which `groups` are those of the models of all ranks, are
  /// those of the same parameters. Fails, naming
  /// all problems, unless the file has each with the right shape, and rates and
  /// counts that can be, or if another optimizer's are in it; then nothing is
  /// changed.
  Status restore(runtime::Model &model, const RateGroups &groups,
                 std::vector<std::string> &notes) const;

private:
  Checkpoint(std::string path, io::TensorFiles files)
      : path_(std::move(path)), files_(std::move(files)) {}

  std::string path_;
  io::TensorFiles files_;
  Position position_;
  Origin origin_;
};

/// The parameters and states of a model that are to be saved as `path`. All
/// ranks call its functions. In one file, the first rank has the whole of them
/// at one moment, and writes it; the others have nothing. In several (an
/// index), each rank looks at its own and writes its own.
class Snapshot {
public:
  static Result<Snapshot> of(const runtime::Model &model,
                             const std::string &path);

  /// The same of a model in stages.
  static Result<Snapshot> of(const pipeline::Pipeline &stages,
                             const std::string &path);

  /// Fails, naming them, if trained parameters hold NaN or infinity: they
  /// cannot be trained on, and should not replace those of an earlier moment.
  Status checkFinite() const;

  /// The names, in quotes, of other values in which there is NaN; infinity can
  /// be meant, as of a mask or the least value so far.
  std::string statesOfNaN() const;

  /// Replaces the checkpoint.
  Status save(const Position &position, const Origin &origin) const;

private:
  /// `Report`: what the optimizer only tells.
  enum class Kind : uint8_t { Trained, Report, Other };

  Status look();
  Status lookAtStages();
  static Kind kindOf(const artifact::Value &value,
                     const artifact::Manifest &manifest);
  std::string namesOf(Kind kind) const;

  const runtime::Model *model_ = nullptr;
  const pipeline::Pipeline *stages_ = nullptr;
  std::string path_;
  bool inShards_ = false;
  std::vector<NamedTensor> tensors_;
  /// Of each of these: what it is, and whether there is NaN in it, or infinity
  /// in what is trained.
  std::vector<Kind> kinds_;
  std::vector<uint8_t> isBad_;
  /// Of stages: the names of what is bad on any rank.
  std::map<Kind, std::set<std::string>> bad_;
};

/// The name of the state that the optimizer calls `variable`, as "lr"; empty
/// without one.
std::string optimizerState(const artifact::Manifest &manifest,
                           std::string_view variable);

} // namespace tandem::commands

#endif
