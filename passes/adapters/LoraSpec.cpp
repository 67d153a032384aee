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
  if (weights.empty() || weights.size() == text.size()) {
    error = "expected REGEX:rank=N[,alpha=X], but got '" + text.str() + "'";
    return std::nullopt;
  }
  if (std::string wrong; !isRegex(weights, wrong)) {
    error = "expected a regular expression, but got '" + weights.str() +
            "': " + wrong;
    return std::nullopt;
  }
  SmallVector<StringRef> entries;
  list.split(entries, ',');
  bool hasRank = false, hasAlpha = false;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    bool &given = key == "rank" ? hasRank : hasAlpha;
    if (key != "rank" && key != "alpha") {
      error = "unknown option '" + key.str() + "'" +
              didYouMean(key, {"rank", "alpha"}) +
              "; known are 'rank', 'alpha'";
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
    error = "expected REGEX:rank=N[,alpha=X], but got '" + text.str() + "'";
    return std::nullopt;
  }
  if (!hasAlpha)
    spec.alpha = double(spec.rank);
  return spec;
}
