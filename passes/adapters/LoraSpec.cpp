//===- LoraSpec.cpp - ".*attn.*:rank=8,alpha=16" --------------------------===//
#include "passes/adapters/LoraSpec.h"
#include "ir/Nearest.h"
#include "ir/UserText.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;
using namespace tandem;

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
  // The last one, since an expression may have commas.
  constexpr StringLiteral wholeKey = "modules_to_save=";
  size_t at =
      list.starts_with(wholeKey) ? 0 : list.find((Twine(",") + wholeKey).str());
  if (at != StringRef::npos) {
    size_t comma = at == 0 ? 0 : 1;
    spec.whole = list.substr(at + comma + wholeKey.size()).str();
    list = list.take_front(at);
    if (spec.whole.empty()) {
      error = form;
      return std::nullopt;
    }
  }
  for (StringRef expression : {weights, StringRef(spec.whole)})
    if (std::string wrong; !expression.empty() && !isRegex(expression, wrong)) {
      error = "expected a regular expression, but got '" + expression.str() +
              "': " + wrong;
      return std::nullopt;
    }
  SmallVector<StringRef> entries;
  if (!list.empty())
    list.split(entries, ',');
  bool hasRank = false, hasAlpha = false;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    bool &given = key == "rank" ? hasRank : hasAlpha;
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
