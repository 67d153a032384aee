//===- Training.cpp - the loop behind `train` -----------------------------===//
#include "tools/commands/Trainer.h"

#include "runtime/artifact/AtomicFile.h"
#include "tools/commands/Curves.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Kept.h"
#include "tools/commands/NonFinite.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"
#include "tools/commands/Progress.h"
#include "tools/commands/Ranks.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace tandem::commands {

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
  // Of a model in stages it would take the batch through all of them again.
  auto found = stages_ ? Result<std::string>(std::string())
                       : whatIsNotFinite(model_, *data_, rows);
  if (!found)
    return std::move(found).status().in(text);
  if (!found->empty())
    text += "; NaN or infinity in " + *found;
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

/// Says why the last step left out its update, where the loss did not.
Status Trainer::sayFirstSkipped(std::span<const int64_t> rows) {
  std::string text = updates_.firstSkipped(result_.position.totalSteps);
  if (!stages_ && std::isfinite(result_.lastLoss)) {
    auto found = whatIsNotFinite(model_, *data_, rows);
    if (!found)
      return std::move(found).status().in(text);
    if (!found->empty())
      text += "; NaN or infinity in " + *found;
  }
  warn(text);
  return Status::success();
}

std::span<const int64_t> Trainer::rowsOf(std::span<const int64_t> order,
                                         int64_t step) const {
  int64_t batch = data_->batch();
  bool isLast = step + 1 == result_.stepsPerEpoch;
  return order.subspan(size_t(step * batch),
                       size_t(isLast && rest_ ? rest_ : batch));
}

/// Gathers the batch of the step that follows, and begins with the one after
/// it: where that is the first of a pass, `next` is that pass's order.
Status Trainer::serve(std::span<const int64_t> order,
                      std::vector<int64_t> &next) {
  const Position &position = result_.position;
  auto begin = std::chrono::steady_clock::now();
  Status status = data_->gather(rowsOf(order, position.step));
  result_.waited +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (!status || !data_->isStreamed() || result_.steps + 1 >= stepsToDo_)
    return status;
  if (position.step + 1 < result_.stepsPerEpoch)
    return data_->readAhead(rowsOf(order, position.step + 1), position.epoch);
  next = data_->order(position.shuffle, position.seed, position.epoch + 1);
  return data_->readAhead(rowsOf(next, 0), position.epoch + 1);
}

/// Of rows that are not in memory, how long steps waited for them until now.
std::string Trainer::waitedField() const {
  char text[64] = "";
  if (data_->isStreamed())
    std::snprintf(text, sizeof text, ", \"waited\": %.6f", result_.waited);
  return text;
}

/// Of data that cannot be read on the way, what was trained until then is
/// saved.
Status Trainer::stoppedBy(Status status) {
  if (result_.steps == 0 || options_.save.empty() || rankCount() > 1)
    return status;
  Status saved = save();
  return Status(
      status.code(),
      status.message() +
          (saved ? "; saved to " + io::inQuotes(options_.save) + howToGoOn()
                 : "; " + saved.message()));
}

