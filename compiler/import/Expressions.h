//===- Expressions.h - names that options say, and names in messages ------===//
#ifndef TANDEM_COMPILER_IMPORT_EXPRESSIONS_H
#define TANDEM_COMPILER_IMPORT_EXPRESSIONS_H

#include "runtime/artifact/NearestName.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// "a" and "b(c|d)" of "a|b(c|d)".
llvm::SmallVector<llvm::StringRef> alternativesOf(llvm::StringRef expression);

/// Whether the expression is there and matches a part of `name`.
bool matches(const std::string &expression, const std::string &name);

/// How many names a message lists.
inline constexpr size_t kMostNames = 12;

/// "'a', 'b' and 3 more", or "none".
template <typename List> std::string listed(const List &names) {
  std::string text;
  size_t count = 0;
  for (const std::string &name : names)
    if (count++ < kMostNames)
      text += (text.empty() ? "'" : ", '") + name + "'";
  if (count > kMostNames)
    text += " and " + std::to_string(count - kMostNames) + " more";
  return text.empty() ? "none" : text;
}

/// " (did you mean 'weight'?)" if one of `names` is much like `name`.
template <typename List>
std::string suggestion(llvm::StringRef name, const List &names) {
  std::vector<std::string_view> known(names.begin(), names.end());
  return didYouMean(name, known);
}

} // namespace tandem

#endif
