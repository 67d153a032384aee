//===- UserText.cpp - what a user gives to LLVM's parsers -----------------===//
#include "ir/UserText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"

#include <algorithm>

using namespace llvm;

namespace tandem {
namespace {

constexpr size_t mostLevels = 100;
constexpr double mostCharacters = 10'000;

/// Returns how many characters the expression has with `x{m,n}` written n
/// times; none if it has too many levels. Not exact in a bracket list, which
/// counts as its characters.
std::optional<double> lengthWrittenOut(StringRef text) {
  SmallVector<double> levels = {0}; // the length of each open group
  double last = 0;                  // of what a repeat would repeat
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') {
      if (levels.size() > mostLevels)
        return std::nullopt;
      levels.push_back(0);
    } else if (text[i] == ')' && levels.size() > 1) {
      last = levels.pop_back_val() + 2;
      levels.back() += last;
    } else if (text[i] == '{' && i + 1 < text.size() && isDigit(text[i + 1])) {
      StringRef range =
          text.substr(i + 1).take_until([](char c) { return c == '}'; });
      unsigned least = 0, most = 0;
      StringRef rest = range;
      rest.consumeInteger(10, least);
      if (rest.consume_front(","))
        rest.consumeInteger(10, most);
      double times = std::max({least, most, 1u});
      levels.back() += last * (times - 1);
      last *= times;
      i += range.size() + 1;
    } else {
      i += text[i] == '\\';
      last = 1;
      levels.back() += 1;
    }
  }
  double all = 0;
  for (double length : levels)
    all += length;
  return all;
}

/// True if lists and objects are open inside of more others.
bool isTooDeep(StringRef json) {
  size_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if ((c == '[' || c == '{') && ++depth > mostLevels) {
      return true;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;
    }
  }
  return false;
}

/// The first key that an object of a right text has twice, as it is written.
StringRef keyTwice(StringRef json) {
  SmallVector<StringSet<>> objects; // and lists, which stay empty
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (c == '[' || c == '{') {
      objects.emplace_back();
    } else if (c == ']' || c == '}') {
      objects.pop_back();
    } else if (c == '"') {
      size_t begin = i;
      for (++i; json[i] != '"'; ++i)
        i += json[i] == '\\';
      StringRef key = json.slice(begin, i + 1);
      if (!json.drop_front(i + 1).ltrim().starts_with(":"))
        continue;
      // "a" and "\u0061" are one.
      Expected<json::Value> text = json::parse(key);
      if (!objects.back().insert(*text->getAsString()).second)
        return key;
    }
  }
  return {};
}

} // namespace

bool isRegex(StringRef text, std::string &error) {
  std::optional<double> length = lengthWrittenOut(text);
  if (!length) {
    error = "more than " + std::to_string(mostLevels) +
            " parentheses inside of each other";
    return false;
  }
  if (*length > mostCharacters) {
    error = "with its repeats written out it has more than " +
            std::to_string(int(mostCharacters)) + " characters";
    return false;
  }
  return Regex(text).isValid(error);
}

Expected<json::Value> parseUserJson(StringRef text) {
  if (isTooDeep(text))
    return createStringError("lists and objects are nested more than " +
                             std::to_string(mostLevels) + " deep");
  Expected<json::Value> parsed = json::parse(text);
  if (parsed)
    if (StringRef key = keyTwice(text); !key.empty())
      return createStringError("the key " + key + " stands twice in an object");
  return parsed;
}

} // namespace tandem
