//===- Checkpoint.cpp - parameters and training state in files ------------===//
//
// Metadata keys begin with "tandem."; numbers are decimal texts, as the format
// wants. A checkpoint of an earlier version has no digests.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Checkpoint.h"

#include "runtime/artifact/Adapters.h"
#include "runtime/checkpoint/SaveShards.h"
#include "runtime/io/Cast.h"
#include "runtime/io/Elements.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/Tensors.h"
#include "tools/commands/Print.h"
#include "tools/commands/RestoreNotes.h"
#include "tools/commands/StateKinds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tandem::commands {

const AverageKind &averageKind(std::string_view name) {
  return *std::ranges::find(averageKinds, name, &AverageKind::name);
}

namespace {

using artifact::Manifest;
using artifact::Role;
using artifact::Value;
using io::TensorFiles;

bool isVariable(const Value &value) {
  return value.role == Role::Param || value.role == Role::State;
}

/// True if the files have an average `average` of the param `name`, which
/// counts updates.
bool hasAverage(const TensorFiles &files, std::string_view average,
                const std::string &name) {
  const AverageKind &kind = averageKind(average);
  std::string count = std::string(kind.count) + name;
  auto entry = files.entries().find(count);
  if (entry == files.entries().end() || !entry->second.shape.empty() ||
      !files.entries().contains(std::string(kind.state) + name))
    return false;
  auto array = files.read(count);
  return array && io::elementAsDouble(array->dtype, array->bytes.data(), 0) > 0;
}

/// The name of the tensor for a param or state. A checkpoint may have one count
/// of steps for all parameters.
std::string nameIn(const TensorFiles &files, const Value &value,
                   const Manifest &manifest, std::string_view average) {
  if (!average.empty() && value.role == Role::Param &&
      hasAverage(files, average, value.name))
    return std::string(averageKind(average).state) + value.name;
  bool isCount = isOptimizers(value, manifest) &&
                 variableOf(value, manifest) == "step" &&
                 !files.entries().contains(value.name);
  return isCount ? manifest.optimizer + ".step" : value.name;
}

/// Returns what is wrong with the optimizer's number `tensor`, if it is one: a
/// rate or a count. Of a parameter that is a number, moments are numbers, too,
/// and may be negative.
std::optional<std::string> wrongNumber(const Value &value,
                                       const Manifest &manifest,
                                       const io::ArrayView &tensor) {
  std::string_view variable = variableOf(value, manifest);
  if (variable != "lr" && variable != "step" && variable != "summed" &&
      variable != "scale" && variable != "good" && variable != "updates")
    return std::nullopt;
  double number = io::elementAsDouble(tensor.dtype, tensor.bytes.data(), 0);
  bool isScale = variable == "scale";
  if (std::isfinite(number) && (isScale ? number > 0 : number >= 0))
    return std::nullopt;
  return "expected a number " + std::string(isScale ? "above" : "of at least") +
         " 0 but got " + numberText(number);
}

/// Returns the name of the optimizer that the file's learning rate is of, if
/// that is not the model's; empty: it is, or there is none.
std::string otherOptimizer(const TensorFiles &files, const Manifest &manifest) {
  constexpr std::string_view rate = ".lr";
  if (manifest.optimizer.empty() ||
      files.entries().contains(manifest.optimizer + ".lr"))
    return "";
  for (const auto &[name, entry] : files.entries())
    if (name.size() > rate.size() && name.find('.') == name.rfind(rate) &&
        name.ends_with(rate) && entry.shape.empty() &&
        !manifest.findValue(name))
      return name.substr(0, name.size() - rate.size());
  return "";
}

/// Names what the file lacks: the first few, and how many there are.
class Missing {
public:
  void add(const std::string &name, const std::string &type,
           Problems &problems) {
    if (++count_ <= shown)
      problems.add("has no tensor '" + name + "' (" + type + ")");
  }
  void finish(int64_t wanted, Problems &problems) const {
    if (count_ > shown)
      problems.add("in all " + std::to_string(count_) + " of " +
                   std::to_string(wanted) + " tensors are missing");
  }

private:
  static constexpr int64_t shown = 3;
  int64_t count_ = 0;
};

/// Overwrites the parameters and the model's own states by those of the files,
/// and, with `trainings`, the states of a training as well: of each this rank's
/// part, which is all that is read. With `average` parameters are their
/// averages of this name. What `rates` has comes from the tensor of that name,
/// and stays as it begins where that is empty.
Status restoreTensors(runtime::Model &model, const TensorFiles &files,
                      bool trainings, std::string_view average = {},
                      const std::map<std::string, std::string> &rates = {}) {
  const Manifest &manifest = model.manifest();
  if (Status status = checkpoint::refuseAdapters(files, manifest); !status)
    return status;
  Problems problems;
  Missing missing;
  Names widened;
  int64_t wanted = 0;
  std::vector<NamedTensor> tensors;
  std::vector<std::string_view> fresh;
  if (trainings)
    fresh = unfrozen(files, manifest);
  for (const Value &value : manifest.values) {
    if (!isVariable(value) || (!trainings && isTrainings(value, manifest)))
      continue;
    ++wanted;
    checkpoint::Part part = checkpoint::ownPart(model, value);
    std::string expected = runtime::describe(value.dtype, part.whole);
    auto tied = checkpoint::nameIn(files, value);
    if (!tied) {
      problems.add(tied.status().message());
      continue;
    }
    std::string name = nameIn(files, value, manifest, average);
    if (name == value.name)
      name = *tied;
    if (auto rate = rates.find(value.name); rate != rates.end())
      name = rate->second;
    auto found = files.entries().find(name);
    auto begins = [&] {
      return isOptional(value, manifest) ||
             (isOptimizers(value, manifest) &&
              std::find(fresh.begin(), fresh.end(), paramOf(value, manifest)) !=
                  fresh.end());
    };
    if (found == files.entries().end() && begins()) {
      --wanted;
      continue;
    }
    if (found == files.entries().end()) {
      missing.add(value.name, expected, problems);
      continue;
    }
    const TensorFiles::Entry &entry = found->second;
    Result<io::Array> array = io::Array();
    // An average may be wider than its parameter, which rounds it.
    bool isAverage = name != *tied && !trainings;
    bool fits = part.fits(entry.shape) &&
                (checkpoint::mayBecome(entry.dtype, value.dtype) ||
                 (isAverage && artifact::isFloat(entry.dtype) &&
                  artifact::isFloat(value.dtype)));
    if (fits) {
      array = checkpoint::readPart(files, name, part);
      if (!array)
        return std::move(array).status();
      if (entry.dtype != value.dtype)
        array = isAverage ? io::castArray(*array, value.dtype, {.rounds = true})
                          : io::convertExactly(*array, value.dtype);
      if (array && entry.dtype != value.dtype && !isAverage)
        widened.add(value.name, " (" + std::string(spelling(entry.dtype)) +
                                    " to " +
                                    std::string(spelling(value.dtype)) + ")");
      fits = array.ok();
    }
    if (!fits) {
      problems.add("tensor '" + value.name + "': expected " + expected +
                   " but got " + runtime::describe(entry.dtype, entry.shape));
      continue;
    }
    if (auto wrong = isOptimizers(value, manifest)
                         ? wrongNumber(value, manifest, *array)
                         : std::nullopt) {
      problems.add("tensor '" + value.name + "': " + *wrong);
      continue;
    }
    auto tensor = io::toTensor(*array);
    if (!tensor)
      return std::move(tensor).status();
    tensors.push_back({value.name, std::move(*tensor)});
  }
  missing.finish(wanted, problems);
  if (!problems.none())
    return problems.status();
  if (widened.count())
    note("tensors are converted, without loss:" + widened.after(" "));
  for (const NamedTensor &tensor : tensors)
    if (Status status = model.set(tensor.name, tensor.tensor); !status)
      return status;
  return Status::success();
}

/// Reads the decimal number `key`, from `least` to `most`, of the metadata.
template <typename T>
void readNumber(const TensorFiles &file, const char *key, T &value, T most,
                Problems &problems, T least = 0) {
  auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    problems.add(std::string("has no metadata '") + key +
                 "'; expected a checkpoint that 'train --save' wrote");
    return;
  }
  const std::string &text = found->second;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
      value > most || value < least)
    problems.add(std::string("metadata '") + key +
                 "': expected an integer from " + std::to_string(least) +
                 " to " + std::to_string(most) + " but got " +
                 io::inQuotes(text));
}

