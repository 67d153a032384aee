//===- Resume.cpp - is it the same training? ------------------------------===//
//
// Arrays are told apart by their CRC32: against mistakes, not against forgery.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Resume.h"

#include "tools/commands/Print.h"
#include "tools/commands/RowSource.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace tandem::commands {
namespace {

using Json = nlohmann::json;

/// As of every text here, so that the parser is compiled once.
Json parsed(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Returns the first digits of a digest, for people.
std::string shortened(const std::string &digest) { return digest.substr(0, 8); }

std::string modelText(const Origin &origin) {
  return io::inQuotes(origin.model) + " (graph " + shortened(origin.graph) +
         ")";
}

/// Returns the names of the arrays that are not the same, in quotes.
std::string differingArrays(const std::string &there, const std::string &here) {
  Json was = parsed(there);
  Json is = parsed(here);
  std::string names;
  auto add = [&](const std::string &name) {
    names += (names.empty() ? "" : ", ") + io::inQuotes(name);
  };
  if (!was.is_object() || !is.is_object())
    return names;
  for (const auto &[name, digest] : is.items())
    if (was.value(name, Json()) != digest)
      add(name);
  // What is not given any more, as --weights, has decided about rows, too.
  for (const auto &[name, digest] : was.items())
    if (!is.contains(name))
      add(name);
  return names;
}

/// Collects differences: errors that --force allows, and notes.
class Differences {
public:
  Differences(const ResumeWith &with, std::vector<std::string> &notes)
      : with_(with), notes_(notes) {}

  void note(const std::string &what) {
    notes_.push_back(io::inQuotes(with_.path) + " " + what);
  }
  void error(const std::string &what) {
    problems_.add(io::inQuotes(with_.path) + " " + what);
  }
  /// An error, or with --force a note; `otherwise` is what else can be done.
  void serious(const std::string &what, const std::string &otherwise = "") {
    if (with_.force)
      return note(what);
    error(what + otherwise);
    forceable_ = true;
  }
  Status status() {
    if (forceable_)
      problems_.add("--force goes on all the same");
    return problems_.none() ? Status::success() : problems_.status();
  }

private:
  const ResumeWith &with_;
  std::vector<std::string> &notes_;
  Problems problems_;
  bool forceable_ = false;
};

void compareModels(const Checkpoint &checkpoint, const ResumeWith &with,
                   Differences &differences) {
  const Origin &there = checkpoint.origin(), &here = with.origin;
  bool known = !there.graph.empty() && !here.graph.empty();
  // Another batch is another graph, and may be all that differs.
  auto batches = [](int64_t rows) {
    return " with batches of " + std::to_string(rows);
  };
  bool sameBatch = checkpoint.position().batch == with.batch;
  if (known && there.graph != here.graph)
    differences.serious(
        "was trained on another graph, of the model " + modelText(there) +
            (sameBatch ? "" : batches(checkpoint.position().batch)) +
            ", but got " + modelText(here) +
            (sameBatch ? "" : batches(with.batch)),
        "; --params takes its parameters alone");
  else if (there.model == here.model)
    return;
  else if (known)
    differences.note("is of the model " + io::inQuotes(there.model) +
                     ", which is called " + io::inQuotes(here.model) + " now");
  else
    differences.serious("was trained on the model " +
                        io::inQuotes(there.model) + " but got " +
                        io::inQuotes(here.model));
}

void compareData(const Checkpoint &checkpoint, const ResumeWith &with,
                 Differences &differences) {
  const Position &position = checkpoint.position();
  bool inPass = position.step > 0;
  auto number = [&](const std::string &what, int64_t there, int64_t here) {
    std::string text = "was trained with " + what + " " +
                       std::to_string(there) + " but got " +
                       std::to_string(here);
    // In the middle of a pass, which rows are left depends on both.
    inPass ? differences.error(text) : differences.note(text);
  };
  if (position.rows != with.rows)
    number("rows:", position.rows, with.rows);
  if (position.batch != with.batch)
    number("a batch of", position.batch, with.batch);
  const std::string &there = checkpoint.origin().data;
  if (there.empty() || position.rows != with.rows)
    return;
  if (!parsed(there).is_object())
    differences.note("does not say which data it was trained on: its metadata "
                     "'tandem.data' is damaged");
  std::string names = differingArrays(there, with.origin.data);
  if (names.empty())
    return;
  std::string text = "was trained on other data: the rows of " + names +
                     " differ, in what they hold or in their order";
  inPass ? differences.serious(text + ", and a pass over them was begun")
         : differences.note(text);
}

/// No row is left out or repeated by it, but the updates are other ones. What
/// waits for an update is in the model's sums, where it has some.
void compareAccumulation(const Checkpoint &checkpoint, const ResumeWith &with,
                         Differences &differences) {
  int64_t there = checkpoint.position().accumulate, here = with.accumulate;
  int64_t pending = checkpoint.pending();
  std::string batches = std::to_string(pending) + " batches that wait for an "
                                                  "update in it";
  if (pending == 1)
    batches = "1 batch that waits for an update in it";
  if (pending > 0 && !with.hasSums)
    differences.serious("was trained with --accumulate, and the artifact has "
                        "no sums for the " +
                            batches,
                        "; compile with --accumulate");
  else if (there != 0 && there != here)
    differences.note(
        "was trained with --accumulate=" + std::to_string(there) + " but got " +
        std::to_string(here) +
        (pending > 0 ? "; the " + batches + " count among those of the next one"
                     : ""));
}

} // namespace

Status checkReplaced(const std::string &path, const Origin &origin,
                     bool resumes, bool force,
                     std::vector<std::string> &notes) {
  auto metadata = io::TensorFiles::metadataOf(path);
  if (!metadata)
    return Status::success();
  auto text = [&](const char *key) { return (*metadata)[key]; };
  Origin there;
  there.model = text("tandem.model");
  there.graph = text("tandem.graph");
  if (!there.graph.empty() && !origin.graph.empty() &&
      there.graph != origin.graph) {
    std::string what = io::inQuotes(path) + " is a checkpoint of the model " +
                       modelText(there) + ", not of " + modelText(origin);
    if (!force)
      return Status::usage("expected to replace none of another model, but " +
                           what + "; --force replaces it");
    notes.push_back(what + ", and is replaced");
  } else if (std::string steps = text("tandem.total_steps");
             !resumes && !steps.empty() && steps != "0") {
    notes.push_back(io::inQuotes(path) + ", a checkpoint after " + steps +
                    " steps, is replaced by a new training; '--resume=" + path +
                    "' would go on from it");
  }
  return Status::success();
}

/// The digests of the arrays, as JSON.
static std::string digestsOf(const Dataset &data) {
  Json digests = Json::object();
  for (const runtime::Argument &input : data.arguments()) {
    std::string name(input.name);
    auto array = data.array(name);
    if (!array)
      continue;
    unsigned long crc = crc32_z(0, nullptr, 0);
    const NamedArray &named = *data.named(name);
    if (named.rows) // what is not in memory is told by names and sizes
      crc = named.rows->digest();
    else
      for (io::Bytes piece; named.nextPiece(piece);)
        crc = crc32_z(crc, reinterpret_cast<const Bytef *>(piece.data()),
                      piece.size());
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08lx", crc);
    digests[name] =
        runtime::describe(array->dtype, array->shape) + " " + digits;
    if (std::string how = data.augmentationOf(name); !how.empty())
      digests[name] = digests[name].get<std::string>() + " " + how;
  }
  if (data.shuffleBuffer())
    digests["--shuffle-buffer"] = std::to_string(data.shuffleBuffer());
  if (RowShare share = data.share(); share.of > 1)
    digests["--shard"] =
        std::to_string(share.index) + "/" + std::to_string(share.of);
  if (const NamedArray *weights = data.weights()) {
    io::ArrayView view = weights->view();
    digests["--weights"] = std::to_string(
        crc32_z(0, reinterpret_cast<const Bytef *>(view.bytes.data()),
                view.bytes.size()));
  }
  return digests.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Origin originOf(const artifact::Manifest &manifest, const Dataset &data) {
  return {manifest.model, manifest.graph, digestsOf(data)};
}

Facts factsOfRows(const std::string &option, const Dataset &data) {
  if (rankCount() == 1)
    return {};
  return {{"the rows of " + option, std::to_string(data.rows())},
          {"the data of " + option, digestsOf(data)}};
}

Status compare(const Checkpoint &checkpoint, const ResumeWith &with,
               std::vector<std::string> &notes) {
  const Position &position = checkpoint.position();
  const Origin &there = checkpoint.origin();
  Differences differences(with, notes);
  if (with.seed && *with.seed != position.seed)
    differences.error("was trained with --seed " +
                      std::to_string(position.seed) + " but got " +
                      std::to_string(*with.seed));
  if (with.noShuffle && position.shuffle)
    differences.error("was trained with shuffling");
  compareModels(checkpoint, with, differences);
  compareData(checkpoint, with, differences);
  compareAccumulation(checkpoint, with, differences);
  if (position.step > 0 && position.losses == 0 && position.lossSum == 0)
    differences.note("has no losses of the pass that was begun: its mean will "
                     "be that of the steps that follow");
  else if (!std::isfinite(position.lossSum))
    differences.note("has losses that are not finite in the pass that was "
                     "begun, and so has its mean");
  if (there.graph.empty() || there.data.empty() || with.origin.graph.empty())
    differences.note("or the artifact does not say which graph and data they "
                     "are of, so that these cannot be compared");
  int64_t steps = with.rows / with.batch + with.hasRest;
  Status status = differences.status();
  if (status && position.step > 0 && position.step >= steps)
    return Status::usage(io::inQuotes(with.path) + " is at step " +
                         std::to_string(position.step) + " of a pass of " +
                         std::to_string(steps));
  return status;
}

Status setLearningRate(runtime::Model &model, double rate) {
  std::string name = optimizerState(model.manifest(), "lr");
  if (name.empty())
    return Status::unsupported("the artifact has no learning rate for --lr to "
                               "set: it has no optimizer");
  const artifact::Value *value = model.manifest().findValue(name);
  auto tensor = runtime::Tensor::zeros(value->dtype, value->shape);
  if (!tensor)
    return std::move(tensor).status();
  if (Status status = tensor->fill(rate); !status)
    return status;
  return model.set(name, *tensor);
}

} // namespace tandem::commands
