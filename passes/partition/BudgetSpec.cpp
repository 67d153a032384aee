//===- BudgetSpec.cpp - "0.5" or "6GiB" -----------------------------------===//
#include "passes/partition/BudgetSpec.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace tandem;

namespace {
struct Unit {
  StringLiteral name;
  double bytes;
};
constexpr Unit kUnits[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                           {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                           {"TiB", 0x1p40}};
/// No machine has more; larger numbers would not fit into 64 bits.
constexpr double kMostBytes = 0x1p62;
} // namespace

int64_t BudgetSpec::limit(int64_t least, int64_t fastest) const {
  if (!part)
    return bytes;
  return std::max(least, static_cast<int64_t>(
                             std::floor(*part * static_cast<double>(fastest))));
}

std::optional<BudgetSpec> tandem::parseBudgetSpec(StringRef text,
                                                  std::string &error) {
  error = "expected --memory-budget to be a number from 0 to 1, or bytes such "
          "as 500MB or 6GiB, but got '" +
          text.str() + "'";
  StringRef number = text.take_while(
      [](char c) { return isDigit(c) || c == '.' || c == '-' || c == '+'; });
  StringRef rest = text.drop_front(number.size());
  // 1e9 and 2.5e-1: an exponent is part of the number.
  if (rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E') &&
      !rest.drop_front().ltrim("+-").empty() &&
      all_of(rest.drop_front().ltrim("+-"), isDigit)) {
    number = text;
    rest = "";
  }
  double value = 0;
  if (number.empty() || number.getAsDouble(value) || !std::isfinite(value) ||
      value < 0)
    return std::nullopt;
  BudgetSpec spec;
  if (rest.empty() && value <= 1) {
    spec.part = value;
    return spec;
  }
  double bytes = value;
  if (!rest.empty()) {
    const Unit *unit =
        find_if(kUnits, [&](const Unit &known) { return known.name == rest; });
    if (unit == std::end(kUnits))
      return std::nullopt;
    bytes *= unit->bytes;
  } else if (value != std::floor(value)) {
    return std::nullopt;
  }
  if (bytes > kMostBytes)
    return std::nullopt;
  spec.bytes = static_cast<int64_t>(bytes);
  return spec;
}

std::string tandem::readableBytes(int64_t bytes) {
  std::string text;
  raw_string_ostream out(text);
  double value = static_cast<double>(bytes);
  constexpr StringLiteral names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(names); ++unit)
    value /= 1024;
  if (unit == 0)
    out << bytes << ' ' << names[0];
  else
    out << format("%.1f ", value) << names[unit];
  return text;
}