/// Returns the text `key` of the metadata; empty where there is none.
std::string textOf(const TensorFiles &file, const char *key) {
  auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

} // namespace

/// Reads the losses of the pass that was begun; a checkpoint of before has
/// none.
static void readLosses(const TensorFiles &file, Position &position,
                       Problems &problems) {
  constexpr const char *key = "tandem.loss_sum";
  bool hasCount = file.metadata().contains("tandem.losses");
  if (hasCount || file.metadata().contains(key))
    readNumber(file, "tandem.losses", position.losses, position.step, problems);
  if (!hasCount)
    return;
  // It is infinite or NaN where a loss was.
  std::string text = textOf(file, key);
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), position.lossSum);
  if (error != std::errc() || end != text.data() + text.size())
    problems.add(std::string("metadata '") + key +
                 "': expected a number but got " + io::inQuotes(text));
}

/// Which numbers no training has together.
static void checkTogether(const Position &position, Problems &problems) {
  auto text = [](int64_t number) { return std::to_string(number); };
  int64_t before = position.totalSteps - position.step;
  // Each pass has a step, and none has steps if there was none.
  if (before < position.epoch || (position.epoch == 0 && before > 0))
    problems.add("metadata 'tandem.total_steps': " + text(position.totalSteps) +
                 " steps cannot be those of " + text(position.epoch) +
                 " passes and of " + text(position.step) +
                 " steps of the next one");
}

