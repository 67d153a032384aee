//===- ModuleFuzz.cpp - modules whose words are those of others -----------===//
//
// Bytes that are changed at random rarely make a module that parses. Here the
// input's bytes are decisions: which of some modules, at whatever phase, and
// which of its words become others of their kind (a type another type, an op
// another op, a number one that is hard to handle), everywhere or at one place,
// and which lines are gone, doubled or moved. Most of them parse; what verifies
// goes through the phases (DialectFuzz.h).
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/DialectFuzz.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

using namespace tandem;
using namespace tandem::fuzz;

namespace {

using Words = std::vector<std::string>;

/// What a word may be replaced by: words of the same kind.
char kindOf(const std::string &word) {
  unsigned char first = word.front();
  if (std::isdigit(first))
    return '0';
  if (word.starts_with("tensor<") || word.starts_with("!"))
    return 'T';
  if (word.starts_with("tandem."))
    return 'o';
  return std::isalpha(first) ? 'a' : char(first);
}

/// How long the word at `at` is: a whole type, a name, a number, a text, or one
/// character.
size_t lengthAt(const std::string &text, size_t at) {
  auto isNamed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  size_t end = at + 1;
  if (text.compare(at, 7, "tensor<") == 0) {
    int depth = 1;
    for (end = at + 7; end < text.size() && depth; ++end)
      depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    return end - at;
  }
  if (text[at] == '"') {
    while (end < text.size() && text[end] != '"' && text[end] != '\n')
      ++end;
    return std::min(end + 1, text.size()) - at;
  }
  bool isName = isNamed(text[at]) || text[at] == '%' || text[at] == '#' ||
                text[at] == '!' || text[at] == '@' || text[at] == '^';
  while (isName && end < text.size() && isNamed(text[end]))
    ++end;
  return end - at;
}

Words wordsOf(const std::string &text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    size_t length = lengthAt(text, at);
    words.push_back(text.substr(at, length));
    at += length;
  }
  return words;
}

struct Modules {
  std::vector<Words> all;
  std::map<char, Words> byKind;
};

const Modules &modules() {
  static const Modules known = [] {
    Modules made;
    for (const auto &entry : std::filesystem::directory_iterator(TANDEM_SEEDS))
      if (entry.path().extension() == ".mlir") {
        std::ifstream file(entry.path());
        std::string text((std::istreambuf_iterator<char>(file)), {});
        made.all.push_back(wordsOf(text));
      }
    // In an order that does not depend on the folder's.
    std::sort(made.all.begin(), made.all.end());
    for (const Words &words : made.all)
      for (const std::string &word : words)
        made.byKind[kindOf(word)].push_back(word);
    for (auto &[kind, words] : made.byKind) {
      std::sort(words.begin(), words.end());
      words.erase(std::unique(words.begin(), words.end()), words.end());
    }
    require(made.all.size() > 1);
    return made;
  }();
  return known;
}

const char *hardNumber(Decisions &next) {
  static constexpr const char *numbers[] = {
      "0", "1", "2",  "3",          "5",     "-1",
      "7", "8", "33", "2147483648", "65537", "9223372036854775807"};
  return next.oneOf(numbers);
}

/// Another word of the kind; of a type mostly the same with another number or
/// another type of elements.
std::string otherThan(const std::string &word, Decisions &next) {
  static constexpr std::array types = {"f32", "f64", "bf16", "f16",
                                       "i64", "i1",  "i32",  "ui8"};
  char kind = kindOf(word);
  if (kind == '0' && next.seldom(2))
    return hardNumber(next);
  if (kind == 'T' && !next.seldom(3)) {
    std::string other = word;
    size_t digits = other.find_first_of("0123456789");
    size_t x = other.rfind('x');
    if (next.seldom(2) && x != other.npos && other.back() == '>')
      return other.substr(0, x + 1) + next.oneOf(types) + ">";
    if (digits != other.npos) {
      size_t end = other.find_first_not_of("0123456789", digits);
      return other.replace(digits, end - digits, hardNumber(next));
    }
  }
  const Words &others = modules().byKind.at(kind);
  return others[next.below(others.size())];
}

/// The place of a line's first word, and that of the next line's.
std::pair<size_t, size_t> lineAt(const Words &words, size_t at) {
  size_t begin = at, end = at;
  while (begin > 0 && words[begin - 1] != "\n")
    --begin;
  while (end < words.size() && words[end] != "\n")
    ++end;
  return {begin, std::min(end + 1, words.size())};
}

void change(Words &words, Decisions &next) {
  size_t at = next.below(std::min<size_t>(words.size(), 65536));
  // Spaces and the like are of no interest.
  while (at + 1 < words.size() &&
         !std::isalnum(static_cast<unsigned char>(words[at].back())))
    ++at;
  auto place = words.begin() + ptrdiff_t(at);
  auto [begin, end] = lineAt(words, at);
  auto first = words.begin() + ptrdiff_t(begin),
       last = words.begin() + ptrdiff_t(end);
  switch (next.below(8)) {
  case 0:
  case 1:
  case 2:
    *place = otherThan(*place, next);
    return;
  case 3:
  case 4:
  case 5: {
    std::string old = *place, made = otherThan(old, next);
    std::replace(words.begin(), words.end(), old, made);
    return;
  }
  case 6: {
    Words line(first, last);
    if (next.seldom(2))
      words.erase(first, last);
    size_t to = next.below(words.size() + 1);
    to = to < words.size() ? lineAt(words, to).first : to;
    words.insert(words.begin() + ptrdiff_t(to), line.begin(), line.end());
    return;
  }
  default:
    words.erase(first, last);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Decisions next(std::span<const uint8_t>(data, size));
  CompileOptions options = optionsFrom(next);
  Words words = modules().all[next.below(modules().all.size())];
  size_t changes = 1 + (next.seldom(2) ? next.below(6) : 0);
  for (; changes && !words.empty(); --changes)
    change(words, next);
  std::string text;
  for (const std::string &word : words)
    text += word;
  compileText(text, options);
  return 0;
}
