//===- ColumnChoice.cpp - which columns of a table are wanted -------------===//
#include "runtime/io/ColumnChoice.h"

#include "runtime/io/Array.h"

#include <algorithm>
#include <charconv>

namespace tandem::io {

std::string_view trimmed(std::string_view text) {
  auto isSpace = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

bool isDigits(std::string_view cell) {
  if (cell.starts_with('+') || cell.starts_with('-'))
    cell.remove_prefix(1);
  return !cell.empty() &&
         cell.find_first_not_of("0123456789") == std::string_view::npos;
}

Status ColumnChoice::choose(std::string_view spec, std::string_view otherwise) {
  if (spec.empty()) {
    if (Status status = expectOne(otherwise); !status)
      return status;
    auto named = std::find(names.begin(), names.end(), otherwise);
    isOne = named != names.end();
    for (size_t c = 0; c < columns; ++c)
      if (!isOne || c == size_t(named - names.begin()))
        chosen.push_back(c);
    return Status::success();
  }
  std::vector<size_t> left;
  bool hasLeft = false;
  int64_t parts = 0;
  for (size_t begin = 0; begin <= spec.size(); ++parts) {
    size_t comma = std::min(spec.find(',', begin), spec.size());
    std::string_view part = trimmed(spec.substr(begin, comma - begin));
    begin = comma + 1;
    bool isLeftOut = part.starts_with('-') && !find(part);
    if (isLeftOut)
      part.remove_prefix(1);
    hasLeft |= isLeftOut;
    if (Status status = add(part, isLeftOut ? left : chosen); !status)
      return status;
  }
  if (hasLeft && !chosen.empty())
    return Status::usage("expected either columns, or columns to leave out "
                         "('-NAME'), but got both in " +
                         inQuotes(spec));
  for (size_t c = 0; hasLeft && c < columns; ++c)
    if (std::find(left.begin(), left.end(), c) == left.end())
      chosen.push_back(c);
  isOne = !hasLeft && parts == 1 && chosen.size() == 1 &&
          spec.find("..") == std::string_view::npos;
  return Status::success();
}

Status ColumnChoice::expectOne(std::string_view name) const {
  auto count = std::count(names.begin(), names.end(), name);
  return count <= 1 ? Status::success()
                    : Status::usage("has " + std::to_string(count) +
                                    " columns called " + inQuotes(name));
}

std::optional<size_t> ColumnChoice::find(std::string_view name) const {
  auto named = std::find(names.begin(), names.end(), name);
  if (named != names.end())
    return size_t(named - names.begin());
  // Where names are numbers, a number is a name and nothing else.
  if (std::any_of(names.begin(), names.end(), isDigits))
    return std::nullopt;
  size_t number = 0;
  auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() &&
      number >= 1 && number <= columns)
    return number - 1;
  return std::nullopt;
}

Status ColumnChoice::add(std::string_view part, std::vector<size_t> &to) const {
  size_t dots = part.find("..");
  bool isRange = dots != std::string_view::npos && !find(part);
  std::string_view first = isRange ? part.substr(0, dots) : part;
  std::string_view last = isRange ? part.substr(dots + 2) : part;
  for (std::string_view name : {first, last}) {
    if (!find(name))
      return Status::usage("has no column " + inQuotes(name) + "; it has " +
                           known());
    if (Status status = expectOne(name); !status)
      return status;
  }
  if (*find(first) > *find(last))
    return Status::usage("expected " + inQuotes(first) + " before " +
                         inQuotes(last));
  for (size_t c = *find(first); c <= *find(last); ++c)
    to.push_back(c);
  return Status::success();
}

std::string ColumnChoice::known() const {
  std::string text;
  constexpr size_t shown = 20;
  for (size_t c = 0; c < std::min(names.size(), shown); ++c)
    text += (c ? ", " : "") + inQuotes(names[c]);
  if (names.empty())
    return "columns 1 to " + std::to_string(columns) + " without names";
  return text + (names.size() > shown ? ", ..." : "");
}

} // namespace tandem::io