bool isOfModel(const Value &value, const Manifest &manifest) {
  return isVariable(value) && !isTrainings(value, manifest);
}

Status loadParameters(runtime::Model &model, const std::string &path,
                      const std::string &average) {
  auto files = TensorFiles::open(path);
  if (!files)
    return std::move(files).status();
  const auto &values = model.manifest().values;
  if (!average.empty() &&
      std::none_of(values.begin(), values.end(), [&](const Value &value) {
        return value.role == Role::Param &&
               hasAverage(*files, average, value.name);
      }))
    return Status::usage(io::inQuotes(path) + " has no averages " +
                         io::inQuotes(average) +
                         " of parameters, or none of an update: --average "
                         "needs a checkpoint of a training with " +
                         std::string(averageKind(average).option));
  return restoreTensors(model, *files, false, average).in(io::inQuotes(path));
}

Result<Checkpoint> Checkpoint::read(const std::string &path) {
  auto files = TensorFiles::open(path);
  if (!files)
    return std::move(files).status();
  Checkpoint checkpoint(path, *std::move(files));
  const TensorFiles &from = checkpoint.files_;
  Position &position = checkpoint.position_;
  // One line, where it has none of what follows.
  if (!from.metadata().contains(io::checkpointKey))
    return Status::usage(std::string("has no metadata '") + io::checkpointKey +
                         "'; expected a checkpoint that 'train --save' wrote "
                         "(--params takes parameters of other files)")
        .in(io::inQuotes(path));
  Problems problems;
  int64_t shuffle = 1;
  readNumber(from, io::checkpointKey, position.epoch, mostSteps, problems);
  readNumber(from, "tandem.step", position.step, mostSteps, problems);
  readNumber(from, "tandem.total_steps", position.totalSteps, mostSteps,
             problems);
  readNumber(from, "tandem.seed", position.seed, uint64_t(INT64_MAX), problems);
  readNumber(from, "tandem.rows", position.rows, mostSteps, problems);
  readNumber(from, "tandem.batch", position.batch, mostSteps, problems);
  readNumber(from, "tandem.shuffle", shuffle, int64_t(1), problems);
  position.shuffle = shuffle != 0;
  // Checkpoints of before have neither this nor what follows.
  if (from.metadata().contains("tandem.accumulate"))
    readNumber(from, "tandem.accumulate", position.accumulate, mostSteps,
               problems, int64_t(1));
  if (problems.none()) {
    readLosses(from, position, problems);
    checkTogether(position, problems);
  }
  position.best = textOf(from, "tandem.best");
  position.owesEvaluation = textOf(from, "tandem.evaluation") == "owed";
  if (!problems.none())
    return problems.status().in(io::inQuotes(path));
  checkpoint.origin_ = {textOf(from, "tandem.model"),
                        textOf(from, "tandem.graph"),
                        textOf(from, "tandem.data")};
  return checkpoint;
}

