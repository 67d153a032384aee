//===- ClipSpec.cpp - "norm:1.0" ------------------------------------------===//
#include "passes/partition/ClipSpec.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace tandem;

/// A number that is above 0 and finite in f32. getAsDouble takes hexadecimal
/// numbers too, which no other option does.
static std::optional<double> readMost(StringRef text) {
  double value = 0;
  if (text.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      text.getAsDouble(value) || std::isnan(value) ||
      value < std::numeric_limits<float>::min() ||
      value > std::numeric_limits<float>::max())
    return std::nullopt;
  return value;
}

std::optional<ClipSpec> tandem::parseClipSpec(StringRef text,
                                              std::string &error) {
  auto [name, number] = text.split(':');
  bool isNorm = name == "norm";
  if (!isNorm && name != "value") {
    error = "expected norm:NUMBER or value:NUMBER but got '" + text.str() + "'";
    return std::nullopt;
  }
  auto most = readMost(number);
  if (!most) {
    error = "expected '" + name.str() +
            "' to be followed by a number from 1.18e-38 to 3.4e+38, as '" +
            name.str() + ":1.0', but got '" + text.str() + "'";
    return std::nullopt;
  }
  return ClipSpec{isNorm ? ClipSpec::Kind::Norm : ClipSpec::Kind::Value, *most};
}
