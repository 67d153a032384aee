//===- Nearest.cpp - what somebody who misspelt a name meant --------------===//
#include "ir/Nearest.h"

using namespace llvm;
using namespace tandem;

StringRef tandem::nearestName(StringRef name, ArrayRef<StringRef> known) {
  StringRef nearest;
  // Two letters that changed places differ both.
  unsigned least = std::max<size_t>((name.size() + 2) / 3, 1) + 1;
  for (StringRef candidate : known) {
    unsigned distance = name.edit_distance_insensitive(
        candidate, /*AllowReplacements=*/true, /*MaxEditDistance=*/least);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string tandem::didYouMean(StringRef name, ArrayRef<StringRef> known) {
  StringRef nearest = nearestName(name, known);
  return nearest.empty() ? "" : " (did you mean '" + nearest.str() + "'?)";
}