int64_t Checkpoint::pending() const {
  double most = 0;
  // Each parameter counts for itself; those that no step moves never do.
  for (const auto &[name, entry] : files_.entries()) {
    if (name.find(".summed:") == name.npos || !entry.shape.empty())
      continue;
    if (auto array = files_.read(name))
      most = std::max(
          most, io::elementAsDouble(array->dtype, array->bytes.data(), 0));
  }
  return most <= double(mostSteps) ? int64_t(most) : 0;
}

Status Checkpoint::restore(runtime::Model &model, const RateGroups &groups,
                           std::vector<std::string> &notes) const {
  const Manifest &manifest = model.manifest();
  if (std::string other = otherOptimizer(files_, manifest); !other.empty())
    return Status::usage(io::inQuotes(path_) +
                         " was trained with the optimizer " +
                         io::inQuotes(other) + ", but this artifact's is " +
                         io::inQuotes(manifest.optimizer) +
                         "; --params takes its parameters alone");
  std::vector<std::string> here;
  std::map<std::string, std::string> rates;
  // A checkpoint of before has groups by their numbers alone.
  bool isNumbered = !files_.metadata().contains(kRateGroups) &&
                    std::ranges::any_of(manifest.values, [&](auto &value) {
                      return isGroupsRate(value, manifest) &&
                             files_.entries().contains(value.name);
                    });
  if (isNumbered)
    here.emplace_back("does not say which parameters its groups have: their "
                      "learning rates go by the groups' numbers");
  else
    rates = sourcesOfRates(manifest, groups, textOf(files_, kRateGroups), here);
  if (Status status = restoreTensors(model, files_, true, {}, rates); !status)
    return std::move(status).in(io::inQuotes(path_));
  noteFresh(files_, manifest, here);
  noteLeft(files_, manifest, here);
  for (const std::string &text : here)
    notes.push_back(io::inQuotes(path_) + " " + text);
  return Status::success();
}

Snapshot::Kind Snapshot::kindOf(const Value &value, const Manifest &manifest) {
  return value.role == Role::Param && value.requiresGrad ? Kind::Trained
         : isReport(value, manifest)                     ? Kind::Report
                                                         : Kind::Other;
}

Result<Snapshot> Snapshot::of(const runtime::Model &model,
                              const std::string &path) {
  Snapshot snapshot;
  snapshot.model_ = &model;
  snapshot.path_ = path;
  snapshot.inShards_ = io::isIndexName(path);
  for (const Value *value : checkpoint::savedOf(model)) {
    auto tensor = snapshot.inShards_
                      ? checkpoint::valuesOf(model, value->name,
                                             checkpoint::ownPart(model, *value))
                      : model.getWhole(value->name);
    if (!tensor)
      return std::move(tensor).status();
    if (!snapshot.inShards_ && !isFirstRank())
      continue; // the first one writes
    snapshot.tensors_.push_back({value->name, std::move(*tensor)});
    snapshot.kinds_.push_back(kindOf(*value, model.manifest()));
  }
  if (Status status = snapshot.look(); !status)
    return status;
  return snapshot;
}

