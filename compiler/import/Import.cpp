//===- Import.cpp - what importers are asked for, and what they give ------===//
#include "compiler/import/Import.h"
#include "compiler/import/Expressions.h"
#include "ir/UserText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace tandem;

bool tandem::isImported(std::string_view path) {
  SmallVector<StringRef> suffixes;
  StringRef(kImported).split(suffixes, '|');
  return any_of(suffixes,
                [&](StringRef suffix) { return path.ends_with(suffix); });
}

Status tandem::checkOptions(const ImportOptions &options) {
  std::vector<std::string> wrong;
  for (auto [name, expression] :
       {std::pair{"--freeze", &options.freeze}, {"--train", &options.train}}) {
    std::string error;
    if (!expression->empty() && !isRegex(*expression, error))
      wrong.push_back("expected " + std::string(name) +
                      " to be a regular expression, but got '" + *expression +
                      "': " + error);
  }
  return wrong.empty() ? Status::success() : Status::usage(join(wrong, "; "));
}

Status Import::status() const {
  if (problems.empty())
    return Status::success();
  std::string message;
  bool areUnsupported = true, isUsage = false;
  for (const ImportProblem &one : problems) {
    message += (message.empty() ? "" : "\n") + one.where + ": " + one.text;
    areUnsupported &= one.isUnsupported;
    isUsage |= one.isUsage;
  }
  return {isUsage          ? Code::Usage
          : areUnsupported ? Code::Unsupported
                           : Code::Failed,
          message};
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// The end of the bracket expression that begins at `i`.
static size_t endOfBracket(StringRef text, size_t i) {
  i += text.substr(i + 1).starts_with("^") ? 2 : 1;
  i += text.substr(i).starts_with("]") ? 1 : 0;
  for (; i < text.size() && text[i] != ']'; ++i)
    if (text.substr(i).starts_with("[:"))
      i = std::min(text.find(":]", i + 2), text.size() - 1) + 1;
  return i;
}

SmallVector<StringRef> tandem::alternativesOf(StringRef expression) {
  SmallVector<StringRef> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    if (c == '\\')
      ++i;
    else if (c == '[')
      i = endOfBracket(expression, i);
    else if (c == '(' || c == ')')
      depth += c == '(' ? 1 : -1;
    else if (c == '|' && depth == 0) {
      parts.push_back(expression.slice(begin, i));
      begin = i + 1;
    }
  }
  parts.push_back(expression.drop_front(begin));
  bool areExpressions =
      all_of(parts, [](StringRef part) { return Regex(part).isValid(); });
  return areExpressions ? parts : SmallVector<StringRef>{expression};
}

bool tandem::matches(const std::string &expression, const std::string &name) {
  return !expression.empty() && Regex(expression).match(name);
}
