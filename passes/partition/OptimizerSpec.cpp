//===- OptimizerSpec.cpp - "adamw:lr=1e-3,weight_decay=0.1" ---------------===//
#include "passes/partition/OptimizerSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace tandem;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The greatest number below 1: a decay of 1 would never forget its start.
static constexpr double kBelowOne = 1.0 - 0x1p-53;

// The defaults are those of torch.optim.SGD, Adam and AdamW; 'momentum' is SGD
// with the momentum that is usual.
static const OptimizerOption kSgd[] = {{"lr", 1e-3, 0, kInfinity},
                                       {"weight_decay", 0, 0, kInfinity}};
static const OptimizerOption kMomentum[] = {{"lr", 1e-3, 0, kInfinity},
                                            {"momentum", 0.9, 0, kInfinity},
                                            {"dampening", 0, 0, kInfinity},
                                            {"weight_decay", 0, 0, kInfinity},
                                            {"nesterov", 0, 0, 1}};
static const OptimizerOption kAdam[] = {{"lr", 1e-3, 0, kInfinity},
                                        {"beta1", 0.9, 0, kBelowOne},
                                        {"beta2", 0.999, 0, kBelowOne},
                                        {"eps", 1e-8, 0, kInfinity},
                                        {"weight_decay", 0, 0, kInfinity}};
static const OptimizerOption kAdamW[] = {{"lr", 1e-3, 0, kInfinity},
                                         {"beta1", 0.9, 0, kBelowOne},
                                         {"beta2", 0.999, 0, kBelowOne},
                                         {"eps", 1e-8, 0, kInfinity},
                                         {"weight_decay", 1e-2, 0, kInfinity}};
static const OptimizerKind kKinds[] = {
    {"sgd", kSgd}, {"momentum", kMomentum}, {"adam", kAdam}, {"adamw", kAdamW}};

ArrayRef<OptimizerKind> tandem::optimizerKinds() { return kKinds; }

template <typename Range> static std::string namesOf(const Range &range) {
  SmallVector<StringRef> names;
  for (const auto &entry : range)
    names.push_back(entry.name);
  return "'" + join(names, "', '") + "'";
}

std::optional<OptimizerSpec> tandem::parseOptimizerSpec(StringRef text,
                                                        std::string &error) {
  auto [name, list] = text.split(':');
  OptimizerSpec spec;
  const auto *kind =
      find_if(kKinds, [&](const OptimizerKind &k) { return k.name == name; });
  if (kind == std::end(kKinds)) {
    error =
        "unknown optimizer '" + name.str() + "'; known are " + namesOf(kKinds);
    return std::nullopt;
  }
  spec.kind = kind;
  for (const OptimizerOption &option : kind->options)
    spec.values[option.name] = option.value;

  SmallVector<std::string> problems;
  SmallVector<StringRef> entries, seen;
  if (text.contains(':'))
    list.split(entries, ',');
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    const auto *option = find_if(
        kind->options, [&](const OptimizerOption &o) { return o.name == key; });
    if (option == kind->options.end()) {
      problems.push_back("unknown option '" + key.str() + "' of optimizer '" +
                         name.str() + "'; known are " + namesOf(kind->options));
      continue;
    }
    if (is_contained(seen, key))
      problems.push_back("option '" + key.str() + "' is given twice");
    seen.push_back(key);
    double value;
    bool isBool = option->name == "nesterov";
    if (isBool && (number == "true" || number == "false")) {
      value = number == "true";
    } else if (number.getAsDouble(value) || !std::isfinite(value) ||
               (isBool && value != 0 && value != 1)) {
      problems.push_back("expected option '" + key.str() + "' to be " +
                         (isBool ? "true or false" : "a number") +
                         " but got '" + number.str() + "'");
      continue;
    }
    if (value < option->least || value > option->most)
      problems.push_back("expected option '" + key.str() +
                         "' to be at least 0" +
                         (option->most == kBelowOne ? " and below 1" : "") +
                         " but got '" + number.str() + "'");
    spec.values[key] = value;
  }
  if (spec.values.lookup("nesterov") != 0 &&
      (spec.values.lookup("momentum") == 0 ||
       spec.values.lookup("dampening") != 0))
    problems.push_back("option 'nesterov' needs a momentum above 0 and no "
                       "dampening");
  if (problems.empty())
    return spec;
  error = join(problems, "; ");
  return std::nullopt;
}
