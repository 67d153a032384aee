//===- KernelSummary.cpp - the types in a kernel's summary ----------------===//
#include "tools/simulate/KernelSummary.h"

#include <charconv>
#include <functional>
#include <numeric>
#include <optional>

namespace tandem::simulate {

using artifact::DType;

double SummaryType::elements() const {
  return std::accumulate(
      shape.begin(), shape.end(), 1.0,
      [](double product, int64_t size) { return product * double(size); });
}

double SummaryType::bytes() const {
  return elements() * double(byteSize(dtype));
}

/// MLIR's spellings, which differ from a manifest's.
static std::optional<DType> typeOf(std::string_view word) {
  if (word == "i1")
    return DType::Bool;
  if (word.starts_with("ui"))
    return artifact::parseDType(std::string(word.substr(1)));
  return artifact::parseDType(word);
}

/// "64x1024xbf16"; of f32 the type is left out.
static std::optional<SummaryType> readType(std::string_view word) {
  SummaryType type;
  while (!word.empty()) {
    size_t end = std::min(word.find('x'), word.size());
    std::string_view part = word.substr(0, end);
    int64_t size = 0;
    auto [rest, error] =
        std::from_chars(part.data(), part.data() + part.size(), size);
    if (error == std::errc() && rest == part.data() + part.size() && size >= 0)
      type.shape.push_back(size);
    else if (auto dtype = typeOf(part); dtype && end == word.size())
      type.dtype = *dtype;
    else
      return std::nullopt;
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  return type;
}

KernelSummary readSummary(std::string_view text) {
  KernelSummary summary;
  bool isBehind = false;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (summary.op.empty())
      summary.op = word;
    else if (word == "->")
      isBehind = true;
    else if (auto type = readType(word))
      (isBehind ? summary.results : summary.operands).push_back(*type);
    else
      break; // attributes
  }
  return summary;
}

} // namespace tandem::simulate
