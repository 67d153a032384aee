//===- InitFrom.cpp - what fits of a file (`train --init-from`) -----------===//
#include "tools/commands/Checkpoint.h"

#include "runtime/checkpoint/Variables.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Tensors.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <set>

namespace tandem::commands {

using artifact::Manifest;
using artifact::Value;
using io::TensorFiles;

namespace {

/// What became of a tensor that models want or a file has: a line each, of its
/// kind and its name.
enum class Fit : char {
  Taken = 't', ///< behind a tab how it was converted
  Missing = 'm',
  Shaped = 's', ///< behind a tab what is expected and got
  Known = 'k'   ///< of the file, known to a model
};

/// Gives a model what fits, and adds a line for each tensor.
Status loadWhatFits(runtime::Model &model, const TensorFiles &files,
                    std::string &lines) {
  const Manifest &manifest = model.manifest();
  auto say = [&](Fit fit, const std::string &text) {
    lines += char(fit) + text + '\n';
  };
  for (const auto &[name, entry] : files.entries())
    if (manifest.findValue(name) || checkpoint::isFurtherName(manifest, name))
      say(Fit::Known, name);
  for (const Value &value : manifest.values) {
    if (!isOfModel(value, manifest))
      continue;
    auto name = checkpoint::nameIn(files, value);
    if (!name)
      return std::move(name).status();
    auto found = files.entries().find(*name);
    if (found == files.entries().end()) {
      say(Fit::Missing, value.name);
      continue;
    }
    checkpoint::Part part = checkpoint::ownPart(model, value);
    bool fits = found->second.shape == part.whole &&
                checkpoint::mayBecome(found->second.dtype, value.dtype);
    auto array = fits ? checkpoint::readPart(files, *name, part)
                      : Result<io::Array>(Status::usage(""));
    if (array && array->dtype != value.dtype)
      array = io::convertExactly(*array, value.dtype);
    if (!array && array.status().code() != Code::Usage)
      return std::move(array).status();
    if (!array) {
      say(Fit::Shaped,
          value.name + '\t' + " (expected " +
              runtime::describe(value.dtype, part.whole) + " but got " +
              runtime::describe(found->second.dtype, found->second.shape) +
              ")");
      continue;
    }
    auto tensor = io::toTensor(*array);
    if (!tensor)
      return std::move(tensor).status();
    if (Status status = model.set(value.name, *tensor); !status)
      return status;
    say(Fit::Taken,
        value.name +
            (found->second.dtype == value.dtype
                 ? ""
                 : "\t (" + std::string(spelling(found->second.dtype)) +
                       " to " + std::string(spelling(value.dtype)) + ")"));
  }
  return Status::success();
}

} // namespace

Result<std::string> loadWhatFits(std::span<runtime::Model> models,
                                 const std::string &path) {
  auto files = TensorFiles::open(path);
  if (!files)
    return std::move(files).status();
  std::string lines;
  for (runtime::Model &model : models)
    if (Status status = loadWhatFits(model, *files, lines); !status)
      return std::move(status).in(io::inQuotes(path));
  auto all = textsOfRanks(lines);
  if (!all)
    return std::move(all).status();
  // Several ranks have the same, and each counts once.
  Names missing, shaped, extra, widened;
  int64_t wanted = 0, taken = 0;
  std::set<std::string> seen;
  for (const std::string &text : *all)
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
      std::string line = text.substr(at, end - at);
      if (!seen.insert(line).second)
        continue;
      auto fit = Fit(line[0]);
      size_t tab = std::min(line.find('\t'), line.size());
      std::string name = line.substr(1, tab - 1);
      wanted += fit != Fit::Known;
      taken += fit == Fit::Taken;
      if (fit == Fit::Taken && tab < line.size())
        widened.add(name, line.substr(tab + 1));
      if (fit == Fit::Missing)
        missing.add(name);
      if (fit == Fit::Shaped)
        shaped.add(name, line.substr(std::min(tab + 1, line.size())));
    }
  // Those of an optimizer are called OPT.lr and OPT.m:PARAM.
  std::string optimizer;
  for (const auto &[name, entry] : files->entries())
    if (name.ends_with(".lr") && entry.shape.empty() &&
        name.find('.') == name.rfind('.'))
      optimizer = name.substr(0, name.size() - 2);
  for (const auto &[name, entry] : files->entries())
    if (!seen.contains(std::string(1, char(Fit::Known)) + name) &&
        (optimizer.empty() || !name.starts_with(optimizer)))
      extra.add(name);
  std::string text =
      io::inQuotes(path) + " gives " + std::to_string(taken) + " of " +
      std::to_string(wanted) + " parameters and states" +
      widened.after("; converted without loss: ") +
      missing.after("; missing: ") +
      shaped.after("; of another shape or type: ") + extra.after("; extra: ");
  if (taken == 0)
    return Status::usage("--init-from: expected something that fits, but " +
                         text);
  return text;
}

} // namespace tandem::commands
