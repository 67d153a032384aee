//===- OptionRules.cpp - what options say of each other -------------------===//
//
// Rules are declared with one of the options that they are about. They look at
// what was given, never at defaults or files.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Array.h"
#include "tools/commands/Options.h"

#include <algorithm>

namespace tandem::commands {

bool endsInOne(std::string_view name, std::string_view suffixes) {
  while (true) {
    size_t end = suffixes.find('|');
    if (name.ends_with(suffixes.substr(0, end)))
      return true;
    if (end == suffixes.npos)
      return false;
    suffixes.remove_prefix(end + 1);
  }
}

Option &Option::needs(std::string_view condition, std::string_view why) {
  rules.push_back({Rule::Kind::Needs, {condition}, why});
  return *this;
}

Option &Option::orNeeds(std::string_view condition) {
  for (Rule &rule : rules)
    if (rule.kind == Rule::Kind::Needs)
      rule.conditions.push_back(condition);
  return *this;
}

Option &Option::excludes(std::string_view condition, std::string_view why) {
  rules.push_back({Rule::Kind::Excludes, {condition}, why});
  return *this;
}

Option &Option::onlyWith(std::string_view name, std::string_view value) {
  rules.push_back({Rule::Kind::OnlyWith, {name, value}, {}});
  return *this;
}

Option &Option::onlyFor(std::string_view suffixes, std::string_view what) {
  rules.push_back({Rule::Kind::OnlyFor, {suffixes, what}, {}});
  return *this;
}

Option &Option::notFor(std::string_view suffixes, std::string_view what) {
  rules.push_back({Rule::Kind::NotFor, {suffixes, what}, {}});
  return *this;
}

bool Option::matches(std::string_view text, std::string_view wanted) const {
  return matches_ ? matches_(text, wanted) : text == wanted;
}

bool Option::fulfils(std::string_view wanted) const {
  if (!given || wanted.empty())
    return given;
  return std::any_of(values.begin(), values.end(), [&](std::string_view text) {
    return matches(text, wanted);
  });
}

void OptionTable::exactlyOneOf(std::initializer_list<std::string_view> names) {
  choices_.push_back({names, true});
}

void OptionTable::atLeastOneOf(std::initializer_list<std::string_view> names) {
  choices_.push_back({names, false});
}

namespace {

/// The option's name in a condition, and the value that it asks for.
std::pair<std::string_view, std::string_view>
partsOf(std::string_view condition) {
  size_t equals = condition.find('=');
  if (equals == std::string_view::npos)
    return {condition, {}};
  return {condition.substr(0, equals), condition.substr(equals + 1)};
}

std::string reason(std::string_view why) {
  return why.empty() ? "" : ": " + std::string(why);
}

/// Returns "a", "a or b", "a, b or c".
std::string listed(const std::vector<std::string> &texts, const char *last) {
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i)
    text += (i == 0                 ? ""
             : i + 1 < texts.size() ? ", "
                                    : " " + std::string(last) + " ") +
            texts[i];
  return text;
}

} // namespace

bool OptionTable::holds(std::string_view condition) const {
  auto [name, value] = partsOf(condition);
  const Option *option = find(name);
  return option && option->fulfils(value);
}

std::string OptionTable::writtenCondition(std::string_view condition) const {
  auto [name, value] = partsOf(condition);
  const Option *option = find(name);
  return (option ? option->written() : std::string(name)) +
         (value.empty() ? "" : "=" + std::string(value));
}

void OptionTable::applyRule(const Option &option, const Option::Rule &rule,
                            std::vector<std::string> &problems) const {
  using Kind = Option::Rule::Kind;
  std::string name = option.written();
  std::string_view first = rule.conditions.front();
  switch (rule.kind) {
  case Kind::Needs:
    if (std::none_of(rule.conditions.begin(), rule.conditions.end(),
                     [&](std::string_view one) { return holds(one); })) {
      std::string all;
      for (std::string_view one : rule.conditions)
        all += (all.empty() ? "" : " or ") + writtenCondition(one);
      problems.push_back(name + " needs " + all + reason(rule.why));
    }
    return;
  case Kind::Excludes: {
    if (!holds(first))
      return;
    std::string other = writtenCondition(first);
    bool isFirst = find(option.name) < find(partsOf(first).first);
    problems.push_back((isFirst ? name : other) + " and " +
                       (isFirst ? other : name) + " exclude each other" +
                       reason(rule.why));
    return;
  }
  case Kind::OnlyWith: {
    const Option *other = find(first);
    if (!other || other->values.empty() || other->fulfils(rule.conditions[1]))
      return;
    problems.push_back(
        name + " has no effect with " +
        io::inQuotes(other->written() + "=" + other->values.front()) +
        ": it is for the " + std::string(first) + " '" +
        std::string(rule.conditions[1]) + "'");
    return;
  }
  case Kind::OnlyFor:
  case Kind::NotFor: {
    const Positional &file = positionals_.front();
    bool isSuch = endsInOne(*file.target, first);
    if (file.target->empty() || isSuch == (rule.kind == Kind::OnlyFor))
      return;
    problems.push_back(
        name +
        (rule.kind == Kind::OnlyFor ? " is for " : " has no effect on ") +
        std::string(rule.conditions[1]) + ", but " + std::string(file.name) +
        " is " + io::inQuotes(*file.target));
    return;
  }
  }
}

void OptionTable::applyChoice(const Choice &choice,
                              std::vector<std::string> &problems) const {
  std::vector<std::string> names, given;
  for (std::string_view name : choice.names) {
    const Option *option = find(name);
    names.push_back(option->written());
    if (option->given)
      given.push_back(option->written());
  }
  if (given.empty() || (choice.isExclusive && given.size() > 1))
    problems.push_back(
        (choice.isExclusive ? "expected either " : "expected ") +
        listed(names, "or") +
        (given.empty() ? "" : " but got " + listed(given, "and")));
}

void OptionTable::applyRules(std::vector<std::string> &problems) const {
  for (const Option &option : options_) {
    if (option.isRequired && !option.given &&
        (option.requiredUnless.empty() || !holds(option.requiredUnless)))
      problems.push_back("expected " + option.written());
    if (!option.given)
      continue;
    for (const Option::Rule &rule : option.rules)
      applyRule(option, rule, problems);
  }
  for (const Choice &choice : choices_)
    applyChoice(choice, problems);
}

} // namespace tandem::commands
