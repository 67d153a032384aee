//===- LossScaleSpec.cpp - "dynamic:init=65536" ---------------------------===//
#include "passes/partition/LossScaleSpec.h"
#include "ir/Nearest.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace tandem;

namespace {
struct Key {
  StringLiteral name;
  double LossScaleSpec::*value;
  double least, most;
  StringLiteral range;
};
} // namespace

static constexpr Key kKeys[] = {
    {"init", &LossScaleSpec::init, LossScaleSpec::kLeast, LossScaleSpec::kMost,
     "from 1.18e-38 to 8.5e+37"},
    {"growth", &LossScaleSpec::growth, 1, 1024, "from 1 to 1024"},
    {"backoff", &LossScaleSpec::backoff, 0x1p-24, 1, "from 5.97e-08 to 1"},
    {"interval", &LossScaleSpec::interval, 1, 1 << 24,
     "an integer from 1 to 16777216"}};

static std::string expected(const Key &key, StringRef text) {
  return ("expected '" + key.name + "' to be " + key.range + " but got '" +
          text + "'")
      .str();
}

static bool read(const Key &key, StringRef text, LossScaleSpec &spec) {
  double value = 0;
  if (text.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      text.getAsDouble(value) || !(value >= key.least && value <= key.most) ||
      (key.name == "interval" && value != std::floor(value)))
    return false;
  spec.*key.value = value;
  return true;
}

std::optional<LossScaleSpec> tandem::parseLossScaleSpec(StringRef text,
                                                        std::string &error) {
  LossScaleSpec spec;
  auto [name, list] = text.split(':');
  spec.isDynamic = name == "dynamic";
  if (!spec.isDynamic) {
    if (read(kKeys[0], text, spec))
      return spec;
    error = "expected 'dynamic' or a number from 1.18e-38 to 8.5e+37, but got "
            "'" +
            text.str() + "'";
    return std::nullopt;
  }
  SmallVector<StringRef> entries, names, seen;
  for (const Key &key : kKeys)
    names.push_back(key.name);
  if (text.contains(':'))
    list.split(entries, ',');
  SmallVector<std::string> problems;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    const Key *known =
        find_if(kKeys, [&](const Key &k) { return k.name == key; });
    if (known == std::end(kKeys))
      problems.push_back("unknown option '" + key.str() + "'" +
                         didYouMean(key, names) + "; known are '" +
                         join(names, "', '") + "'");
    else if (is_contained(seen, key))
      problems.push_back("option '" + key.str() + "' is given twice");
    else if (!read(*known, number, spec))
      problems.push_back(expected(*known, number));
    seen.push_back(key);
  }
  if (problems.empty())
    return spec;
  error = join(problems, "; ");
  return std::nullopt;
}
