//===- Options.cpp - a command's options, declared once -------------------===//
//
// Not getopt_long: it prints by itself, keeps global state, accepts cut-off
// names, and stops at the first problem.
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tandem::commands {
namespace {

template <typename T> std::optional<T> parseWhole(std::string_view text) {
  T value{};
  const char *end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return std::nullopt;
  return value;
}

/// How an option is written: `-o`, `--output`.
std::string written(std::string_view name) {
  return (name.size() == 1 ? "-" : "--") + std::string(name);
}

} // namespace

void OptionTable::positional(std::string_view name, std::string &target,
                             std::string_view help) {
  positionals_.push_back({name, help, &target});
}

void OptionTable::flag(std::string_view name, bool &target,
                       std::string_view help) {
  options_.push_back({name, "", help, false, [&target](std::string_view) {
                        target = true;
                        return std::nullopt;
                      }});
}

void OptionTable::text(std::string_view name, std::string_view value,
                       std::string &target, std::string_view help) {
  options_.push_back(
      {name, value, help, false,
       [&target](std::string_view text) -> std::optional<std::string> {
         target = text;
         if (text.empty())
           return "a value";
         return std::nullopt;
       }});
}

void OptionTable::optionalText(std::string_view name, std::string_view value,
                               bool &given, std::string &target,
                               std::string_view help) {
  options_.push_back({name, value, help, false,
                      [&given, &target](std::string_view text) {
                        given = true;
                        target = text;
                        return std::nullopt;
                      },
                      false, false});
}

void OptionTable::list(std::string_view name, std::string_view value,
                       std::vector<std::string> &target,
                       std::string_view help) {
  options_.push_back({name, value, help, true, [&target](std::string_view t) {
                        target.emplace_back(t);
                        return std::nullopt;
                      }});
}

void OptionTable::integer(std::string_view name, std::string_view value,
                          std::optional<int64_t> &target, int64_t low,
                          int64_t high, std::string_view help) {
  options_.push_back({name, value, help, false,
                      [&target, low, high](
                          std::string_view text) -> std::optional<std::string> {
                        target = parseWhole<int64_t>(text);
                        if (target && *target >= low && *target <= high)
                          return std::nullopt;
                        return "an integer " +
                               (high == INT64_MAX
                                    ? "of at least " + std::to_string(low)
                                    : "from " + std::to_string(low) + " to " +
                                          std::to_string(high));
                      }});
}

void OptionTable::number(std::string_view name, std::string_view value,
                         std::optional<double> &target, std::string_view help) {
  options_.push_back(
      {name, value, help, false,
       [&target](std::string_view text) -> std::optional<std::string> {
         target = parseWhole<double>(text);
         if (target && std::isfinite(*target))
           return std::nullopt;
         return "a number";
       }});
}

Status OptionTable::parse(Words words) {
  std::string problems;
  auto problem = [&](const std::string &text) {
    problems += (problems.empty() ? "" : "; ") + text;
  };
  size_t position = 0;
  bool onlyPositionals = false;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!onlyPositionals && (word == "--help" || word == "-h")) {
      helpAsked_ = true;
      return Status::success();
    }
    if (!onlyPositionals && word == "--") {
      onlyPositionals = true;
      continue;
    }
    if (onlyPositionals || !word.starts_with('-') || word == "-") {
      if (position < positionals_.size())
        *positionals_[position].target = word;
      else
        problem("unexpected argument '" + std::string(word) + "'");
      ++position;
      continue;
    }
    size_t equals = word.find('=');
    std::string name(word.substr(0, equals));
    auto option =
        std::find_if(options_.begin(), options_.end(),
                     [&](const Option &o) { return name == written(o.name); });
    if (option == options_.end()) {
      problem("unknown option '" + name + "'");
      continue;
    }
    if (option->given && !option->repeats)
      problem("option '" + name + "' is given twice");
    option->given = true;
    std::string_view value;
    if (option->value.empty()) {
      if (equals != std::string_view::npos)
        problem("option '" + name + "' takes no value");
    } else if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!option->needsValue) {
      // Without one.
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      problem("option '" + name + "' needs a value (" +
              std::string(option->value) + ")");
      continue;
    }
    if (auto expected = option->take(value))
      problem("option '" + name + "' expected " + *expected + " but got '" +
              std::string(value) + "'");
  }
  for (size_t i = position; i < positionals_.size(); ++i)
    problem("missing argument " + std::string(positionals_[i].name));
  return problems.empty() ? Status::success() : Status::usage(problems);
}

std::string OptionTable::help(std::string_view tool) const {
  std::string text = "usage: " + std::string(tool) + " " + std::string(usage_) +
                     "\n\n" + std::string(description_) + "\n\n";
  std::vector<std::pair<std::string, std::string_view>> rows;
  for (const Positional &p : positionals_)
    rows.emplace_back(p.name, p.help);
  for (const Option &o : options_)
    rows.emplace_back(written(o.name) +
                          (o.value.empty()      ? ""
                           : o.name.size() == 1 ? " " + std::string(o.value)
                           : o.needsValue       ? "=" + std::string(o.value)
                                          : "[=" + std::string(o.value) + "]"),
                      o.help);
  rows.emplace_back("--help", "print this text");
  size_t width = 0;
  for (const auto &[left, right] : rows)
    width = std::max(width, left.size());
  for (const auto &[left, right] : rows) {
    text += "  " + left + std::string(width - left.size() + 2, ' ');
    // A help text of several lines stays in its column.
    for (char c : right) {
      text += c;
      if (c == '\n')
        text += std::string(width + 4, ' ');
    }
    text += '\n';
  }
  return text;
}

} // namespace tandem::commands
