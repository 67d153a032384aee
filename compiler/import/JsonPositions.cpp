//===- JsonPositions.cpp - where objects stand in a JSON document ---------===//
#include "compiler/import/JsonPositions.h"

using namespace tandem;

JsonPositions::JsonPositions(std::string_view text) : text(text) {
  if (text.starts_with("\xef\xbb\xbf"))
    at = 3;
  value("");
  this->text = {};
}

JsonPositions::Position JsonPositions::of(const std::string &pointer) const {
  auto it = positions.find(pointer);
  return it == positions.end() ? Position() : it->second;
}

std::string JsonPositions::pointerAt(Position position) const {
  auto it = pointers.find(position);
  return it == pointers.end() ? "" : it->second;
}

void JsonPositions::next() {
  if (at == text.size())
    return;
  ++now.column;
  if (text[at++] == '\n')
    now = {now.line + 1, 1};
}

void JsonPositions::skip() {
  while (at < text.size() &&
         std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos)
    next();
}

/// The characters between quotes, as they are written.
std::string JsonPositions::string() {
  next();
  size_t begin = at;
  while (at < text.size() && text[at] != '"') {
    if (text[at] == '\\')
      next();
    next();
  }
  std::string inner(text.substr(begin, at - begin));
  next();
  return inner;
}

/// The nesting is that of a document that was parsed, so it has a bound.
void JsonPositions::value(const std::string &pointer) {
  skip();
  char open = peek();
  if (open == '"') {
    string();
    return;
  }
  if (open != '{' && open != '[') {
    while (at < text.size() && std::string_view(",]} \t\r\n").find(text[at]) ==
                                   std::string_view::npos)
      next();
    return;
  }
  if (open == '{') {
    positions.emplace(pointer, now);
    pointers.emplace(now, pointer);
  }
  char close = open == '{' ? '}' : ']';
  next();
  skip();
  for (size_t i = 0; at < text.size() && peek() != close; ++i) {
    std::string key = std::to_string(i);
    if (open == '{') {
      key = string();
      skip();
      next(); // the colon
    }
    value(pointer + "/" + key);
    skip();
    if (peek() == ',')
      next();
    skip();
  }
  next();
}
