//===- Training.cpp - the loop behind `train` -----------------------------===//
#include "tools/commands/TrainEvaluation.h"

#include "runtime/io/FileLock.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Log.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"
#include "tools/commands/Progress.h"
#include "tools/commands/Resume.h"
#include "tools/commands/Updates.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace tandem::commands {
namespace {

using artifact::Program;
using artifact::Role;
using artifact::Slot;
using runtime::Model;
using runtime::Tensor;

class Trainer {
public:
  Trainer(const TrainOptions &options, Model model, AnomalyLocator locator)
      : options_(options), model_(std::move(model)),
        watch_(options.anomaly, options.model.artifact, locator) {}

  Result<TrainResult> run() {
    for (auto stage : {&Trainer::findPrograms, &Trainer::readData,
                       &Trainer::start, &Trainer::loop, &Trainer::finish})
      if (Status status = (this->*stage)(); !status)
        return status;
    return std::move(result_);
  }

private:
  Status findPrograms();
  Status readData();
  Status readEvalData();
  Status start();
  Status setEnd();
  Status resume();
  Status openLog();
  void sayWhatIsNotReached() const;
  Status loop();
  Status finish();
  Status evaluateNow();
  Status save();
  Status stopped();
  std::string howToGoOn() const;
  Status checkLoss(std::span<const int64_t> rows);
  std::optional<double> learningRate() const;
  Status lock(const std::string &path, io::FileLock &lock);
  Status agreeWithRanks() const;

