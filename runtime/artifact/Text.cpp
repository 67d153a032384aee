//===- Text.cpp - text of files and users in messages ---------------------===//
//
// See Text.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Text.h"

#include <algorithm>

namespace tandem::artifact {

namespace {

bool isControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

void append(std::string &text, char c, bool isKept) {
  constexpr char hex[] = "0123456789abcdef";
  if (isKept)
    text += c;
  else
    text += {'\\', 'x', hex[(c >> 4) & 15], hex[c & 15]};
}

} // namespace

bool hasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), isControl);
}

std::string printable(std::string_view text) {
  std::string result;
  for (char c : text)
    append(result, c, c >= 0x20 && c < 0x7f);
  return result;
}

std::string inQuotes(std::string_view text) {
  constexpr size_t longest = 120;
  return "'" + printable(text.substr(0, longest)) +
         (text.size() > longest ? "...'" : "'");
}

std::string forScreen(std::string_view text) {
  std::string result;
  for (char c : text)
    append(result, c, !isControl(c) || c == '\n' || c == '\t');
  return result;
}

} // namespace tandem::artifact
