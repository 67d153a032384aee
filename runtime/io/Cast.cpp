//===- Cast.cpp - how a file's numbers become a model's -------------------===//
//
// Pieces that stay in the first cache go through f64, or through i64 where both
// types are integers, so that there is one loop for each type and not for each
// pair; the common pairs have their own.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Cast.h"

#include "runtime/io/ElementTypes.h"
#include "runtime/io/Elements.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace tandem::io {
namespace {

constexpr int64_t pieceSize = 512;

template <typename Number>
void loadPiece(const std::byte *from, DType type, Number *out, int64_t count) {
  withType(type, [&](auto element) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = Number(plain(load<decltype(element)>(from, i)));
    return 0;
  });
}

template <typename Number>
void storePiece(const Number *from, std::byte *to, DType type, int64_t count) {
  withType(type, [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < count; ++i) {
      T value{};
      if constexpr (std::is_same_v<T, Boolean>)
        value.byte = from[i] != 0;
      else if constexpr (isReal<T>)
        value = rounded<T>(double(from[i]));
      else
        value = static_cast<T>(from[i]);
      std::memcpy(to + i * int64_t(sizeof(T)), &value, sizeof(T));
    }
    return 0;
  });
}

void scale(double *numbers, int64_t count, const Cast &cast) {
  if (cast.divides)
    for (int64_t i = 0; i < count; ++i)
      numbers[i] /= cast.factor;
  else
    for (int64_t i = 0; i < count; ++i)
      numbers[i] *= cast.factor;
}

template <typename From>
void toFloats(const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    auto value = float(load<From>(from, i));
    std::memcpy(to + i * int64_t(sizeof(float)), &value, sizeof(float));
  }
}

/// Converts a piece; returns the index of the first number that is finite and
/// does not stay so, or -1.
int64_t castPiece(const std::byte *from, DType fromType, std::byte *to,
                  DType toType, int64_t count, const Cast &cast) {
  std::array<double, pieceSize> numbers, after;
  loadPiece(from, fromType, numbers.data(), count);
  std::array<double, pieceSize> before = numbers;
  if (cast.scales)
    scale(numbers.data(), count, cast);
  storePiece(numbers.data(), to, toType, count);
  loadPiece(to, toType, after.data(), count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isfinite(before[size_t(i)]) && !std::isfinite(after[size_t(i)]))
      return i;
  return -1;
}

/// Returns the index of the first element that a rule makes infinite.
std::optional<int64_t> firstOverflow(const ArrayView &array, DType to,
                                     const Cast &cast) {
  int64_t size = artifact::byteSize(array.dtype);
  auto all = int64_t(array.bytes.size()) / size;
  std::array<std::byte, pieceSize * 8> out;
  for (int64_t i = 0; i < all; i += pieceSize) {
    int64_t bad = castPiece(array.bytes.data() + i * size, array.dtype,
                            out.data(), to, std::min(pieceSize, all - i), cast);
    if (bad >= 0)
      return i + bad;
  }
  return std::nullopt;
}

/// Returns the index of the first f64 that more than one integer is rounded to.
std::optional<int64_t> firstAmbiguous(const ArrayView &array) {
  auto count = int64_t(array.bytes.size() / sizeof(double));
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(load<double>(array.bytes.data(), i)) >= 0x1p53)
      return i;
  return std::nullopt;
}

std::string elementOf(const ArrayView &array, int64_t index, int64_t first) {
  return "element " + positionText(array.shape, first + index) + " of " +
         std::string(spelling(array.dtype)) + " is " +
         elementText(array, index);
}

} // namespace

Result<Cast> Cast::parse(std::string_view rule) {
  Cast cast;
  cast.rounds = true;
  if (rule == "round")
    return cast;
  cast.scales = true;
  cast.divides = rule.starts_with('/');
  std::string_view number = rule.substr(rule.empty() ? 0 : 1);
  auto parsed = std::from_chars(number.data(), number.data() + number.size(),
                                cast.factor);
  bool isNumber = !number.empty() && parsed.ec == std::errc() &&
                  parsed.ptr == number.data() + number.size() &&
                  std::isfinite(cast.factor) && cast.factor != 0;
  if (isNumber && (cast.divides || rule.starts_with('*')))
    return cast;
  return Status::usage("expected 'round', '*NUMBER' or '/NUMBER' but got " +
                       inQuotes(rule));
}

