//===- Checkpoint.cpp - the command `checkpoint` --------------------------===//
//
// Shows tensors in one file or several, and writes them in another number of
// files: as a stream, of at most `chunk` bytes of a tensor at a time, and all
// or nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/IndexFiles.h"
#include "runtime/io/TensorFiles.h"
#include "tools/commands/Files.h"
#include "tools/commands/Show.h"
#include "tools/tandem/Adapters.h"
#include "tools/tandem/CompilerCommands.h"

#include <algorithm>
#include <cstdio>
#include <set>

using namespace tandem;
using namespace tandem::commands;
using io::TensorFiles;

namespace {

constexpr int64_t chunk = int64_t(64) << 20;

struct CheckpointOptions {
  static constexpr std::string_view
      usage = "checkpoint show|merge|reshard|adapters FILE [-o OUTPUT] "
              "[options]",
      description =
          "Shows tensors in a safetensors file or in the files of an index "
          "(show), writes those of an index to one file (merge), or those of "
          "either to the files of another index, each tensor whole in one of "
          "them (reshard). Bytes and metadata stay as they are. Of what "
          "--lora trained, merge --fold-adapters adds adapters to their "
          "weights, and adapters writes them alone, as PEFT's "
          "adapter_model.safetensors, and prints adapter_config.json.";

  std::string action, path, output;
  std::optional<int64_t> shards, megabytes;
  bool json = false, force = false, folds = false;

  void declare(OptionTable &table) {
    table.positional("ACTION", action, "show, merge, reshard or adapters")
        .choices = {"show", "merge", "reshard", "adapters"};
    table.positional("FILE", path,
                     "F.safetensors, F.safetensors.index.json, or a folder "
                     "with one index");
    table.text("o", "OUTPUT", output,
               "of merge and adapters F.safetensors, of reshard "
               "F.safetensors.index.json");
    table.integer("shards", "N", shards, 1, 99999,
                  "of reshard: how many files, as equally large as whole "
                  "tensors allow");
    table
        .integer("max-shard-size", "MB", megabytes, 1, int64_t(1) << 40,
                 "of reshard: the most megabytes (10^6 bytes) of tensors in a "
                 "file, unless one tensor alone has more")
        .excludes("shards");
    table.flag("fold-adapters", folds,
               "of merge: add low-rank adapters to their weights, without "
               "which they are not written; nor is what goes on with training");
    table.flag("json", json, "of show: print it as one JSON object");
    table.flag("force", force,
               "of all but show: replace a file of another kind, too");
    table.finally([this] { return checkActions(); });
  }