std::optional<double> Trainer::learningRate() const {
  if (!rateGroups_.hasOthers)
    return std::nullopt;
  // Before the first update nothing was trained by any rate.
  if (updates_.hasSchedule())
    return updates_.rate();
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
  std::vector<int64_t> order, next;
  double limit = secondsOf(options_.maxTime).value_or(INFINITY);
  Progress progress(stepsToDo_, result_.stepsPerEpoch, result_.lastEpoch, batch,
                    options_.reportInterval.value_or(0), view_.get());
  // One that was due when the checkpoint was written, and not done.
  if (planned_ == 0 || position.owesEvaluation ||
      (best_ && !options_.resume.empty() && isEvaluationDue()))
    if (Status status = evaluateNow(); !status)
      return status;
  while (result_.steps < stepsToDo_) {
    auto stop = isBetween()
                    ? whyStop(progress.seconds() >= limit && result_.steps > 0)
                    : Result<Stop>(Stop::No);
    if (!stop)
      return std::move(stop).status();
    if (*stop == Stop::Signal) {
      progress.clear();
      return stopped();
    }
    if (*stop == Stop::Time) {
      progress.clear();
      stepsToDo_ = result_.steps;
      note("--max-time is over after " + std::to_string(result_.steps) +
           " steps" + howToGoOn());
      break;
    }
    if (position.step == 0 || order.empty()) {
      order = next.empty() ? data_->order(position.shuffle, position.seed,
                                          position.epoch)
                           : std::exchange(next, {});
      data_->beginPass(position.seed, position.epoch);
      if (position.step == 0) {
        position.lossSum = 0;
        position.losses = 0;
      }
    }
    bool endsPass = position.step + 1 == result_.stepsPerEpoch;
    auto rows = rowsOf(order, position.step);
    auto count = int64_t(rows.size());
    if (!stages_)
      if (Status status = serve(order, next); !status) {
        progress.clear();
        return stoppedBy(std::move(status));
      }
    if (Status status = watch_.keep(model_); !status)
      return status;
    if (Status status = takeHistograms(); !status)
      return status;
    if (Status status =
            stages_ ? stepOfStages(order)
                    : updates_.run(model_, data_->arguments(), loss, endsPass);
        !status)
      return status;
    result_.lastLoss = loss_.at(0);
    // Of the whole pass, also where it was begun by another call, and by rows:
    // the pass's last step may have fewer.
    if (updates_.wasSkipped() && !std::isfinite(result_.lastLoss)) {
      // A batch that trained nothing leaves the others their mean.
      if (position.losses == 0)
        result_.loss = result_.lastLoss;
    } else if (count == batch) {
      position.lossSum += result_.lastLoss;
      result_.loss = position.lossSum / double(++position.losses);
    } else {
      double part = double(count) / double(batch);
      result_.loss = (position.lossSum + result_.lastLoss * part) /
                     (double(position.losses) + part);
    }
    ++result_.steps;
    ++position.totalSteps;
    position.owesEvaluation = false; // what it was of is gone
    int64_t epoch = position.epoch + 1;
    ++position.step;
    if (endsPass) {
      ++position.epoch;
      position.step = 0;
    }
    result_.rows += count;
    double before = result_.stepping;
    result_.seconds = progress.seconds();
    result_.stepping = result_.seconds - evaluating_;
    if (auto rate = scheduledRate()) {
      log_.setRate(rate);
      rate_ = *rate;
    }
    log_.step(epoch, position.totalSteps, loss_, result_.seconds,
              updates_.logFields() + waitedField());
    if (dashboard_ || view_)
      show(epoch, count, before);
    showHistograms(epoch);
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
      if (Status status = sayFirstSkipped(rows); !status)
        return status;
    progress.step(position, result_.lastLoss, scheduledRate(), evaluating_);

    bool more = result_.steps < stepsToDo_;
    if (more && options_.saveEvery &&
        position.totalSteps % *options_.saveEvery == 0) {
      progress.clear(); // a warning may be said
      goOnWithout(save());
    }
    if (more && isEvaluationDue()) {
      progress.clear();
      if (Status status = evaluateNow(); !status)
        return status;
      if (options_.patience && best_->since() >= *options_.patience) {
        stepsToDo_ = result_.steps;
        note("stopped early: " + std::to_string(best_->since()) +
             " evaluations were not better than the best, " + best_->text());
      }
    }
  }
  progress.clear();
  Status status = finishLoop();
  // The last frame has the last evaluation, too.
  if (view_)
    view_->end();
  return status;
}

/// What is said, saved and evaluated behind the last step.
Status Trainer::finishLoop() {
  Position &position = result_.position;
  if (int64_t skipped = updates_.skipped())
    note(std::to_string(skipped) +
         " updates were left out: the norm of the gradients was not finite");
  if (data_->isStreamed() && result_.seconds > 0)
    note("steps waited for data in " +
         roundedText(100 * result_.waited / result_.seconds) +
         " % of the time, " + roundedText(result_.waited) + " of " +
         roundedText(result_.seconds) + " s");
  if (int64_t pending = stages_ ? batches_.pending() : updates_.pending())
    note(std::to_string(pending) + " batches wait for an update (--resume)");
  // What was trained is safe before anything else can go wrong.
  if (Status status = save(); !status)
    return status;
  if (evaluatedAt_ == position.totalSteps)
    return Status::success();
  std::string known = position.best;
  if (Status status = evaluateNow(); !status)
    return status;
  // A training that goes on knows of this one, too.
  return position.best == known ? Status::success() : save();
}

