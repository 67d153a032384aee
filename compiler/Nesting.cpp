//===- Nesting.cpp - how deep a module's text may nest --------------------===//
#include "compiler/Nesting.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace llvm;
using namespace tandem;

namespace {

class Scanner {
public:
  Scanner(StringRef text, StringRef path) : text(text), path(path) {}

  Status run() {
    if (text.starts_with("ML\xefR"))
      return Status::failed(path.str() +
                            ": expected MLIR as text, but got its bytecode");
    while (at < text.size() && problem.empty())
      step();
    if (problem.empty())
      return Status::success();
    StringRef before = text.take_front(where);
    size_t line = before.count('\n') + 1;
    size_t column = where - (before.rfind('\n') + 1) + 1; // npos + 1 is 0
    return Status::failed(path.str() + ":" + std::to_string(line) + ":" +
                          std::to_string(column) + ": " + problem);
  }

private:
  /// What an alias stands for.
  struct Alias {
    int depth = 0, size = 0;
  };

  static bool isNamed(char c) {
    return isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
  }

  char peek() const { return at + 1 < text.size() ? text[at + 1] : '\0'; }
  bool isArrow() const { return text[at] == '-' && peek() == '>'; }

  void step() {
    char c = text[at];
    // An op, which is no more part of what an alias stands for.
    if (depth == 0 && (isAlpha(c) || c == '"' || c == '%') && !isOpen())
      defined = nullptr;
    switch (c) {
    case '"':
      return skipString();
    case '/':
      if (peek() == '/') {
        at = std::min(text.find('\n', at), text.size());
        return;
      }
      break;
    case '<':
    case '>':
      // Comparisons of sets, and arrows.
      if (peek() == '=' || (c == '>' && at > 0 && text[at - 1] == '-'))
        break;
      enter(c == '<' ? 1 : -1);
      break;
    case '(':
    case '[':
      enter(1);
      break;
    case '{':
      operators = 0;
      enter(1);
      break;
    case ')':
    case ']':
      enter(-1);
      break;
    case '}':
      operators = 0;
      enter(-1);
      break;
    case ',':
    case '=':
    case ':':
      operators = 0;
      break;
    case '-':
      if (isArrow())
        break;
      [[fallthrough]];
    case '+':
    case '*':
      countOperator();
      break;
    case '#':
    case '!':
      return takeAlias();
    default:
      if (isAlpha(c))
        return takeWord();
    }
    if (!isSpace(c))
      last = c;
    ++at;
  }

  /// True where the text so far cannot be the end of what an alias stands for.
  bool isOpen() const {
    return last == '=' || last == ':' ||
           (last == '>' && text.take_front(at).rtrim().ends_with("->"));
  }

  void fail(size_t place, const std::string &what) {
    if (!problem.empty())
      return;
    problem = what;
    where = place;
  }

  void countOperator() {
    if (++operators > kMaxOperators)
      fail(at, "expected at most " + std::to_string(kMaxOperators) +
                   " operators in one expression");
  }

  void takeWord() {
    size_t begin = at;
    while (at < text.size() && isNamed(text[at]) && text[at] != '-')
      ++at;
    last = text[at - 1];
    StringRef word = text.slice(begin, at);
    if (word == "mod" || word == "floordiv" || word == "ceildiv")
      countOperator();
    // MLIR 22 takes an index for an element of one of its dense arrays, asks
    // for its width, and crashes.
    if (word == "array" && wordAfter('<') == "index")
      fail(begin, "expected an array of integers or floats, but got one of "
                  "'index'");
  }

  /// The word that follows `bracket`, if that is next.
  StringRef wordAfter(char bracket) const {
    StringRef rest = withoutBlanks(text.substr(at));
    if (!rest.consume_front(StringRef(&bracket, 1)))
      return "";
    return withoutBlanks(rest).take_while(isNamed);
  }

  /// `rest` after spaces and comments.
  static StringRef withoutBlanks(StringRef rest) {
    for (rest = rest.ltrim(); rest.starts_with("//"); rest = rest.ltrim())
      rest = rest.drop_until([](char c) { return c == '\n'; });
    return rest;
  }

  /// Strings end with their line.
  void skipString() {
    last = '"';
    for (++at; at < text.size() && text[at] != '\n'; ++at) {
      if (text[at] == '"') {
        ++at;
        return;
      }
      at += text[at] == '\\' && at + 1 < text.size();
    }
  }

  void enter(int by) {
    depth = std::max(depth + by, 0);
    if (by > 0)
      reach(at, depth, 1);
  }

  /// Notes that something at `place` lies as deep as that and has this size.
  void reach(size_t place, int to, int size) {
    if (to > kMaxNesting)
      fail(place, "expected at most " + std::to_string(kMaxNesting) +
                      " levels of brackets and aliases in one another");
    if (!defined)
      return;
    defined->depth = std::max(defined->depth, to);
    defined->size += size; // both below twice the limit
    if (defined->size > kMaxAliasSize)
      fail(place, "expected an alias that stands for at most " +
                      std::to_string(kMaxAliasSize) + " brackets and aliases");
  }

  /// "#name" or "!name": a use, or, in no bracket and before "=", a definition.
  void takeAlias() {
    size_t begin = at++;
    while (at < text.size() && isNamed(text[at]) && !isArrow())
      ++at;
    StringRef name = text.slice(begin, at);
    last = text[at - 1];
    StringRef rest = text.substr(at).ltrim();
    if (depth == 0 && rest.starts_with("=") && !rest.starts_with("==")) {
      defined = &aliases[name];
      *defined = Alias();
      return;
    }
    auto used = aliases.find(name);
    if (used != aliases.end() && &used->second != defined)
      reach(begin, depth + used->second.depth + 1, used->second.size + 1);
  }

  StringRef text, path;
  size_t at = 0;
  int depth = 0;
  int operators = 0;        ///< since a new expression can have begun
  char last = 0;            ///< no space
  StringMap<Alias> aliases; ///< entries keep their places
  Alias *defined = nullptr;
  std::string problem;
  size_t where = 0; ///< it stands
};

} // namespace

Status tandem::checkNesting(StringRef text, StringRef path) {
  return Scanner(text, path).run();
}
