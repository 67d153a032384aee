//===- Checkpoint.cpp - parameters and training state in files ------------===//
//
// Metadata keys begin with "tandem."; numbers are decimal texts, as the format
// wants.
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Checkpoint.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/cli/Inputs.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Tensors.h"

#include <charconv>
#include <utility>

namespace tandem::commands {
namespace {

using artifact::Manifest;
using artifact::Role;
using artifact::Value;
using io::Safetensors;

bool isVariable(const Value &value) {
  return value.role == Role::Param || value.role == Role::State;
}

bool isOptimizers(const Value &value, const Manifest &manifest) {
  return value.role == Role::State && !manifest.optimizer.empty() &&
         value.name.starts_with(manifest.optimizer + ".");
}

/// True for the state of random numbers, which starts from the seed.
bool isSeed(const Value &value) {
  return value.init && value.init->kind == artifact::Init::Kind::Seed;
}

/// Overwrites what the file has; `complete`: it must have everything.
Status restore(runtime::Model &model, const Safetensors &file, bool complete) {
  const Manifest &manifest = model.manifest();
  Problems problems;
  std::vector<NamedTensor> tensors;
  for (const Value &value : manifest.values) {
    if (!isVariable(value))
      continue;
    std::string expected = runtime::describe(value.dtype, value.shape);
    auto found = file.find(value.name);
    if (!found) {
      if (complete || (!isOptimizers(value, manifest) && !isSeed(value)))
        problems.add("has no tensor '" + value.name + "' (" + expected + ")");
      continue;
    }
    auto converted = found->dtype == value.dtype
                         ? Result<io::Array>(io::Array())
                         : io::convertExactly(*found, value.dtype);
    bool sameShape = std::equal(found->shape.begin(), found->shape.end(),
                                value.shape.begin(), value.shape.end());
    if (!sameShape || !converted) {
      problems.add("tensor '" + value.name + "': expected " + expected +
                   " but got " + runtime::describe(found->dtype, found->shape));
      continue;
    }
    auto tensor = io::toTensor(
        found->dtype == value.dtype ? *found : io::ArrayView(*converted));
    if (!tensor)
      return std::move(tensor).status();
    tensors.push_back({value.name, std::move(*tensor)});
  }
  if (!problems.none())
    return problems.status();
  for (const NamedTensor &tensor : tensors)
    if (Status status = model.set(tensor.name, tensor.tensor); !status)
      return status;
  return Status::success();
}

/// Reads the decimal number `key` of the metadata.
template <typename T>
void readNumber(const Safetensors &file, const char *key, T &value,
                Problems &problems) {
  auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    problems.add(std::string("has no metadata '") + key +
                 "'; expected a checkpoint that 'train --save' wrote");
    return;
  }
  const std::string &text = found->second;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
      value > T(INT64_MAX) || std::cmp_less(value, 0))
    problems.add(std::string("metadata '") + key +
                 "': expected a number but got " + io::inQuotes(text));
}

} // namespace

Status loadParameters(runtime::Model &model, const std::string &path) {
  auto file = Safetensors::read(path);
  if (!file)
    return std::move(file).status();
  return restore(model, *file, false).in(io::inQuotes(path));
}

Result<Position> loadCheckpoint(runtime::Model &model,
                                const std::string &path) {
  auto file = Safetensors::read(path);
  if (!file)
    return std::move(file).status();
  Problems problems;
  Position position;
  int64_t shuffle = 1;
  readNumber(*file, "tandem.epoch", position.epoch, problems);
  readNumber(*file, "tandem.step", position.step, problems);
  readNumber(*file, "tandem.total_steps", position.totalSteps, problems);
  readNumber(*file, "tandem.seed", position.seed, problems);
  readNumber(*file, "tandem.rows", position.rows, problems);
  readNumber(*file, "tandem.batch", position.batch, problems);
  readNumber(*file, "tandem.shuffle", shuffle, problems);
  position.shuffle = shuffle != 0;
  if (!problems.none())
    return problems.status().in(io::inQuotes(path));
  if (Status status = restore(model, *file, true); !status)
    return std::move(status).in(io::inQuotes(path));
  return position;
}

Status saveCheckpoint(const runtime::Model &model, const Position &position,
                      const std::string &path) {
  std::vector<NamedTensor> tensors;
  for (const Value &value : model.manifest().values) {
    if (!isVariable(value))
      continue;
    auto tensor = model.get(value.name);
    if (tensor)
      tensor = tensor->onHost();
    if (!tensor)
      return std::move(tensor).status();
    tensors.push_back({value.name, std::move(*tensor)});
  }
  std::map<std::string, io::ArrayView> views;
  for (const NamedTensor &tensor : tensors)
    views.emplace(tensor.name, io::viewOf(tensor.tensor));
  return io::writeSafetensors(
      path, views,
      {{"tandem.model", model.manifest().model},
       {"tandem.epoch", std::to_string(position.epoch)},
       {"tandem.step", std::to_string(position.step)},
       {"tandem.total_steps", std::to_string(position.totalSteps)},
       {"tandem.seed", std::to_string(position.seed)},
       {"tandem.rows", std::to_string(position.rows)},
       {"tandem.batch", std::to_string(position.batch)},
       {"tandem.shuffle", position.shuffle ? "1" : "0"}});
}

Status checkWritable(const std::string &path) {
  auto file = artifact::AtomicFile::create(path);
  return file ? Status::success() : std::move(file).status();
}

} // namespace tandem::commands