/// True after each so many passes, unless it was done.
bool Trainer::isEvaluationDue() const {
  const Position &position = result_.position;
  return options_.evalEvery && position.step == 0 && position.epoch > 0 &&
         position.epoch % *options_.evalEvery == 0 &&
         !(best_ && best_->evaluated() == position.totalSteps);
}

Status Trainer::takeBest(const Evaluation &evaluation) {
  Position &position = result_.position;
  bool isBest = best_->take(evaluation, position.totalSteps);
  position.best = best_->metadata();
  result_.best = best_->text();
  if (!isBest || options_.saveBest.empty())
    return Status::success();
  bool isSaved = false;
  // The last one counts: an earlier one may have been replaced since.
  unsavedBest_ = saveTo(options_.saveBest, isSaved);
  goOnWithout(unsavedBest_);
  return Status::success();
}

/// A disk that is full now may not be so later, and the checkpoint that is
/// there is whole: what was trained until now is worth more than an end.
void Trainer::goOnWithout(const Status &status) {
  if (!status && !std::exchange(warnedOfDisk_, true))
    warn(status.message() + "; training goes on");
}

Status Trainer::evaluateNow() {
  if (!evalData_)
    return Status::success();
  auto begin = std::chrono::steady_clock::now();
  auto evaluation = stages_ ? stageEvaluation_->evaluate(*evalData_, counters_,
                                                         options_.model.average)
                            : evaluateTrained(options_, model_, *evaluate_,
                                              *evalData_, counters_);
  if (!evaluation)
    return std::move(evaluation).status();
  if (evaluation->stopped) {
    result_.position.owesEvaluation = true;
    return stopped();
  }
  result_.position.owesEvaluation = false;
  evaluatedAt_ = result_.position.totalSteps;
  evaluating_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  const Position &position = result_.position;
  log_.evaluation(position.epoch + (position.step ? 1 : 0), position.totalSteps,
                  *evaluation, result_.seconds);
  if (dashboard_ || view_)
    show(*evaluation);
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
    for (const MetricValue &metric : evaluation->metrics)
      line += "  " + metric.name + " " + roundedText(metric.value);
    if (std::FILE *to = sayings())
      std::fprintf(to, "%s\n", line.c_str());
  }
  for (const MetricValue &metric : evaluation->metrics)
    if (!std::isfinite(metric.value) && !std::exchange(warnedOfMetric_, true))
      warn("the metric " + io::inQuotes(metric.name) +
           " is not defined by these rows: there are too few, their labels or "
           "numbers are all one, or scores are NaN");
  if (best_)
    if (Status status = takeBest(*evaluation); !status)
      return status;
  result_.evaluation = std::move(*evaluation);
  return Status::success();
}

Status Trainer::save() {
  bool isSaved = false;
  if (options_.save.empty())
    return Status::success();
  if (Status status = saveTo(options_.save, isSaved); !status)
    return status;
  if (!options_.keep || !isSaved || !isFirstRank())
    return Status::success();
  return keepCheckpoint(options_.save, origin_.graph,
                        result_.position.totalSteps, *options_.keep,
                        options_.resume);
}

/// A checkpoint is replaced by a later one, but not by parameters that nobody
/// can go on with: on the way these are passed over, and at the end an error.
Status Trainer::saveTo(const std::string &path, bool &isSaved) {
  auto snapshot =
      stages_ ? Snapshot::of(*stages_, path) : Snapshot::of(model_, path);
  if (!snapshot)
    return std::move(snapshot).status();
  // A full disk of the log's takes no weights along.
  if (Status flushed = log_.sync(); !flushed)
    warn(flushed.message() + "; training goes on without a log");
  if (std::string names = snapshot->statesOfNaN();
      !names.empty() && !std::exchange(warnedOfStates_, true))
    warn("NaN in the states " + names + " at step " +
         std::to_string(result_.position.totalSteps) +
         ", which the model keeps and reads again; they are saved so");
  Status status = snapshot->checkFinite();
  isSaved = status.ok();
  if (status)
    status = snapshot->save(result_.position, origin_);
  if (isSaved)
    return status ? saveOptions() : status;
  bool atTheEnd = result_.steps == stepsToDo_ || Interrupt::asked();
  std::string text = "not saved to " + io::inQuotes(path) + " at step " +
                     std::to_string(result_.position.totalSteps) + ": " +
                     status.message();
  if (atTheEnd)
    return Status::failed(text);
  if (!std::exchange(warnedOfSave_, true))
    warn(text);
  return Status::success();
}

