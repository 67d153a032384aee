//===- GroupSpec.cpp - ".*bias|.*norm.*:weight_decay=0" -------------------===//
#include "passes/partition/GroupSpec.h"

#include "ir/UserText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace tandem;

bool GroupSpec::matches(StringRef param) const {
  return Regex("^(" + pattern + ")$").match(param);
}

/// Splits at the first colon that a key and '=' follow; false if there is none.
static bool split(StringRef text, StringRef &pattern, StringRef &list) {
  for (size_t i = text.find(':'); i != StringRef::npos;
       i = text.find(':', i + 1)) {
    StringRef after = text.drop_front(i + 1);
    StringRef key =
        after.take_while([](char c) { return isAlnum(c) || c == '_'; });
    if (key.empty() || !after.drop_front(key.size()).starts_with("="))
      continue;
    pattern = text.take_front(i);
    list = after;
    return true;
  }
  return false;
}

std::optional<GroupSpec> tandem::parseGroupSpec(StringRef text,
                                                const OptimizerSpec &optimizer,
                                                std::string &error) {
  StringRef pattern, list;
  if (!split(text, pattern, list)) {
    error = "expected REGEX:KEY=VALUE,..., as '.*bias:weight_decay=0', but got "
            "'" +
            text.str() + "'";
    return std::nullopt;
  }
  SmallVector<std::string> problems;
  GroupSpec group;
  group.pattern = pattern.str();
  group.spec = optimizer;
  if (std::string wrong; !isRegex(pattern, wrong))
    problems.push_back("expected a regular expression, but got '" +
                       group.pattern + "': " + wrong);
  constexpr StringLiteral schedule = "lr_schedule=";
  size_t begin =
      list.starts_with(schedule) ? 0 : list.find((Twine(",") + schedule).str());
  StringRef numbers = list.take_front(begin);
  if (begin != StringRef::npos) {
    StringRef spec = list.drop_front(begin);
    spec.consume_front(",");
    std::string wrong;
    group.schedule = parseScheduleSpec(spec.drop_front(schedule.size()), wrong);
    if (!group.schedule)
      problems.push_back("'lr_schedule': " + wrong);
  }
  SmallVector<StringRef> entries;
  if (!numbers.empty())
    numbers.split(entries, ',');
  for (StringRef entry : entries) {
    group.own.push_back(entry.split('=').first.str());
    group.hasRate |= group.own.back() == "lr";
  }
  readOptions(group.spec, entries, problems);
  if (problems.empty())
    return group;
  error = join(problems, "; ") + " (in '" + text.str() + "')";
  return std::nullopt;
}
