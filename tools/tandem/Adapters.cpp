//===- Adapters.cpp - low-rank adapters of a checkpoint -------------------===//
#include "tools/tandem/Adapters.h"

#include "passes/partition/optimizers/Optimizers.h"
#include "runtime/artifact/Adapters.h"
#include "runtime/io/Cast.h"
#include "runtime/io/Elements.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::commands;
using artifact::DType;
using io::TensorFiles;

namespace {

/// A weight [out, in] and its adapter.
struct Adapter {
  std::string weight, a, b;
  double scale = 0;
  bool fanInFanOut = false; ///< the weight lies as [in, out]
  int64_t rank = 0, in = 0, out = 0;
};

/// All elements, as doubles.
Result<std::vector<double>> numbersOf(const TensorFiles &files,
                                      const std::string &name) {
  auto array = files.read(name);
  if (!array)
    return std::move(array).status();
  std::vector<double> numbers(array->bytes.size() /
                              size_t(byteSize(array->dtype)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] =
        io::elementAsDouble(array->dtype, array->bytes.data(), int64_t(i));
  return numbers;
}

/// The adapter whose first factor is `a`.
Result<Adapter> adapterOf(const TensorFiles &files, const std::string &a) {
  Adapter adapter;
  adapter.a = a;
  adapter.weight = artifact::adaptedWeight(a);
  auto names = artifact::adapterNames(adapter.weight, false);
  const auto &entries = files.entries();
  if (auto other = artifact::adapterNames(adapter.weight, true).scale;
      entries.contains(other)) {
    adapter.fanInFanOut = true;
    names.scale = other;
  }
  adapter.b = names.b;
  for (const std::string &part : {adapter.weight, names.b, names.scale})
    if (!entries.contains(part))
      return Status::failed("'" + a +
                            "' is the factor of an adapter, but there "
                            "is no '" +
                            part + "'");
  const auto &shape = entries.at(adapter.weight).shape,
             &first = entries.at(a).shape, &second = entries.at(names.b).shape;
  if (shape.size() != 2 || first.size() != 2 || second.size() != 2 ||
      !entries.at(names.scale).shape.empty())
    return Status::failed("'" + adapter.weight +
                          "' and its adapter: expected "
                          "matrices and a number");
  adapter.out = shape[adapter.fanInFanOut ? 1 : 0];
  adapter.in = shape[adapter.fanInFanOut ? 0 : 1];
  adapter.rank = first[0];
  if (first != std::vector{adapter.rank, adapter.in} ||
      second != std::vector{adapter.out, adapter.rank})
    return Status::failed(
        "'" + adapter.weight + "' is " + io::shapeText(shape) +
        ", which does not fit its adapter " + io::shapeText(second) +
        " times " + io::shapeText(first));
  auto scale = numbersOf(files, names.scale);
  if (!scale)
    return std::move(scale).status();
  adapter.scale = scale->front();
  if (!std::isfinite(adapter.scale))
    return Status::failed("'" + names.scale + "': expected a number");
  return adapter;
}

/// By the names of their weights.
Result<std::map<std::string, Adapter>> adaptersOf(const TensorFiles &files) {
  std::map<std::string, Adapter> adapters;
  for (const auto &[name, entry] : files.entries()) {
    // "adamw.m:NAME" is the optimizer's.
    if (artifact::adaptedWeight(name).empty() ||
        name.find(':') != std::string::npos)
      continue;
    auto adapter = adapterOf(files, name);
    if (!adapter)
      return std::move(adapter).status();
    adapters[adapter->weight] = *adapter;
  }
  // What is left over is of an adapter whose first factor is not there.
  for (const auto &[name, entry] : files.entries()) {
    bool isKnown = std::any_of(
        adapters.begin(), adapters.end(), [&, &name = name](const auto &known) {
          const Adapter &adapter = known.second;
          return name == adapter.a || name == adapter.b ||
                 name ==
                     artifact::adapterNames(adapter.weight, adapter.fanInFanOut)
                         .scale;
        });
    if (!isKnown && artifact::isAdapterName(name) &&
        name.find(':') == std::string::npos)
      return Status::failed("'" + name +
                            "' is a part of an adapter whose other "
                            "parts are not there");
  }
  if (adapters.empty())
    return Status::failed("has no adapters: no tensor is called as "
                          "'NAME.lora_A.weight'");
  return adapters;
}

/// The names of the parameters that were trained beside the adapters.
Result<std::vector<std::string>> trainedWhole(const TensorFiles &files) {
  std::vector<std::string> names;
  auto found = files.metadata().find(artifact::kTrainedWhole);
  if (found == files.metadata().end())
    return names;
  std::string_view rest = found->second;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!files.entries().contains(names.back()))
      return Status::failed("was trained with the parameter " +
                            io::inQuotes(names.back()) +
                            ", but does not have it");
  }
  return names;
}

/// The weight with what its adapter adds.
Result<io::Array> folded(const TensorFiles &files, const Adapter &adapter) {
  auto weight = numbersOf(files, adapter.weight);
  auto a = numbersOf(files, adapter.a), b = numbersOf(files, adapter.b);
  for (auto *part : {&weight, &a, &b})
    if (!*part)
      return std::move(*part).status();
  std::vector<double> row(size_t(adapter.in));
  for (int64_t o = 0; o < adapter.out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t r = 0; r < adapter.rank; ++r) {
      double factor = adapter.scale * (*b)[size_t(o * adapter.rank + r)];
      for (int64_t i = 0; i < adapter.in; ++i)
        row[size_t(i)] += factor * (*a)[size_t(r * adapter.in + i)];
    }
    for (int64_t i = 0; i < adapter.in; ++i)
      (*weight)[size_t(adapter.fanInFanOut ? i * adapter.out + o
                                           : o * adapter.in + i)] +=
          row[size_t(i)];
  }
  for (double number : *weight)
    if (!std::isfinite(number))
      return Status::failed("'" + adapter.weight +
                            "' with its adapter: "
                            "expected finite numbers, but got one that is not");
  const auto &entry = files.entries().at(adapter.weight);
  io::Cast rounds;
  rounds.rounds = true;
  return io::castArray(
      {DType::F64, entry.shape, std::as_bytes(std::span(*weight))}, entry.dtype,
      rounds);
}