Result<CastReport> checkCast(const ArrayView &array, DType to, const Cast &cast,
                             int64_t first) {
  CastReport report;
  if (cast.scales) {
    if (!artifact::isFloat(to))
      return Status::usage("--cast=/N and *N scale floats, but this is " +
                           std::string(spelling(to)) +
                           "; --cast=NAME=/N is for one array alone");
    if (auto large = firstOverflow(array, to, cast))
      return Status::usage(elementOf(array, *large, first) +
                           ", which is too large for " +
                           std::string(spelling(to)) + " when it is scaled");
    return report;
  }
  if (array.dtype == to)
    return report;
  // What is held exactly does not overflow.
  std::optional<int64_t> inexact = firstInexact(array, to);
  if (!inexact && array.dtype == DType::F64 && isInteger(to))
    if (auto large = firstAmbiguous(array))
      return Status::usage(elementOf(array, *large, first) +
                           ", beyond 2^53, from where f64 does not hold every "
                           "integer: expected integers of 64 bits");
  if (!inexact)
    return report;
  bool isDivided = array.dtype == DType::F64 && to == DType::F32;
  if (!artifact::isFloat(to) || !(cast.rounds || isDivided)) {
    std::string hint;
    if (artifact::isFloat(to))
      hint = "; '--cast=round' rounds it";
    return Status::usage(elementOf(array, *inexact, first) + ", which " +
                         std::string(spelling(to)) + " cannot hold exactly" +
                         hint);
  }
  if (auto large = firstOverflow(array, to, cast))
    return Status::usage(elementOf(array, *large, first) +
                         ", which is too large for " +
                         std::string(spelling(to)));
  if (!cast.rounds)
    report.rounded = elementOf(array, *inexact, first);
  return report;
}

void castElements(const std::byte *from, DType fromType, std::byte *to,
                  DType toType, int64_t count, const Cast &cast) {
  int64_t fromSize = artifact::byteSize(fromType),
          toSize = artifact::byteSize(toType);
  if (!cast.scales && fromType == toType) {
    if (count)
      std::memcpy(to, from, size_t(count * fromSize));
    return;
  }
  if (!cast.scales && toType == DType::F32 && fromType == DType::F64)
    return toFloats<double>(from, to, count);
  if (!cast.scales && toType == DType::F32 && fromType == DType::U8)
    return toFloats<uint8_t>(from, to, count);
  bool areIntegers = isInteger(fromType) && isInteger(toType);
  for (int64_t i = 0; i < count; i += pieceSize) {
    int64_t size = std::min(pieceSize, count - i);
    if (areIntegers) {
      std::array<int64_t, pieceSize> numbers;
      loadPiece(from + i * fromSize, fromType, numbers.data(), size);
      storePiece(numbers.data(), to + i * toSize, toType, size);
      continue;
    }
    std::array<double, pieceSize> numbers;
    loadPiece(from + i * fromSize, fromType, numbers.data(), size);
    if (cast.scales)
      scale(numbers.data(), size, cast);
    storePiece(numbers.data(), to + i * toSize, toType, size);
  }
}

Result<Array> castArray(const ArrayView &array, DType to, const Cast &cast) {
  if (auto report = checkCast(array, to, cast); !report)
    return std::move(report).status();
  auto count = int64_t(array.bytes.size()) / artifact::byteSize(array.dtype);
  Array result{to, {array.shape.begin(), array.shape.end()}, {}};
  result.bytes.resize(size_t(count * artifact::byteSize(to)));
  castElements(array.bytes.data(), array.dtype, result.bytes.data(), to, count,
               cast);
  return result;
}

std::optional<int64_t> firstOutside(const ArrayView &array, int64_t low,
                                    int64_t high,
                                    std::optional<int64_t> ignored) {
  return withType(array.dtype, [&](auto type) -> std::optional<int64_t> {
    using T = decltype(type);
    auto count = int64_t(array.bytes.size() / sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      auto value = plain(load<T>(array.bytes.data(), i));
      bool isInside, isIgnored;
      if constexpr (isReal<T>) {
        isInside = value >= double(low) && value < double(high) &&
                   value == std::trunc(value);
        isIgnored = ignored && value == double(*ignored);
      } else {
        isInside =
            std::cmp_greater_equal(value, low) && std::cmp_less(value, high);
        isIgnored = ignored && std::cmp_equal(value, *ignored);
      }
      if (!isInside && !isIgnored)
        return i;
    }
    return std::nullopt;
  });
}

} // namespace tandem::io