/// Writes the options beside the first checkpoint of this call.
Status Trainer::saveOptions() {
  std::string path = options_.resolvedPath();
  if (options_.resolved.empty() || path.empty() || !isFirstRank() ||
      std::exchange(savedOptions_, true))
    return Status::success();
  auto file = artifact::AtomicFile::create(path);
  if (!file)
    return std::move(file).status();
  if (Status status =
          file->write(options_.resolved.data(), options_.resolved.size());
      !status)
    return status;
  return file->commit();
}

/// Says which options do the rest, and which ones of the command they replace:
/// the others stay as they are.
std::string Trainer::howToGoOn() const {
  int64_t left = options_.steps ? planned_ - result_.steps
                                : result_.lastEpoch - result_.position.epoch;
  bool isOwed = left == 0 && result_.position.owesEvaluation;
  if ((left == 0 && !isOwed) || options_.save.empty())
    return "";
  const char *length = options_.steps ? "--steps" : "--epochs";
  std::string replaced;
  if (!options_.model.params.empty())
    replaced += "'--params', ";
  if (!options_.resume.empty())
    replaced += "'--resume', ";
  return "; to go on: '--resume=" + options_.save + " --save=" + options_.save +
         " " + (isOwed ? "--epochs" : length) + "=" + std::to_string(left) +
         "' in place of " + replaced + "'--save' and '" + length + "'";
}

/// Saves and says where; the message of the command that a signal ended.
Status Trainer::stopped() {
  const Position &position = result_.position;
  if (result_.steps > 0)
    if (Status closed = closeLog(); !closed)
      warn(closed.message());
  bool inEvaluation = evalData_ && position.owesEvaluation;
  std::string where = inEvaluation
                          ? "interrupted in the evaluation after step " +
                                std::to_string(position.totalSteps)
                          : "interrupted at epoch " +
                                std::to_string(position.epoch + 1) + ", step " +
                                std::to_string(position.step) + " of " +
                                std::to_string(result_.stepsPerEpoch);
  if (options_.save.empty())
    return Status::failed(where +
                          "; nothing was saved, since there is no --save");
  // An older checkpoint is worth more than what was not trained.
  if (result_.steps == 0)
    return Status::failed(where +
                          (inEvaluation ? ", which is still to be done"
                                        : ", before the first step") +
                          "; nothing was saved");
  if (Status status = save(); !status)
    return std::move(status).in(where);
  return Status::failed(where + "; saved to " + io::inQuotes(options_.save) +
                        howToGoOn());
}

/// And draws it.
Status Trainer::closeLog() {
  Status closed = log_.close();
  if (closed && !options_.plot.empty() && isFirstRank())
    closed = drawCurves(options_.log, options_.plot, lossName_);
  return closed;
}

Status Trainer::finish() {
  // The first rank may die while it writes: others say so, and end when it is
  // done.
  if (!options_.save.empty() || !options_.saveBest.empty())
    if (auto met = onAnyRank(false); !met)
      return std::move(met).status();
  Status closed = closeLog();
  if (closed && !unsavedBest_)
    return unsavedBest_;
  if (closed || options_.save.empty())
    return closed;
  return Status::failed(closed.message() + "; what was trained is saved to " +
                        io::inQuotes(options_.save));
}

Result<TrainResult> train(const TrainOptions &options, AnomalyLocator locator) {
  Files files;
  options.declare(files);
  // --force is of what --resume and --save compare, too.
  bool isCompared = !options.resume.empty() || !options.save.empty();
  if (Status status = options.model.check(files, isCompared); !status)
    return status;
  // Of a training that resumes, --seed is compared with the checkpoint's.
  // Training begins with the parameters; evaluations read averages.
  ModelOptions asked = options.model;
  asked.average.clear();
  if (auto reader = artifact::ArtifactReader::open(asked.artifact);
      reader && reader->manifest().pipeline) {
    auto stages = openStages(asked, *reader);
    if (!stages)
      return std::move(stages).status();
    return Trainer(options, *std::move(stages), locator).run();
  }
  auto model = asked.load(!options.noShuffle || !options.augment.empty() ||
                          !options.resume.empty());
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
