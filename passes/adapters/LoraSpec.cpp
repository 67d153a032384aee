//===- LoraSpec.cpp - ".*attn.*:rank=8,alpha=16" --------------------------===//
#include "passes/adapters/LoraSpec.h"
#include "ir/Nearest.h"
#include "ir/UserText.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;
using namespace tandem;

/// The options. An expression may have commas: what begins with no option's
/// name behind one belongs to it.
static SmallVector<StringRef> entriesOf(StringRef list) {
  constexpr StringLiteral wholeKey = "modules_to_save=";
  SmallVector<StringRef> entries;
  while (!list.empty()) {
    size_t end = list.find(',');
    if (list.starts_with(wholeKey))
      for (; end != StringRef::npos; end = list.find(',', end + 1)) {
        StringRef next = list.substr(end + 1);
        if (next.starts_with("rank=") || next.starts_with("alpha=") ||
            next.starts_with(wholeKey))
          break;
      }
    entries.push_back(list.take_front(end));
    list = end == StringRef::npos ? StringRef() : list.substr(end + 1);
  }
  return entries;
}

std::optional<LoraSpec> tandem::parseLoraSpec(StringRef text,
                                              std::string &error) {
  auto [weights, list] = text.rsplit(':');
  LoraSpec spec;
  spec.weights = weights.str();
  std::string form = "expected REGEX:rank=N[,alpha=X][,modules_to_save=REGEX], "
                     "but got '" +
                     text.str() + "'";
  if (weights.empty() || weights.size() == text.size()) {
    error = form;
    return std::nullopt;
  }
  constexpr StringLiteral wholeKey = "modules_to_save";
  SmallVector<StringRef> entries = entriesOf(list);
  auto *whole = find_if(entries, [&](StringRef entry) {
    return entry.split('=').first == wholeKey;
  });
  if (whole != entries.end()) {
    spec.whole = whole->split('=').second.str();
    if (spec.whole.empty()) {
      error = form;
      return std::nullopt;
    }
    entries.erase(whole);
  }
  for (StringRef expression : {weights, StringRef(spec.whole)})
    if (std::string wrong; !expression.empty() && !isRegex(expression, wrong)) {
      error = "expected a regular expression, but got '" + expression.str() +
              "': " + wrong;
      return std::nullopt;
    }
  bool hasRank = false, hasAlpha = false;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    bool &given = key == "rank" ? hasRank : hasAlpha;
    if (key == wholeKey) {
      error = "option '" + key.str() + "' is given twice";
      return std::nullopt;
    }
    if (key != "rank" && key != "alpha") {
      error = "unknown option '" + key.str() + "'" +
              didYouMean(key, {"rank", "alpha", "modules_to_save"}) +
              "; known are 'rank', 'alpha', 'modules_to_save'";
      return std::nullopt;
    }
    if (given) {
      error = "option '" + key.str() + "' is given twice";
      return std::nullopt;
    }
    given = true;
    bool isGood = key == "rank" ? !number.getAsInteger(10, spec.rank) &&
                                      spec.rank >= 1 && spec.rank <= 65536
                                : number.find_first_not_of("0123456789.eE+-") ==
                                          StringRef::npos &&
                                      !number.getAsDouble(spec.alpha) &&
                                      spec.alpha >= 1e-6 && spec.alpha <= 1e6;
    if (!isGood) {
      error = (key == "rank" ? "expected rank to be from 1 to 65536, but got '"
                             : "expected alpha to be from 1e-6 to 1e6, but "
                               "got '") +
              number.str() + "'";
      return std::nullopt;
    }
  }
  if (!hasRank) {
    error = form;
    return std::nullopt;
  }
  if (!hasAlpha)
    spec.alpha = double(spec.rank);
  return spec;
}
