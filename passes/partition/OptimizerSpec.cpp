//===- OptimizerSpec.cpp - "adamw:lr=1e-3,weight_decay=0.1" ---------------===//
#include "passes/partition/OptimizerSpec.h"
#include "ir/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace tandem;

// Numbers are computed with in f32, whatever the model's type is: what is
// smaller than its least normal number is 0 there.
static constexpr double kTiny = std::numeric_limits<float>::min();
/// Beyond it nothing trains: a gradient of f32's precision beside a parameter
/// of 1 moves that by more than a tenth.
static constexpr double kMost = 1e6;
/// The greatest number below 1 of f32: a decay of 1 would never forget its
/// start, and Adam would divide by 0.
static constexpr double kBelowOne = 1.0 - 0x1p-24;

// The defaults are those of torch.optim.SGD, Adam and AdamW; 'momentum' is SGD
// with the momentum that is usual. A rate of 0 is for experiments: states move,
// parameters do not.
static constexpr OptimizerOption kRate = {"lr",  1e-3, kTiny,
                                          kMost, true, "learning rate"};
static constexpr OptimizerOption kBeta1 = {
    "beta1", 0.9, kTiny, kBelowOne, true, "decay of the mean of gradients"};
static constexpr OptimizerOption kBeta2 = {
    "beta2", 0.999, kTiny, kBelowOne, true, "decay of the mean of squares"};
static constexpr OptimizerOption kEps = {"eps", 1e-8,  kTiny,
                                         kMost, false, "added to the divisor"};
static constexpr OptimizerOption weightDecay(double value) {
  return {"weight_decay", value, kTiny, kMost, true, "pull towards 0"};
}

static const OptimizerOption kSgd[] = {kRate, weightDecay(0)};
static const OptimizerOption kMomentum[] = {
    kRate,
    {"momentum", 0.9, kTiny, kBelowOne, true, "decay of the velocity"},
    {"dampening", 0, kTiny, 1, true,
     "part of the gradient that is left out, in the first step too, unlike in "
     "PyTorch"},
    weightDecay(0),
    {"nesterov", 0, 1, 1, true, "look ahead"}};
static const OptimizerOption kAdam[] = {kRate, kBeta1, kBeta2, kEps,
                                        weightDecay(0)};
static const OptimizerOption kAdamW[] = {kRate, kBeta1, kBeta2, kEps,
                                         weightDecay(1e-2)};
static const OptimizerKind kKinds[] = {
    {"sgd", kSgd, "p -= lr * (g + weight_decay * p)"},
    {"momentum", kMomentum,
     "v = momentum * v + (1 - dampening) * (g + weight_decay * p), p -= lr * "
     "v"},
    {"adam", kAdam, "Adam of g + weight_decay * p"},
    {"adamw", kAdamW, "Adam of g, and p -= lr * weight_decay * p beside it"}};

ArrayRef<OptimizerKind> tandem::optimizerKinds() { return kKinds; }

template <typename Range>
static SmallVector<StringRef> namesOf(const Range &range) {
  SmallVector<StringRef> names;
  for (const auto &entry : range)
    names.push_back(entry.name);
  return names;
}

/// "'NAME' (did you mean 'NEAREST'?); known are ..."
template <typename Range>
static std::string unknown(StringRef name, StringRef of, const Range &known) {
  SmallVector<StringRef> names = namesOf(known);
  return ("'" + name + "'" + of + didYouMean(name, names) + "; known are '" +
          join(names, "', '") + "'")
      .str();
}

std::string tandem::rangeOf(const OptimizerOption &option) {
  if (option.name == "nesterov")
    return "true or false";
  std::string text;
  raw_string_ostream out(text);
  out << (option.orZero ? "0, or " : "") << format("from %.3g", option.least);
  if (option.most == kBelowOne)
    out << " and below 1";
  else
    out << format(" to %.3g", option.most);
  return text;
}

