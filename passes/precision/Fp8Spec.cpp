//===- Fp8Spec.cpp - ".*attn.*:amax_history_len=16,margin=1" --------------===//
#include "passes/precision/Fp8Spec.h"
#include "ir/Nearest.h"
#include "ir/UserText.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;
using namespace tandem;

static constexpr StringLiteral kLength = "amax_history_len", kMargin = "margin";

std::optional<Fp8Spec> tandem::parseFp8Spec(StringRef text,
                                            std::string &error) {
  auto fail = [&](const Twine &what) {
    error = what.str();
    return std::nullopt;
  };
  // An expression may have colons; a list of keys has a sign of equality.
  auto [weights, list] = text.rsplit(':');
  bool hasList =
      weights.size() < text.size() && (list.empty() || list.contains('='));
  Fp8Spec spec;
  spec.weights = (hasList ? weights : text).str();
  if (spec.weights.empty() || (hasList && list.empty()))
    return fail("expected REGEX[:amax_history_len=N,margin=N], but got '" +
                text + "'");
  if (std::string wrong; !isRegex(spec.weights, wrong))
    return fail("expected a regular expression, but got '" + spec.weights +
                "': " + wrong);
  SmallVector<StringRef> entries;
  if (hasList)
    list.split(entries, ',');
  bool hasLength = false, hasMargin = false;
  for (StringRef entry : entries) {
    auto [key, number] = entry.split('=');
    if (key != kLength && key != kMargin)
      return fail("unknown option '" + key + "'" +
                  didYouMean(key, {kLength, kMargin}) +
                  "; known are 'amax_history_len', 'margin'");
    bool isLength = key == kLength;
    bool &given = isLength ? hasLength : hasMargin;
    int64_t &value = isLength ? spec.historyLength : spec.margin;
    int64_t least = isLength ? 1 : 0, most = isLength ? 65536 : 16;
    if (given)
      return fail("option '" + key + "' is given twice");
    given = true;
    if (number.getAsInteger(10, value) || value < least || value > most)
      return fail("expected " + key + " to be from " + Twine(least) + " to " +
                  Twine(most) + ", but got '" + number + "'");
  }
  return spec;
}
