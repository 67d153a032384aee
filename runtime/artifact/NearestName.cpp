//===- NearestName.cpp - which name was meant -----------------------------===//
#include "runtime/artifact/NearestName.h"

#include <algorithm>
#include <vector>

namespace tandem {
namespace {

/// Longer names are texts that went astray; comparing them takes long.
constexpr size_t longest = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

/// The distance of Damerau and Levenshtein (optimal string alignment), by rows.
/// A letter in another case counts half; the result is in halves.
size_t halfDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = 2 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      char x = a[i - 1], y = b[j - 1];
      size_t replaced = x == y ? 0 : lower(x) == lower(y) ? 1 : 2;
      row[j] = std::min({last[j] + 2, row[j - 1] + 2, last[j - 1] + replaced});
      if (i > 1 && j > 1 && lower(x) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(y))
        row[j] = std::min(row[j], before[j - 2] + 2);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

bool equalInAnyCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

} // namespace

std::string_view nearestName(std::string_view name,
                             std::span<const std::string_view> known) {
  if (name.size() > longest)
    return {};
  for (std::string_view one : known)
    if (equalInAnyCase(name, one))
      return one;
  std::string_view nearest;
  size_t least = 2 * std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view one : known) {
    size_t distance = one.size() > longest ? least : halfDistance(name, one);
    // Names of one letter are near to all.
    if (distance < least && distance < 2 * one.size()) {
      least = distance;
      nearest = one;
    }
  }
  return nearest;
}

std::string didYouMean(std::string_view name,
                       std::span<const std::string_view> known) {
  std::string_view nearest = nearestName(name, known);
  return nearest.empty() ? ""
                         : " (did you mean '" + std::string(nearest) + "'?)";
}

} // namespace tandem