/// Reads the value of an option; fails with what was expected.
static std::optional<double> readValue(const OptimizerOption &option,
                                       StringRef text) {
  if (option.name == "nesterov")
    return text == "true" || text == "false" ? std::optional(text == "true")
                                             : std::nullopt;
  // getAsDouble takes hexadecimal numbers too, which 'train --lr' does not.
  double value;
  if (text.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      text.getAsDouble(value) || std::isnan(value))
    return std::nullopt;
  bool isInRange = (option.orZero && value == 0) ||
                   (value >= option.least && value <= option.most);
  return isInRange ? std::optional(value) : std::nullopt;
}

/// "; optimizer 'momentum' has it", where one has an option of this name.
static std::string ownersOf(StringRef option) {
  SmallVector<StringRef> owners;
  for (const OptimizerKind &kind : kKinds)
    if (is_contained(namesOf(kind.options), option))
      owners.push_back(kind.name);
  if (owners.empty())
    return "";
  bool isOne = owners.size() == 1;
  return (isOne ? "; optimizer '" : "; optimizers '") +
         join(owners, "' and '") + (isOne ? "' has it" : "' have it");
}

/// What is wrong with values that are right by themselves.
static void checkTogether(const OptimizerSpec &spec,
                          SmallVectorImpl<std::string> &problems) {
  if (spec.values.lookup("nesterov") != 0 &&
      (spec.values.lookup("momentum") == 0 ||
       spec.values.lookup("dampening") != 0))
    problems.push_back("option 'nesterov' needs a momentum above 0 and no "
                       "dampening");
  double decay = spec.values.lookup("lr") * spec.values.lookup("weight_decay");
  if (spec.kind->name != "adam" && decay > 1)
    problems.push_back("expected 'lr' times 'weight_decay' to be at most 1, "
                       "since each step takes that part of a parameter off, "
                       "but got " +
                       formatv("{0}", decay).str());
}

/// Reads the options of an optimizer; `problems` gets all that is wrong.
static OptimizerSpec readOptions(const OptimizerKind &kind,
                                 ArrayRef<StringRef> entries,
                                 SmallVectorImpl<std::string> &problems) {
  OptimizerSpec spec;
  spec.kind = &kind;
  for (const OptimizerOption &option : kind.options)
    spec.values[option.name] = option.value;
  SmallVector<StringRef> seen;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    const auto *option = find_if(
        kind.options, [&](const OptimizerOption &o) { return o.name == key; });
    if (option == kind.options.end()) {
      problems.push_back("unknown option " +
                         unknown(key,
                                 (" of optimizer '" + kind.name + "'").str(),
                                 kind.options) +
                         ownersOf(key));
      continue;
    }
    if (is_contained(seen, key))
      problems.push_back("option '" + key.str() + "' is given twice");
    seen.push_back(key);
    if (auto value = readValue(*option, number))
      spec.values[key] = *value;
    else
      problems.push_back("expected option '" + key.str() + "' to be " +
                         rangeOf(*option) + " but got '" + number.str() + "'");
  }
  if (problems.empty())
    checkTogether(spec, problems);
  return spec;
}

std::optional<OptimizerSpec> tandem::parseOptimizerSpec(StringRef text,
                                                        std::string &error) {
  auto [name, list] = text.split(':');
  const auto *kind =
      find_if(kKinds, [&](const OptimizerKind &k) { return k.name == name; });
  if (kind == std::end(kKinds)) {
    error = "unknown optimizer " + unknown(name, "", kKinds);
    return std::nullopt;
  }
  SmallVector<StringRef> entries;
  if (text.contains(':'))
    list.split(entries, ',');
  SmallVector<std::string> problems;
  OptimizerSpec spec = readOptions(*kind, entries, problems);
  if (problems.empty())
    return spec;
  error = join(problems, "; ");
  // Options of another optimizer: the list is right of that one, perhaps.
  SmallVector<StringRef> own = namesOf(kind->options), others;
  bool isOwn = all_of(entries, [&](StringRef entry) {
    return is_contained(own, entry.split('=').first);
  });
  for (const OptimizerKind &other : kKinds) {
    SmallVector<std::string> wrong;
    (void)readOptions(other, entries, wrong);
    if (!isOwn && wrong.empty())
      others.push_back(other.name);
  }
  if (others.size() == 1)
    error += ("; that is --optimizer=" + others[0] + ":" + list).str();
  return std::nullopt;
}
