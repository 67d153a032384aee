//===- Print.cpp - numbers and tables on a terminal -----------------------===//
#include "tools/commands/Print.h"

#include "tools/commands/Ranks.h"

#include "runtime/io/Elements.h"
#include "runtime/io/Tensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tandem::commands {
namespace {

template <typename T> std::string shortest(T value) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

} // namespace

std::string scalarText(const runtime::Tensor &scalar) {
  return io::elementText(io::viewOf(scalar), 0);
}

std::string numberText(double value) {
  // The sign of nan says nothing.
  return std::isnan(value) ? "nan" : shortest(value);
}

std::string withCommas(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += (&text == &texts.front() ? "" : ",") + text;
  return all;
}

std::string roundedText(double value) {
  if (std::isnan(value)) // whose sign says nothing
    return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string rateText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 100 ? "%.3g" : "%.0f",
                std::min(value, 1e18));
  return text;
}

std::string bytesText(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

Result<int64_t> bytesFrom(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc())
    for (auto [name, size] : units)
      // No machine has more; larger numbers would not fit into 64 bits.
      if (text.substr(size_t(end - text.data())) == name && value * size >= 1 &&
          value * size <= 0x1p62)
        return int64_t(value * size);
  return Status::usage("expected bytes, as 500MB or 6GiB, but got '" +
                       std::string(text) + "'");
}

std::string timeText(double seconds) {
  // A year is as good as any longer time.
  auto whole = int64_t(std::clamp(seconds, 0.0, 3.2e7));
  char text[32];
  if (whole < 3600)
    std::snprintf(text, sizeof text, "%d:%02d", int(whole / 60),
                  int(whole % 60));
  else
    std::snprintf(text, sizeof text, "%d:%02d:%02d", int(whole / 3600),
                  int(whole / 60 % 60), int(whole % 60));
  return text;
}

void printTable(const std::vector<std::vector<std::string>> &rows, bool right) {
  std::vector<size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string space(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (right && i ? space + row[i] : row[i] + space);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

static constexpr int64_t kShownNames = 3;

void Names::add(std::string_view name, const std::string &after) {
  if (++count_ <= kShownNames)
    text_ += (count_ > 1 ? ", '" : "'") + std::string(name) + "'" + after;
}

std::string Names::after(const std::string &before) const {
  if (count_ == 0)
    return "";
  return before + text_ +
         (count_ > kShownNames
              ? " and " + std::to_string(count_ - kShownNames) + " more"
              : "");
}

void warn(const std::string &text) {
  if (std::FILE *to = sayings())
    std::fprintf(to, "warning: %s\n", artifact::forScreen(text).c_str());
}

void note(const std::string &text) {
  if (std::FILE *to = sayings())
    std::fprintf(to, "note: %s\n", artifact::forScreen(text).c_str());
}

} // namespace tandem::commands