  const TrainOptions &options_;
  Model model_;
  const Program *step_ = nullptr, *evaluate_ = nullptr;
  Casts casts_;
  std::optional<Dataset> data_, evalData_;
  std::optional<Accuracy> accuracy_;
  std::string lossName_;
  Tensor loss_;
  Log log_;
  TrainResult result_;
  int64_t stepsToDo_ = 0;
  AnomalyWatch watch_;
  Updates updates_;
  bool warnedOfLoss_ = false, warnedOfSave_ = false, warnedOfStates_ = false;
  Origin origin_;
  io::FileLock saveLock_, logLock_;
};

Status Trainer::findPrograms() {
  const artifact::Manifest &manifest = model_.manifest();
  if (options_.anomaly.isOn && rankCount() > 1)
    return Status::unsupported("--detect-anomaly looks at one process, and the "
                               "artifact is for several");
  step_ = manifest.findProgram("step");
  if (!step_)
    return Status::unsupported(
        "'" + options_.model.artifact +
        "' has no program 'step' to train with; compile the model with a loss "
        "and an optimizer");
  lossName_ = manifest.loss;
  const Slot *loss = nullptr;
  for (const Slot &slot : step_->results)
    if (slot.role == Role::Output && slot.name == lossName_)
      loss = &slot;
  if (!loss || !loss->shape.empty())
    return Status::unsupported("program 'step' has no scalar output that is "
                               "the loss");
  auto tensor = Tensor::zeros(loss->dtype, loss->shape);
  if (!tensor)
    return std::move(tensor).status();
  loss_ = std::move(*tensor);
  if (options_.eval.empty())
    return Status::success();
  auto evaluate = programToEvaluate(options_, model_.wholeManifest());
  evaluate_ = evaluate ? *evaluate : nullptr;
  return std::move(evaluate).status();
}

Status Trainer::readData() {
  casts_ = options_.casts;
  if (Status status = casts_.parse(model_.manifest()); !status)
    return status;
  const artifact::Manifest &manifest = model_.wholeManifest();
  auto arrays = readArrays(options_.data, "--data", manifest, casts_);
  if (!arrays)
    return std::move(arrays).status();
  DataUse use;
  use.option = "--data";
  use.ranks = &model_;
  auto data = Dataset::match(manifest, *manifest.findProgram("step"),
                             *std::move(arrays), use);
  if (!data)
    return std::move(data).status();
  data_ = std::move(*data);
  if (data_->rows() < data_->batch())
    return Status::usage(
        "--data: expected at least " + std::to_string(data_->batch()) +
        " rows, one batch, but got " + std::to_string(data_->rows()));
  if (evaluate_)
    if (Status status = readEvalData(); !status)
      return status;
  for (const Dataset *set : {&*data_, evalData_ ? &*evalData_ : nullptr}) {
    if (!set)
      continue;
    for (const std::string &text : set->notes())
      note(text);
    if (Status status = checkFinite(*set, options_.onNaN); !status)
      return status;
  }
  return Status::success();
}

Status Trainer::readEvalData() {
  auto input = readEvaluation(options_, model_, *evaluate_, casts_);
  if (!input)
    return std::move(input).status();
  evalData_ = std::move(input->data);
  accuracy_ = std::move(input->accuracy);
  return Status::success();
}

Status Trainer::resume() {
  auto checkpoint = Checkpoint::read(options_.resume);
  if (!checkpoint)
    return std::move(checkpoint).status();
  ResumeWith with;
  with.path = options_.resume;
  with.origin = origin_;
  with.rows = data_->rows();
  with.batch = data_->batch();
  if (options_.model.seed)
    with.seed = uint64_t(*options_.model.seed);
  with.noShuffle = options_.noShuffle;
  with.force = options_.model.force;
  std::vector<std::string> notes;
  if (Status status = compare(*checkpoint, with, notes); !status)
    return status;
  if (Status status = checkpoint->restore(model_); !status)
    return status;
  if (!options_.lr)
    if (auto note = learningRateNote(model_, options_.resume); !note.empty())
      notes.push_back(note);
  for (const std::string &text : notes)
    note(text);
  result_.position = checkpoint->position();
  return Status::success();
}

/// Takes `path`, if it is not empty, for this training alone.
Status Trainer::lock(const std::string &path, io::FileLock &lock) {
  if (path.empty() || !isFirstRank())
    return Status::success();
  auto taken = io::FileLock::take(path);
  if (!taken)
    return std::move(taken).status();
  lock = *std::move(taken);
  return Status::success();
}

Status Trainer::openLog() {
  if (options_.log.empty() || !isFirstRank())
    return Status::success();
  bool resumes = !options_.resume.empty();
  if (resumes && cutTornLine(options_.log))
    note("the last line of the log " + io::inQuotes(options_.log) +
         " was cut off, and is left out");
  if (auto last = resumes ? lastStepOf(options_.log) : std::nullopt;
      last && *last != result_.position.totalSteps)
    note("the log " + io::inQuotes(options_.log) + " ends at step " +
         std::to_string(*last) + ", and this training goes on after step " +
         std::to_string(result_.position.totalSteps));
  auto then = resumes                ? Log::Then::Append
              : options_.model.force ? Log::Then::Replace
                                     : Log::Then::Keep;
  return log_.open(options_.log, then, learningRate());
}

/// Notes options that say when something is done which this training ends
/// before.
void Trainer::sayWhatIsNotReached() const {
  const Position &position = result_.position;
  int64_t end = position.totalSteps + stepsToDo_;
  if (const auto &every = options_.saveEvery;
      every && position.totalSteps / *every == (end - 1) / *every)
    note("--save-every=" + std::to_string(*every) +
         " saves nothing before the end: this training does the steps " +
         std::to_string(position.totalSteps + 1) + " to " +
         std::to_string(end));
  // Evaluation at the end is done anyway.
  int64_t epochs = (position.step + stepsToDo_ - 1) / result_.stepsPerEpoch;
  if (const auto &every = options_.evalEvery;
      every && position.epoch / *every == (position.epoch + epochs) / *every)
    note("--eval-every=" + std::to_string(*every) +
         " evaluates nothing before the end: this training ends in epoch " +
         std::to_string(result_.lastEpoch));
}

/// Says how many steps are to do. Fails where they would end beyond what a
/// checkpoint, and a training that goes on from there, can count.
Status Trainer::setEnd() {
  const Position &position = result_.position;
  int64_t perEpoch = result_.stepsPerEpoch;
  if (options_.epochs && *options_.epochs > mostSteps / perEpoch)
    return Status::usage("--epochs: expected at most " +
                         std::to_string(mostSteps / perEpoch) + " passes of " +
                         std::to_string(perEpoch) + " steps but got " +
                         std::to_string(*options_.epochs));
  stepsToDo_ = options_.steps ? *options_.steps
                              : *options_.epochs * perEpoch - position.step;
  int64_t passes = (position.step + stepsToDo_ + perEpoch - 1) / perEpoch;
  result_.lastEpoch = position.epoch + passes;
  auto check = [&](const char *what, int64_t done, int64_t more) {
    return done + more <= mostSteps
               ? Status::success()
               : Status::usage("expected at most " + std::to_string(mostSteps) +
                               " " + what + " of a training but got " +
                               std::to_string(done) + " of " +
                               io::inQuotes(options_.resume) + " and " +
                               std::to_string(more) + " more");
  };
  if (Status status = check("epochs", position.epoch, passes); !status)
    return status;
  return check("steps", position.totalSteps, stepsToDo_);
}

/// Brings model, position and files to where the first step can be done.
Status Trainer::start() {
  int64_t batch = data_->batch();
  result_.stepsPerEpoch = data_->rows() / batch;
  result_.position.seed = uint64_t(options_.model.seed.value_or(0));
  result_.position.shuffle = !options_.noShuffle;
  // Digests read all the data: they are for checkpoints alone.
  if (!options_.save.empty() || !options_.resume.empty())
    origin_ = originOf(model_.manifest(), *data_);
  if (!options_.resume.empty())
    if (Status status = resume(); !status)
      return status;
  if (Status status = checkVariables(model_, *step_); !status)
    return status;
  Position &position = result_.position;
  position.rows = data_->rows();
  position.batch = batch;
  if (options_.lr)
    if (Status status = setLearningRate(model_, *options_.lr); !status)
      return status;

  if (Status status = updates_.begin(model_, options_.accumulate.value_or(1),
                                     options_.onNaN == "skip");
      !status)
    return status;
  if (Status status = setEnd(); !status)
    return status;
  if (Status status = agreeWithRanks(); !status)
    return status;

  if (Status status = lock(options_.save, saveLock_); !status)
    return status;
  std::vector<std::string> replaced;
  if (!options_.save.empty() && isFirstRank())
    if (Status status =
            checkReplaced(options_.save, origin_, !options_.resume.empty(),
                          options_.model.force, replaced);
        !status)
      return status;
  for (const std::string &text : replaced)
    note(text);
  if (Status status = lock(options_.log, logLock_); !status)
    return status;
  if (options_.save.empty())
    warn("without --save nothing of this training is kept");
  if (Status status = openLog(); !status)
    return status;
  sayWhatIsNotReached();
  if (int64_t rest = data_->rows() % batch)
    note(std::to_string(rest) + " of " + std::to_string(data_->rows()) +
         " rows do not fill a batch of " + std::to_string(batch) +
         " and are left out of each epoch");
  return Status::success();
}

/// What decides how many steps there are, and of what, is the same on all
/// ranks: else one would wait for a step that another does not do.
Status Trainer::agreeWithRanks() const {
  const Position &position = result_.position;
  auto text = [](const auto &value) {
    return value ? std::to_string(*value) : std::string("none");
  };
  auto given = [](const std::vector<std::string> &list) {
    std::string names;
    for (const std::string &one : list)
      names += (names.empty() ? "" : ", ") + one.substr(0, one.find('='));
    return names;
  };
  Facts facts = {{"the seed", std::to_string(position.seed)},
                 {"the rows", std::to_string(data_->rows())},
                 {"the batch", std::to_string(data_->batch())},
                 {"the steps to do", std::to_string(stepsToDo_)},
                 {"the steps done", std::to_string(position.totalSteps)},
                 {"shuffling", position.shuffle ? "yes" : "no"},
                 {"--lr", text(options_.lr)},
                 {"--accumulate", text(options_.accumulate)},
                 {"--on-nan", options_.onNaN},
                 {"--save", options_.save.empty() ? "no" : "yes"},
                 {"--save-every", text(options_.saveEvery)},
                 {"--eval", given(options_.eval)},
                 {"--eval-every", text(options_.evalEvery)},
                 {"--accuracy", options_.accuracy}};
  if (evalData_)
    facts.emplace_back("the rows of --eval", std::to_string(evalData_->rows()));
  if (rankCount() > 1)
    facts.emplace_back("the data",
                       originOf(model_.wholeManifest(), *data_).data);
  return agree(facts);
}

/// Stops at a loss that is no number, or says so once. `rows` are those of the
/// step.
Status Trainer::checkLoss(std::span<const int64_t> rows) {
  if (std::isfinite(result_.lastLoss) || warnedOfLoss_)
    return Status::success();
  warnedOfLoss_ = true;
  std::string text = "the loss is " + numberText(result_.lastLoss) +
                     " at step " + std::to_string(result_.position.totalSteps) +
                     ", whose batch has the rows";
  constexpr size_t shown = 8;
  for (size_t i = 0; i < std::min(rows.size(), shown); ++i)
    text += (i ? ", " : " ") + std::to_string(rows[i]);
  text += rows.size() > shown ? ", ... of --data" : " of --data";
  if (goesOn(options_.onNaN)) {
    warn(text + (updates_.wasSkipped() ? "; its update is left out" : "") +
         "; training goes on");
    return Status::success();
  }
  return Status::failed(text + "; " +
                        (options_.save.empty()
                             ? ""
                             : "'" + options_.save +
                                   (::access(options_.save.c_str(), F_OK) == 0
                                        ? "' is as it was; "
                                        : "' was not written; ")) +
                        "'--on-nan=report' goes on");
}

std::optional<double> Trainer::learningRate() const {
  auto tensor = model_.get(model_.manifest().optimizer + ".lr");
  if (!tensor || tensor->elements() != 1)
    return std::nullopt;
  return tensor->at(0);
}

Status Trainer::loop() {
  Interrupt interrupt;
  Position &position = result_.position;
  int64_t batch = data_->batch();
  const runtime::Destination loss = {lossName_, &loss_};
  std::vector<int64_t> order;
  double sum = 0;
  int64_t summed = 0;
  Progress progress(stepsToDo_, result_.stepsPerEpoch, result_.lastEpoch, batch,
                    options_.reportInterval.value_or(0));
  while (result_.steps < stepsToDo_) {
    auto stops = isInterrupted();
    if (!stops)
      return std::move(stops).status();
    if (*stops) {
      progress.clear();
      return stopped();
    }
    if (position.step == 0 || order.empty()) {
      order = rowOrder(data_->rows(), position.shuffle, position.seed,
                       position.epoch);
      sum = 0;
      summed = 0;
    }
    auto rows =
        std::span(order).subspan(size_t(position.step * batch), size_t(batch));
    data_->gather(rows);
    if (Status status = watch_.keep(model_); !status)
      return status;
    bool endsPass = position.step + 1 == result_.stepsPerEpoch;
    if (Status status =
            updates_.run(model_, data_->arguments(), loss, endsPass);
        !status)
      return status;
    result_.lastLoss = loss_.at(0);
    sum += result_.lastLoss;
    result_.loss = sum / double(++summed);
    ++result_.steps;
    ++position.totalSteps;
    int64_t epoch = position.epoch + 1;
    ++position.step;
    if (endsPass) {
      ++position.epoch;
      position.step = 0;
    }
    result_.seconds = progress.seconds();
    log_.step(epoch, position.totalSteps, loss_, result_.seconds,
              updates_.logFields());
    if (Status status = watch_.check(model_, data_->arguments(), loss_);
        !status) {
      progress.clear();
      return std::move(status).in("step " +
                                  std::to_string(position.totalSteps));
    }
    if ((!warnedOfLoss_ && !std::isfinite(result_.lastLoss)) ||
        updates_.wasSkipped())
      progress.clear();
    if (Status status = checkLoss(rows); !status)
      return status;
    if (updates_.wasSkipped() && updates_.skipped() == 1)
      warn(updates_.firstSkipped(position.totalSteps));
    progress.step(position, result_.lastLoss);

    bool more = result_.steps < stepsToDo_;
    if (more && options_.saveEvery &&
        position.totalSteps % *options_.saveEvery == 0)
      if (Status status = save(); !status)
        return status;
    if (more && options_.evalEvery && position.step == 0 &&
        position.epoch % *options_.evalEvery == 0) {
      progress.clear();
      if (Status status = evaluateNow(); !status)
        return status;
    }
  }
  progress.clear();
  if (int64_t skipped = updates_.skipped())
    note(std::to_string(skipped) + " of " + std::to_string(result_.steps) +
         " updates were left out: the norm of the gradients was not finite");
  if (int64_t pending = updates_.pending())
    note(std::to_string(pending) + " batches wait for an update (--resume)");
  // What was trained is safe before anything else can go wrong.
  if (Status status = save(); !status)
    return status;
  return evaluateNow();
}

Status Trainer::evaluateNow() {
  if (!evalData_)
    return Status::success();
  auto evaluation = evaluate(model_, *evaluate_, *evalData_, accuracy_);
  if (!evaluation)
    return std::move(evaluation).status();
  if (evaluation->stopped)
    return stopped();
  const Position &position = result_.position;
  log_.evaluation(position.epoch + (position.step ? 1 : 0), position.totalSteps,
                  *evaluation, result_.seconds);
  if (Status status =
          checkEvaluation(*evaluation, options_.onNaN,
                          " after step " + std::to_string(position.totalSteps));
      !status)
    return status;
  if (result_.steps < stepsToDo_) {
    std::string line = "epoch " + std::to_string(result_.position.epoch);
    for (const Mean &mean : evaluation->means)
      line += "  eval." + mean.name + " " + roundedText(mean.value) +
              mean.remark(evaluation->rows);
    if (evaluation->accuracy && evaluation->accuracy->counted())
      line +=
          "  accuracy " + roundedText(double(evaluation->accuracy->right()) /
                                      double(evaluation->accuracy->counted()));
    if (std::FILE *to = sayings())
      std::fprintf(to, "%s\n", line.c_str());
  }
  result_.evaluation = std::move(*evaluation);
  return Status::success();
}

/// A checkpoint is replaced by a later one, but not by parameters that nobody
/// can go on with: on the way these are passed over, and at the end an error.
Status Trainer::save() {
  if (options_.save.empty())
    return Status::success();
  auto snapshot = Snapshot::of(model_, options_.save);
  if (!snapshot)
    return std::move(snapshot).status();
  // A full disk of the log's takes no weights along.
  if (Status flushed = log_.flush(); !flushed)
    warn(flushed.message() + "; training goes on without a log");
  if (std::string names = snapshot->statesOfNaN();
      !names.empty() && !std::exchange(warnedOfStates_, true))
    warn("NaN in the states " + names + " at step " +
         std::to_string(result_.position.totalSteps) +
         ", which the model keeps and reads again; they are saved so");
  Status status = snapshot->checkFinite();
  if (status)
    return snapshot->save(result_.position, origin_);
  bool atTheEnd = result_.steps == stepsToDo_ || Interrupt::asked();
  std::string text = "not saved to '" + options_.save + "' at step " +
                     std::to_string(result_.position.totalSteps) + ": " +
                     status.message();
  if (atTheEnd)
    return Status::failed(text);
  if (!std::exchange(warnedOfSave_, true))
    warn(text);
  return Status::success();
}

/// Says which options do the rest, and which ones of the command they replace:
/// the others stay as they are.
std::string Trainer::howToGoOn() const {
  int64_t left = options_.steps ? stepsToDo_ - result_.steps
                                : result_.lastEpoch - result_.position.epoch;
  if (left == 0)
    return "";
  const char *length = options_.steps ? "--steps" : "--epochs";
  std::string replaced;
  if (!options_.model.params.empty())
    replaced += "'--params', ";
  if (!options_.resume.empty())
    replaced += "'--resume', ";
  return "; to go on: '--resume=" + options_.save + " --save=" + options_.save +
         " " + length + "=" + std::to_string(left) + "' in place of " +
         replaced + "'--save' and '" + length + "'";
}

/// Saves and says where; the message of the command that a signal ended.
Status Trainer::stopped() {
  const Position &position = result_.position;
  std::string where = "interrupted at epoch " +
                      std::to_string(position.epoch + 1) + ", step " +
                      std::to_string(position.step) + " of " +
                      std::to_string(result_.stepsPerEpoch);
  if (options_.save.empty())
    return Status::failed(where +
                          "; nothing was saved, since there is no --save");
  // An older checkpoint is worth more than what was not trained.
  if (result_.steps == 0)
    return Status::failed(where + ", before the first step; nothing was saved");
  if (Status status = save(); !status)
    return std::move(status).in(where);
  return Status::failed(where + "; saved to '" + options_.save + "'" +
                        howToGoOn());
}

Status Trainer::finish() {
  Status closed = log_.close();
  if (closed || options_.save.empty())
    return closed;
  return Status::failed(closed.message() + "; what was trained is saved to " +
                        io::inQuotes(options_.save));
}

} // namespace

Result<TrainResult> train(const TrainOptions &options, AnomalyLocator locator) {
  Files files;
  options.declare(files);
  // --force is of what --resume and --save compare, too.
  bool isCompared = !options.resume.empty() || !options.save.empty();
  if (Status status = files.check(options.model.force, isCompared); !status)
    return status;
  // Of a training that resumes, --seed is compared with the checkpoint's.
  auto model =
      options.model.load(!options.noShuffle || !options.resume.empty());
  if (!model)
    return std::move(model).status();
  Profile profile;
  if (Status status = profile.start(options.model, *model); !status)
    return status;
  auto result = Trainer(options, *std::move(model), locator).run();
  if (result)
    if (Status status = profile.stop(); !status)
      return status;
  return result;
}

} // namespace tandem::commands