/// Looks for what should not be saved; all ranks see what one has.
Status Snapshot::look() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    io::ArrayView view = io::viewOf(tensors_[i].tensor);
    isBad_.push_back(kinds_[i] == Kind::Trained
                         ? io::firstNonFinite(view).has_value()
                         : io::firstNaN(view).has_value());
  }
  const comm::MeshCommunicators *ranks =
      model_ ? model_->communicators() : nullptr;
  if (!inShards_ || !ranks)
    return Status::success();
  return ranks->world().allReduce(artifact::DType::U8, comm::Reduce::Max,
                                  isBad_.data(), isBad_.data(),
                                  int64_t(isBad_.size()));
}

Status Snapshot::checkFinite() const {
  std::string names = namesOf(Kind::Trained);
  return names.empty()
             ? Status::success()
             : Status::failed("NaN or infinity in the parameters " + names);
}

std::string Snapshot::statesOfNaN() const { return namesOf(Kind::Other); }

/// What is trained beside adapters; empty: there are none.
static std::string trainedWhole(const Manifest &manifest) {
  std::string names;
  bool hasAdapters = false;
  for (const artifact::Value &value : manifest.values) {
    bool isAdapter = artifact::isAdapterName(value.name);
    hasAdapters |= isAdapter && value.role == Role::Param;
    if (value.role == Role::Param && value.requiresGrad && !isAdapter)
      names += value.name + "\n";
  }
  return hasAdapters ? names : "";
}

Status Snapshot::save(const Position &position, const Origin &origin) const {
  std::map<std::string, std::string> metadata = {
      {"tandem.model", origin.model},
      {io::checkpointKey, std::to_string(position.epoch)},
      {"tandem.step", std::to_string(position.step)},
      {"tandem.total_steps", std::to_string(position.totalSteps)},
      {"tandem.seed", std::to_string(position.seed)},
      {"tandem.rows", std::to_string(position.rows)},
      {"tandem.batch", std::to_string(position.batch)},
      {"tandem.shuffle", position.shuffle ? "1" : "0"},
      {"tandem.accumulate", std::to_string(position.accumulate)}};
  if (position.step) {
    metadata["tandem.losses"] = std::to_string(position.losses);
    metadata["tandem.loss_sum"] = numberText(position.lossSum);
  }
  if (!position.best.empty())
    metadata["tandem.best"] = position.best;
  if (position.owesEvaluation)
    metadata["tandem.evaluation"] = "owed";
  auto groups = rateGroupsOf(stages_ ? std::span(stages_->models())
                                     : std::span(model_, 1));
  if (!groups)
    return std::move(groups).status();
  if (std::string text = groups->text(); !text.empty())
    metadata[kRateGroups] = text;
  // In stages nothing is trained beside adapters.
  if (std::string whole = model_ ? trainedWhole(model_->manifest()) : "";
      !whole.empty())
    metadata[artifact::kTrainedWhole] = whole;
  if (!origin.graph.empty())
    metadata["tandem.graph"] = origin.graph;
  if (!origin.data.empty())
    metadata["tandem.data"] = origin.data;
  if (inShards_ && stages_)
    return checkpoint::saveStages(stages_->models(), stages_->line(),
                                  stages_->world(), path_, metadata);
  if (inShards_)
    return checkpoint::saveShards(*model_, path_, metadata);
  if (!isFirstRank())
    return Status::success();
  std::map<std::string, io::ArrayView> views;
  for (const NamedTensor &tensor : tensors_)
    views.emplace(tensor.name, io::viewOf(tensor.tensor));
  return io::writeSafetensors(path_, views, metadata);
}

std::string optimizerState(const Manifest &manifest,
                           std::string_view variable) {
  std::string name = manifest.optimizer + "." + std::string(variable);
  const Value *value =
      manifest.optimizer.empty() ? nullptr : manifest.findValue(name);
  return value && value->role == Role::State ? name : "";
}

} // namespace tandem::commands
