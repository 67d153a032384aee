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

using Form = OptimizerOption::Form;

std::string tandem::rangeOf(const OptimizerOption &option) {
  if (option.form == Form::Flag)
    return "true or false";
  if (option.form == Form::Anneal)
    return join(ArrayRef<StringLiteral>(kAnneals), " or ");
  std::string text;
  raw_string_ostream out(text);
  out << (option.orZero ? "0, or " : "")
      << (option.form == Form::Integer ? "an integer " : "")
      << format("from %.3g", option.least);
  if (option.most == kBelowOne)
    out << " and below 1";
  else
    out << format(" to %.3g", option.most);
  return text;
}

std::string tandem::valueText(const OptimizerOption &option) {
  if (std::isnan(option.value))
    return "";
  if (option.form == Form::Flag)
    return option.value != 0 ? "true" : "false";
  if (option.form == Form::Anneal)
    return kAnneals[static_cast<size_t>(option.value)].str();
  std::string text;
  raw_string_ostream(text) << format("%g", option.value);
  return text;
}

/// Reads the value of an option; fails with what was expected.
static std::optional<double> readValue(const OptimizerOption &option,
                                       StringRef text) {
  if (option.form == Form::Flag)
    return text == "true" || text == "false" ? std::optional(text == "true")
                                             : std::nullopt;
  if (option.form == Form::Anneal) {
    const auto *found = find(kAnneals, text);
    return found == std::end(kAnneals)
               ? std::nullopt
               : std::optional<double>(found - std::begin(kAnneals));
  }
  // getAsDouble takes hexadecimal numbers too, which 'train --lr' does not.
  double value;
  if (text.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      text.getAsDouble(value) || std::isnan(value) ||
      (option.form == Form::Integer && value != std::floor(value)))
    return std::nullopt;
  bool isInRange = (option.orZero && value == 0) ||
                   (value >= option.least && value <= option.most);
  return isInRange ? std::optional(value) : std::nullopt;
}

/// "; optimizer 'momentum' has it", where one has an option of this name.
static std::string ownersOf(StringRef option) {
  SmallVector<StringRef> owners;
  for (const OptimizerKind &kind : optimizerKinds())
    if (is_contained(namesOf(kind.options), option))
      owners.push_back(kind.name);
  if (owners.empty())
    return "";
  bool isOne = owners.size() == 1;
  return (isOne ? "; optimizer '" : "; optimizers '") +
         join(ArrayRef(owners).drop_back(isOne ? 0 : 1), "', '") +
         (isOne ? "" : "' and '" + owners.back().str()) +
         (isOne ? "' has it" : "' have it");
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
  if ((spec.kind->takesPart || spec.values.lookup("decoupled") != 0) &&
      decay > 1)
    problems.push_back("expected 'lr' times 'weight_decay' to be at most 1, "
                       "since each step takes that part of a parameter off, "
                       "but got " +
                       formatv("{0}", decay).str());
}

void tandem::readNumbers(const std::string &of,
                         ArrayRef<OptimizerOption> options,
                         ArrayRef<StringRef> entries, StringMap<double> &values,
                         SmallVectorImpl<std::string> &problems,
                         std::string (*ownersOf)(StringRef key)) {
  SmallVector<StringRef> seen;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    const auto *option = find_if(
        options, [&](const OptimizerOption &o) { return o.name == key; });
    if (option == options.end()) {
      std::string problem = "unknown option " +
                            unknown(key, " of " + of, options) +
                            (ownersOf ? ownersOf(key) : "");
      if (!is_contained(problems, problem)) // once, however often it is given
        problems.push_back(std::move(problem));
      continue;
    }
    if (is_contained(seen, key))
      problems.push_back("option '" + key.str() + "' is given twice");
    seen.push_back(key);
    if (auto value = readValue(*option, number))
      values[key] = *value;
    else
      problems.push_back("expected option '" + key.str() + "' to be " +
                         rangeOf(*option) + " but got '" + number.str() + "'");
  }
}

void tandem::readOptions(OptimizerSpec &spec, ArrayRef<StringRef> entries,
                         SmallVectorImpl<std::string> &problems) {
  size_t before = problems.size();
  readNumbers(("optimizer '" + spec.kind->name + "'").str(), spec.kind->options,
              entries, spec.values, problems, ownersOf);
  if (problems.size() == before)
    checkTogether(spec, problems);
}

/// An optimizer with its defaults.
static OptimizerSpec defaultsOf(const OptimizerKind &kind) {
  OptimizerSpec spec;
  spec.kind = &kind;
  for (const OptimizerOption &option : kind.options)
    spec.values[option.name] = option.value;
  return spec;
}

std::optional<OptimizerSpec> tandem::parseOptimizerSpec(StringRef text,
                                                        std::string &error) {
  auto [name, list] = text.split(':');
  const auto *kind = find_if(
      optimizerKinds(), [&](const OptimizerKind &k) { return k.name == name; });
  if (kind == optimizerKinds().end()) {
    error = "unknown optimizer " + unknown(name, "", optimizerKinds());
    return std::nullopt;
  }
  SmallVector<StringRef> entries;
  if (text.contains(':'))
    list.split(entries, ',');
  SmallVector<std::string> problems;
  OptimizerSpec spec = defaultsOf(*kind);
  readOptions(spec, entries, problems);
  if (problems.empty())
    return spec;
  error = join(problems, "; ");
  // Options of another optimizer: the list is right of that one, perhaps.
  SmallVector<StringRef> own = namesOf(kind->options), others;
  bool isOwn = all_of(entries, [&](StringRef entry) {
    return is_contained(own, entry.split('=').first);
  });
  for (const OptimizerKind &other : optimizerKinds()) {
    SmallVector<std::string> wrong;
    OptimizerSpec as = defaultsOf(other);
    readOptions(as, entries, wrong);
    if (!isOwn && wrong.empty())
      others.push_back(other.name);
  }
  if (others.size() == 1)
    error += ("; that is --optimizer=" + others[0] + ":" + list).str();
  return std::nullopt;
}
