//===- TrainerStart.cpp - what a training begins with ---------------------===//
#include "tools/commands/Trainer.h"

#include "tools/commands/NonFinite.h"
#include "tools/commands/Print.h"
#include "tools/commands/RestoreNotes.h"

#include <filesystem>
#include <functional>
#include <set>

namespace tandem::commands {

using artifact::Program;
using artifact::Role;
using artifact::Slot;
using runtime::Model;
using runtime::Tensor;

/// Returns whether `forward` is a whole step of training: what it is given by
/// the model itself it updates, and nothing of it is differentiated.
static bool isWholeStep(const artifact::Manifest &manifest) {
  const Program *forward = manifest.findProgram("forward");
  return forward && !manifest.findProgram("backward") &&
         std::any_of(
             forward->results.begin(), forward->results.end(),
             [](const Slot &slot) { return slot.role == Role::Update; });
}

/// The output of a whole step that is its loss: the one of no dimensions, or
/// of several the one that is called so.
static Result<std::string> lossOfStep(const Program &forward) {
  std::vector<std::string> numbers, named;
  for (const Slot &slot : outputsOf(forward)) {
    if (!slot.shape.empty() || !artifact::isFloat(slot.dtype))
      continue;
    numbers.push_back(slot.name);
    if (slot.name.find("loss") != std::string::npos)
      named.push_back(slot.name);
  }
  const std::vector<std::string> &found = numbers.size() == 1 ? numbers : named;
  if (found.size() == 1)
    return found.front();
  return Status::unsupported(
      "expected one output of program 'forward' to be its loss, a float "
      "without dimensions, called 'loss' if there are others, but got " +
      (numbers.empty() ? "none" : withCommas(numbers)));
}

Status Trainer::findPrograms() {
  const artifact::Manifest &manifest = model_.manifest();
  if (options_.anomaly.isOn && rankCount() > 1)
    return Status::unsupported("--detect-anomaly looks at one process, and the "
                               "artifact is for several");
  if (stages_)
    return findStagePrograms();
  lossName_ = manifest.loss;
  step_ = manifest.findProgram("step");
  if (!step_ && isWholeStep(manifest)) {
    step_ = manifest.findProgram("forward");
    auto loss = lossOfStep(*step_);
    if (!loss)
      return std::move(loss).status().in("'" + options_.model.artifact + "'");
    lossName_ = *loss;
    if (options_.lr)
      return Status::usage("--lr is for an optimizer of Tandem's; '" +
                           options_.model.artifact +
                           "' brings a whole step of its own");
    note("'" + options_.model.artifact +
         "' has no optimizer of Tandem's: a step is its program 'forward', "
         "which updates states by itself; its loss is '" +
         lossName_ + "'");
  }
  if (!step_)
    return Status::unsupported(
        "'" + options_.model.artifact +
        "' has no program 'step' to train with; compile the model with a loss "
        "and an optimizer");
  std::optional<Slot> loss;
  for (Slot &slot : outputsOf(*step_))
    if (slot.name == lossName_)
      loss = std::move(slot);
  if (!loss || !loss->shape.empty())
    return Status::unsupported("program '" + step_->name +
                               "' has no scalar output that is the loss");
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
  const artifact::Manifest &manifest = dataManifest();
  if (Status status = casts_.parse(stages_ ? manifest : model_.manifest());
      !status)
    return status;
  auto arrays = readArrays(options_.data, "--data", manifest, casts_);
  if (!arrays)
    return std::move(arrays).status();
  DataUse use;
  use.option = "--data";
  use.ranks = stages_ ? nullptr : &model_;
  auto data = Dataset::match(
      manifest, *manifest.findProgram(step_ ? step_->name : "step"),
      *std::move(arrays), use);
  if (!data)
    return std::move(data).status();
  data_ = std::move(*data);
  std::string shard;
  if (!options_.shard.empty()) {
    data_->take(*RowShare::parse(options_.shard));
    shard = " in shard " + options_.shard;
  }
  if (stages_ && !options_.augment.empty())
    return Status::unsupported("--augment is not there for models in stages");
  if (Status status = data_->augment(options_.augment); !status)
    return status;
  if (Status status = readWeights(); !status)
    return status;
  if (!stages_)
    step_ = &data_->program();
  if (Status status = findRest(); !status)
    return status;
  if (data_->rows() < data_->batch() && !rest_)
    return Status::usage("--data: expected at least " +
                         std::to_string(data_->batch()) + " rows, one batch" +
                         smallerBatches() + ", but got " +
                         std::to_string(data_->rows()) + shard);
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

Status Trainer::readWeights() {
  data_->shuffleWithin(options_.shuffleBuffer.value_or(0));
  if (options_.weights.empty())
    return Status::success();
  auto arrays =
      readArrays({"weights=" + options_.weights}, "--weights", dataManifest());
  if (!arrays)
    return std::move(arrays).status();
  return data_->drawBy(std::move(arrays->front()));
}

/// ", or 2 or 1, of which there are sizes": what alone may be less than a
/// batch.
std::string Trainer::smallerBatches() const {
  std::set<int64_t, std::greater<>> batches;
  for (const Program &program : dataManifest().programs)
    if (step_ && program.name == step_->name)
      for (const Slot *slot : inputsOf(program))
        if (!slot->shape.empty() && slot->shape[0] < data_->batch() &&
            std::ranges::any_of(inputsOf(*step_), [&](const Slot *whole) {
              return whole->name == slot->name && !whole->shape.empty() &&
                     whole->shape[0] == data_->batch();
            }))
          batches.insert(slot->shape[0]);
  std::string text;
  for (int64_t batch : batches)
    text += (text.empty() ? ", or " : " or ") + std::to_string(batch);
  return text.empty() ? text : text + ", of which there are sizes";
}

/// The rows that fill no batch are a step of their own, with the mean over
/// them, where the artifact has a size for so many. Several batches of which
/// one is smaller have a mean that is none over rows.
Status Trainer::findRest() {
  int64_t batch = data_->batch(), rest = data_->rows() % batch;
  const artifact::Manifest &manifest = model_.manifest();
  // An artifact of one size has none, also where a rank's inputs are a part.
  if (stages_ || rest == 0 || options_.accumulate.value_or(1) > 1 ||
      manifest.sizes.empty())
    return Status::success();
  auto fits = [&](const Program &program) {
    if (program.name != step_->name)
      return false;
    for (const Slot *slot : inputsOf(*step_)) {
      std::vector<int64_t> shape = slot->shape;
      if (!shape.empty() && shape[0] == batch)
        shape[0] = rest;
      for (const Slot *other : inputsOf(program))
        if (other->name == slot->name && other->shape != shape)
          return false;
    }
    return true;
  };
  if (std::none_of(manifest.programs.begin(), manifest.programs.end(), fits))
    return Status::success();
  rest_ = rest;
  return data_->addRest(rest);
}

/// A number has to mean one folder in both.
static Status checkClasses(const NamedArray *trained,
                           const NamedArray *evaluated) {
  if (!trained || !evaluated || trained->classes.empty() ||
      evaluated->classes.empty() || trained->classes == evaluated->classes)
    return Status::success();
  size_t at = 0;
  while (at < std::min(trained->classes.size(), evaluated->classes.size()) &&
         trained->classes[at] == evaluated->classes[at])
    ++at;
  auto nameIn = [&](const NamedArray &array) {
    return at < array.classes.size() ? io::inQuotes(array.classes[at]) : "none";
  };
  return Status::usage("--eval '" + evaluated->name +
                       "': expected the classes of --data, but class " +
                       std::to_string(at) + " is " + nameIn(*evaluated) +
                       " in '" + evaluated->file + "' and " + nameIn(*trained) +
                       " in '" + trained->file + "'");
}

Status Trainer::readEvalData() {
  if (const std::string &average = options_.model.average; !average.empty())
    if (Status status = stages_ ? stageEvaluation_->checkAverage(average)
                                : Averaged::check(model_, average);
        !status)
      return status;
  auto input = readEvaluation(
      options_, stages_ ? stageEvaluation_->manifest() : model_.wholeManifest(),
      *evaluate_, casts_, stages_ ? nullptr : &model_);
  if (!input)
    return std::move(input).status();
  evalData_ = std::move(input->data);
  for (const Slot *slot : inputsOf(*evaluate_))
    if (Status status = checkClasses(data_->named(slot->name),
                                     evalData_->named(slot->name));
        !status)
      return status;
  evaluate_ = &evalData_->program();
  counters_ = std::move(input->counters);
  if (options_.saveBest.empty() && options_.best.empty() && !options_.patience)
    return Status::success();
  auto best = Best::parse(options_.best, *evaluate_, lossName_, counters_);
  if (!best)
    return std::move(best).status();
  best_ = *std::move(best);
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
  with.hasRest = rest_ > 0;
  if (options_.model.seed)
    with.seed = uint64_t(*options_.model.seed);
  with.noShuffle = options_.noShuffle;
  with.accumulate = options_.accumulate.value_or(1);
  with.hasSums = stages_ || model_.manifest().findProgram("accumulate");
  with.force = options_.model.force;
  std::vector<std::string> notes;
  if (Status status = compare(*checkpoint, with, notes); !status)
    return status;
  for (Model &model : models())
    if (Status status = checkpoint->restore(model, rateGroups_, notes); !status)
      return status;
  for (const Model &model : models())
    for (auto &text : rateNotes(model, rateGroups_, options_.lr.has_value(),
                                options_.resume))
      notes.push_back(std::move(text));
  // Several stages say the same of what all of them have.
  std::set<std::string> said;
  for (const std::string &text : notes)
    if (said.insert(text).second)
      note(text);
  result_.position = checkpoint->position();
  if (best_ && !result_.position.best.empty() &&
      !best_->resume(result_.position.best))
    note("the best evaluation in " + io::inQuotes(options_.resume) +
         " is by another number, and is not compared with");
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
  if (!isFirstRank())
    return Status::success();
  bool resumes = !options_.resume.empty();
  if (!options_.tensorboard.empty())
    if (Status status =
            log_.openEvents(options_.tensorboard,
                            resumes ? std::optional(result_.position.totalSteps)
                                    : std::nullopt);
        !status)
      return status;
  if (options_.log.empty()) {
    log_.setRate(learningRate());
    return Status::success();
  }
  auto then = resumes                ? Log::Then::Append
              : options_.model.force ? Log::Then::Replace
                                     : Log::Then::Keep;
  if (Status status = log_.open(options_.log, then, learningRate(), metrics());
      !status)
    return status;
  if (auto last = resumes ? lastStepOf(options_.log) : std::nullopt;
      last && *last != result_.position.totalSteps)
    note("the log " + io::inQuotes(options_.log) + " ends at step " +
         std::to_string(*last) + ", and this training goes on after step " +
         std::to_string(result_.position.totalSteps));
  return Status::success();
}

/// The numbers of an evaluation.
std::vector<std::string> Trainer::metrics() const {
  std::vector<std::string> names;
  if (!evaluate_)
    return names;
  names.emplace_back("rows");
  for (const Slot &slot : outputsOf(*evaluate_))
    if (slot.shape.empty())
      names.push_back(slot.name);
  if (counters_.accuracy)
    names.emplace_back("accuracy");
  for (const Metric &metric : counters_.metrics)
    names.push_back(metric.name());
  return names;
}

/// Notes options that say when something is done which this training ends
/// before.
void Trainer::sayWhatIsNotReached() const {
  if (stepsToDo_ == 0)
    return;
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
  stepsToDo_ =
      options_.steps
          ? *options_.steps
          : std::max(*options_.epochs * perEpoch - position.step, int64_t(0));
  planned_ = stepsToDo_;
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

/// A step with a parameter that is no number makes all others such.
Status Trainer::checkParameters() {
  auto found = parametersNotFinite(models());
  if (!found)
    return std::move(found).status();
  if (found->empty())
    return Status::success();
  std::string text = "NaN or infinity in " + *found + " before step " +
                     std::to_string(result_.position.totalSteps + 1);
  if (!goesOn(options_.onNaN))
    return Status::failed(text + "; '--on-nan=report' goes on");
  warn(text + "; training goes on");
  return Status::success();
}

/// Finds which rate each parameter has; --lr must be that of one.
Status Trainer::findRates() {
  auto groups = rateGroupsOf(models());
  if (!groups)
    return std::move(groups).status();
  rateGroups_ = *std::move(groups);
  if (!options_.lr || rateGroups_.hasOthers)
    return Status::success();
  return Status::usage("--lr has no effect: every parameter of '" +
                       options_.model.artifact +
                       "' is in a group with a learning rate of its own "
                       "(compile --group)");
}

/// Brings model, position and files to where the first step can be done.
Status Trainer::start() {
  int64_t batch = data_->batch();
  result_.stepsPerEpoch = data_->rows() / batch + (rest_ > 0);
  result_.position.seed = uint64_t(options_.model.seed.value_or(0));
  result_.position.shuffle = !options_.noShuffle;
  // Digests read all the data: they are for checkpoints alone.
  if (!options_.save.empty() || !options_.resume.empty() ||
      !options_.saveBest.empty())
    origin_ = originOf(model_.manifest(), *data_);
  if (Status status = findRates(); !status)
    return status;
  if (!options_.resume.empty())
    if (Status status = resume(); !status)
      return status;
  if (!options_.initFrom.empty()) {
    auto text = loadWhatFits(models(), options_.initFrom);
    if (!text)
      return std::move(text).status();
    note(*text + "; what is not there begins as in a new training");
  }
  for (const std::string *path :
       {&options_.resume, &options_.model.params, &options_.initFrom})
    for (const Model &model : models())
      if (!path->empty())
        for (const std::string &text : adapterNotes(model, *path))
          note(text);
  for (const Model &model : models())
    if (Status status = checkVariables(
            model, stages_ ? *model.manifest().findProgram("forward") : *step_);
        !status)
      return status;
  if (Status status = checkParameters(); !status)
    return status;
  Position &position = result_.position;
  position.rows = data_->rows();
  position.batch = batch;
  position.accumulate = options_.accumulate.value_or(1);
  for (Model &model : models())
    // A stage may have no parameters, and then has no rate.
    if (options_.lr && (!stages_ || model.hasProgram("update")))
      if (Status status = setLearningRate(model, *options_.lr); !status)
        return status;

  int64_t together = options_.accumulate.value_or(1);
  if (Status status =
          stages_ ? batches_.begin(*stages_, together)
                  : updates_.begin(model_, together, options_.onNaN == "skip");
      !status)
    return status;
  if (stages_)
    if (Status status = updates_.beginStages(models(), stages_->hasNorm(),
                                             options_.onNaN == "skip");
        !status)
      return status;
  if (Status status = setEnd(); !status)
    return status;
  if (Status status = agreeWithRanks(); !status)
    return status;
  if (Status status = openHistograms(); !status)
    return status;
  if (options_.tui && isFirstRank())
    if (Status status = TerminalView::check(); !status)
      return status;

  if (Status status = lock(options_.save, saveLock_); !status)
    return status;
  if (Status status = lock(options_.saveBest, bestLock_); !status)
    return status;
  if (Status status = agreeOnFolder("--save", options_.save); !status)
    return status;
  if (Status status = agreeOnFolder("--save-best", options_.saveBest); !status)
    return status;
  std::vector<std::string> replaced;
  for (const std::string &path : {options_.save, options_.saveBest})
    if (!path.empty() && isFirstRank())
      if (Status status = checkReplaced(path, origin_, !options_.resume.empty(),
                                        options_.model.force, replaced);
          !status)
        return status;
  for (const std::string &text : replaced)
    note(text);
  if (Status status = lock(options_.log, logLock_); !status)
    return status;
  if (options_.save.empty() && options_.saveBest.empty())
    warn("without --save nothing of this training is kept");
  if (Status status = openLog(); !status)
    return status;
  if (Status status = openDashboard(); !status)
    return status;
  sayWhatIsNotReached();
  if (int64_t rest = data_->rows() % batch; rest && !rest_)
    note(std::to_string(rest) + " of " + std::to_string(data_->rows()) +
         " rows do not fill a batch of " + std::to_string(batch) +
         " and are left out of each epoch" +
         (stages_ || rankCount() > 1 || options_.accumulate.value_or(1) > 1
              ? ""
              : "; compiled with --variant for batches of " +
                    std::to_string(batch) + " and " + std::to_string(rest) +
                    ", they are trained too"));
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
                 {"the batch", std::to_string(data_->batch())},
                 {"the steps to do", std::to_string(stepsToDo_)},
                 {"the steps done", std::to_string(position.totalSteps)},
                 {"shuffling", position.shuffle ? "yes" : "no"},
                 {"--lr", text(options_.lr)},
                 {"--weights", options_.weights.empty() ? "no" : "yes"},
                 {"--augment", withCommas(options_.augment)},
                 {"--accumulate", text(options_.accumulate)},
                 {"--on-nan", options_.onNaN},
                 {"--resume", digestForRanks(options_.resume)},
                 {"--init-from", digestForRanks(options_.initFrom)},
                 {"--save", options_.save},
                 {"--save-every", text(options_.saveEvery)},
                 {"--eval", given(options_.eval)},
                 {"--eval-every", text(options_.evalEvery)},
                 {"--accuracy", options_.accuracy},
                 {"--metric", withCommas(options_.metrics)},
                 {"--keep", text(options_.keep)},
                 {"--save-best", options_.saveBest},
                 {"--best", options_.best},
                 {"--patience", text(options_.patience)},
                 {"--max-time", options_.maxTime}};
  auto addRows = [&](const std::string &option, const Dataset &data) {
    for (auto &fact : factsOfRows(option, data))
      facts.push_back(std::move(fact));
  };
  addRows("--data", *data_);
  if (evalData_)
    addRows("--eval", *evalData_);
  return agree(facts);
}

/// Ranks that save a file each need one folder for all: told now, and not when
/// what they trained is to be saved. The first rank has locked the path.
Status Trainer::agreeOnFolder(const char *option,
                              const std::string &path) const {
  if (rankCount() == 1 || !io::isIndexName(path))
    return Status::success();
  if (auto all = textsOfRanks(""); !all) // the lock is taken before others look
    return std::move(all).status();
  std::error_code error;
  bool isSeen = std::filesystem::exists(io::FileLock::nameFor(path), error);
  return agree({{"the folder of " + std::string(option) +
                     ", which must be one for all ranks, the lock",
                 isSeen ? "seen" : "not seen"}});
}

} // namespace tandem::commands