/// What "ema:NAME" is of; of other names these.
std::string_view afterColon(std::string_view name) {
  size_t colon = name.rfind(':');
  return colon == name.npos ? name : name.substr(colon + 1);
}

/// True for the name of a state that an optimizer makes: a number of its own,
/// or what it has for a parameter.
bool isOptimizers(std::string_view name, const TensorFiles::Entry &entry) {
  if (!entry.shape.empty() && name.find(':') == name.npos)
    return false;
  std::string_view owner = name.substr(0, name.find('.'));
  return std::any_of(optimizerKinds().begin(), optimizerKinds().end(),
                     [&](const OptimizerKind &kind) {
                       return kind.name == llvm::StringRef(owner);
                     });
}

/// True for the name of an average of this kind, or of a number that goes with
/// one.
bool isOf(const commands::AverageKind &kind, std::string_view name) {
  std::string_view before = name.substr(0, name.find(':'));
  if (before.size() == name.size())
    return false;
  for (std::string_view variable : {"", "_count", "_updates"})
    if (before == std::string(kind.name).append(variable))
      return true;
  return name.starts_with(kind.state) || name.starts_with(kind.count);
}

bool isAverage(std::string_view name) {
  return std::ranges::any_of(
      commands::averageKinds,
      [&](const commands::AverageKind &kind) { return isOf(kind, name); });
}

/// Says that averages are not folded: the sum of a weight and a product of
/// averages is no average of the sums. Those of what was trained beside the
/// adapters would be mixed with it.
void noteAverages(const TensorFiles &files) {
  for (const commands::AverageKind &kind : commands::averageKinds) {
    if (std::ranges::any_of(files.entries(), [&](const auto &one) {
          return isOf(kind, one.first);
        }))
      commands::note("averages are left out (" + std::string(kind.option) +
                     "): the parameters are folded, as they are after the last "
                     "step; '--average=" +
                     std::string(kind.name) +
                     "' takes the averages of the checkpoint that is merged");
  }
}

} // namespace

Status commands::foldAdapters(const TensorFiles &files,
                              const std::string &output) {
  auto adapters = adaptersOf(files);
  if (!adapters)
    return std::move(adapters).status();
  std::map<std::string, io::TensorType> types;
  for (const auto &[name, entry] : files.entries())
    if (!isOptimizers(name, entry) && !isAverage(name) &&
        !artifact::isAdapterName(afterColon(name)))
      types[name] = {entry.dtype, entry.shape};
  Status written = io::writeSafetensors(
      output, types, {},
      [&](const std::string &name, const io::TakeBytes &take) {
        auto adapter = adapters->find(name);
        auto array = adapter == adapters->end()
                         ? files.read(name)
                         : folded(files, adapter->second);
        return array ? take(array->bytes) : std::move(array).status();
      });
  if (written)
    noteAverages(files);
  return written;
}

Status commands::extractAdapters(const TensorFiles &files,
                                 const std::string &output) {
  auto adapters = adaptersOf(files);
  if (!adapters)
    return std::move(adapters).status();
  auto whole = trainedWhole(files);
  if (!whole)
    return std::move(whole).status();
  const std::string prefix = "base_model.model.";
  std::map<std::string, io::TensorType> types;
  nlohmann::ordered_json config = {
      {"peft_type", "LORA"}, {"bias", "none"}, {"lora_dropout", 0.0}};
  config["target_modules"] = nlohmann::json::array();
  auto first = adapters->begin()->second;
  for (const auto &[weight, adapter] : *adapters) {
    for (const std::string &name : {adapter.a, adapter.b}) {
      const auto &entry = files.entries().at(name);
      types[prefix + name] = {entry.dtype, entry.shape};
    }
    if (adapter.rank != first.rank || adapter.scale != first.scale ||
        adapter.fanInFanOut != first.fanInFanOut)
      return Status::failed("the adapters of '" + first.weight + "' and '" +
                            weight +
                            "' differ in rank, scale or layout, which "
                            "one adapter_config.json does not say");
    std::string module = weight;
    if (module.ends_with(".weight"))
      module.resize(module.size() - 7);
    config["target_modules"].push_back(module);
  }
  for (const std::string &name : *whole) {
    const auto &entry = files.entries().at(name);
    types[prefix + name] = {entry.dtype, entry.shape};
    // A module is saved as a whole: its weight and its bias are one entry.
    std::string module = name.substr(0, name.rfind('.'));
    auto &modules = config["modules_to_save"];
    if (std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.push_back(module);
  }
  config["r"] = first.rank;
  // The scale is a number of f32.
  config["lora_alpha"] =
      std::round(first.scale * double(first.rank) * 1e5) / 1e5;
  config["fan_in_fan_out"] = first.fanInFanOut;
  Status status = io::writeSafetensors(
      output, types, {{"format", "pt"}},
      [&](const std::string &name, const io::TakeBytes &take) {
        auto array = files.read(name.substr(prefix.size()));
        return array ? take(array->bytes) : std::move(array).status();
      });
  if (status)
    std::printf("%s\n", config.dump(2).c_str());
  return status;
}