  /// Each option has an effect, and what an action needs is there.
  Status checkActions() const {
    auto fail = [&](const std::string &what) {
      return Status::usage("'checkpoint " + action + "' " + what);
    };
    bool isReshard = action == "reshard";
    if (action == "show" && (!output.empty() || force))
      return fail("writes no file: -o and --force have no effect");
    if (action != "show" && json)
      return fail("prints nothing: --json has no effect");
    if (action != "merge" && folds)
      return fail("does not take --fold-adapters");
    if (!isReshard && (shards || megabytes))
      return fail("takes neither --shards nor --max-shard-size");
    if (action != "show" && io::isIndexName(output) != isReshard)
      return fail(isReshard
                      ? "expected -o with a name as 'F.safetensors.index.json'"
                      : "expected -o with a name as 'F.safetensors'");
    if (action != "show" && output.empty())
      return fail("expected -o with the file to write");
    if (isReshard && !shards && !megabytes)
      return fail("expected --shards or --max-shard-size");
    return Status::success();
  }
};

/// Passes a tensor on, some of its rows at a time.
Status give(const TensorFiles &files, const std::string &name,
            const io::TakeBytes &take) {
  const TensorFiles::Entry &entry = files.entries().at(name);
  std::vector<int64_t> begin(entry.shape.size()), sizes = entry.shape;
  int64_t rows = sizes.empty() ? 1 : sizes[0], bytes = entry.bytes();
  if (bytes == 0)
    return Status::success();
  int64_t most = std::clamp<int64_t>(chunk / (bytes / rows), 1, rows);
  for (int64_t row = 0; row < rows; row += most) {
    if (!sizes.empty()) {
      begin[0] = row;
      sizes[0] = std::min(most, rows - row);
    }
    auto array = files.read(name, begin, sizes);
    if (!array)
      return std::move(array).status();
    if (Status status = take(array->bytes); !status)
      return status;
  }
  return Status::success();
}

using Types = std::map<std::string, io::TensorType>;

Types typesOf(const TensorFiles &files) {
  Types types;
  for (const auto &[name, entry] : files.entries())
    types[name] = {entry.dtype, entry.shape};
  return types;
}

/// Says which tensors go into which file.
Result<std::vector<std::vector<std::string>>>
planOf(const TensorFiles &files, const CheckpointOptions &options) {
  std::vector<std::pair<int64_t, std::string>> all;
  for (const auto &[name, entry] : files.entries())
    all.emplace_back(-entry.bytes(), name);
  std::vector<std::vector<std::string>> plan;
  if (options.megabytes) {
    // In the order of names, as models have them.
    int64_t room = 0, most = *options.megabytes * 1'000'000;
    for (const auto &[name, entry] : files.entries()) {
      if (plan.empty() || entry.bytes() > room) {
        plan.emplace_back();
        room = most;
      }
      room -= entry.bytes();
      plan.back().push_back(name);
    }
    return plan;
  }
  auto count = size_t(*options.shards);
  if (count > all.size())
    return Status::usage(
        "--shards: expected at most " + std::to_string(all.size()) +
        ", as many as there are tensors, but got " + std::to_string(count));
  std::sort(all.begin(), all.end());
  plan.resize(count);
  std::vector<std::pair<int64_t, size_t>> loads; // bytes and tensors of a file
  loads.resize(count);
  for (const auto &[bytes, name] : all) {
    auto least = std::min_element(loads.begin(), loads.end());
    plan[size_t(least - loads.begin())].push_back(name);
    least->first -= bytes;
    ++least->second;
  }
  return plan;
}

Status reshard(const TensorFiles &files, const CheckpointOptions &options) {
  auto plan = planOf(files, options);
  if (!plan)
    return std::move(plan).status();
  Types types = typesOf(files);
  std::string generation = checkpoint::newGeneration(options.output);
  io::TensorIndex index;
  index.metadata = files.metadata();
  for (size_t i = 0; i < plan->size(); ++i) {
    std::string file = checkpoint::fileName(options.output, generation,
                                            int64_t(i), int64_t(plan->size()));
    Types own;
    for (const std::string &name : (*plan)[i]) {
      own[name] = types[name];
      index.weightMap[name] = file;
      index.totalSize += files.entries().at(name).bytes();
    }
    Status status = checkpoint::writeFile(
        options.output, file, own,
        [&](const std::string &name, const io::TakeBytes &take) {
          return give(files, name, take);
        },
        index);
    if (!status) {
      checkpoint::removeFiles(options.output, generation);
      return status;
    }
  }
  return checkpoint::commit(options.output, generation, index);
}

/// The files of an index, which lie beside it.
std::set<std::string> filesOf(const TensorFiles &files) {
  std::set<std::string> all;
  if (files.isIndex())
    for (const auto &[name, entry] : files.entries())
      for (const TensorFiles::Piece &piece : entry.pieces)
        all.insert(piece.place.file);
  return all;
}

Status runCheckpoint(const CheckpointOptions &options) {
  if (options.action == "show")
    return showCheckpoint(options.path, options.json);
  using io::FileKind;
  auto path = TensorFiles::fileOf(options.path);
  if (!path)
    return std::move(path).status();
  auto files = TensorFiles::open(*path);
  if (!files)
    return std::move(files).status();
  Files outputs;
  outputs.reads("FILE", *path);
  for (const std::string &file : filesOf(*files))
    outputs.reads("FILE", path->substr(0, path->rfind('/') + 1) + file);
  outputs.writes(
      {"-o", options.output,
       options.action != "reshard"
           ? std::vector{FileKind::Checkpoint, FileKind::Safetensors}
           : std::vector{FileKind::CheckpointIndex, FileKind::TensorIndex}});
  if (Status status = outputs.check(options.force); !status)
    return status;
  Status status =
      options.folds                  ? foldAdapters(*files, options.output)
      : options.action == "adapters" ? extractAdapters(*files, options.output)
      : options.action == "merge"
          ? io::writeSafetensors(
                options.output, typesOf(*files), files->metadata(),
                [&](const std::string &name, const io::TakeBytes &take) {
                  return give(*files, name, take);
                })
          : reshard(*files, options);
  return std::move(status).in(io::inQuotes(options.path));
}

} // namespace

Command commands::checkpointCommand() {
  return commandOf<runCheckpoint>(
      "checkpoint", "show tensors, or write them in one file or several");
}
