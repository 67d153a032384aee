//===- Elements.cpp - reading and converting elements of any type ---------===//
//
// Loops over elements are instantiated from a table of element types, so that
// there is no call per element. A conversion goes block by block through the
// widest type of its kind, which holds all elements exactly: a loop for each
// type on either side, and not one for each pair. f16, bf16 and floats of 8
// bits are rounded to through f32, in which they are exact.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Elements.h"

#include "runtime/io/ElementTypes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace tandem::io {
namespace {

/// Stores `value`, an int64_t, a uint64_t or a double, as a `To`; returns
/// whether nothing was lost.
template <typename To, typename From> bool store(From value, To &result) {
  constexpr double limit = 0x1p63;
  // What only one of the two integers holds.
  if constexpr (std::is_same_v<From, double>)
    if (value >= limit && value < 2 * limit && !isReal<To>)
      return value == std::trunc(value) && store(uint64_t(value), result);
  if constexpr (isReal<To>) {
    result = rounded<To>(double(value));
    double back = double(result);
    if constexpr (std::is_same_v<From, double>)
      return back == value || std::isnan(value);
    else if constexpr (std::is_same_v<From, uint64_t>)
      return back >= 0 && back < 2 * limit && uint64_t(back) == value;
    else
      return back >= -limit && back < limit && int64_t(back) == value;
  } else {
    std::conditional_t<std::is_same_v<From, uint64_t>, uint64_t, int64_t>
        integer = 0;
    if constexpr (std::is_same_v<From, double>) {
      if (!(value >= -limit && value < limit) || value != std::trunc(value))
        return false;
      integer = int64_t(value);
    } else {
      integer = value;
    }
    if constexpr (std::is_same_v<To, Boolean>) {
      result.byte = uint8_t(integer);
      return integer == 0 || integer == 1;
    } else {
      result = static_cast<To>(integer);
      return std::in_range<To>(integer);
    }
  }
}

/// Returns the index of the first element that does not fit, or -1. Without
/// `to` nothing is written.
template <typename From>
int64_t storeAll(std::span<const From> from, DType type, std::byte *to) {
  return withType(type, [&](auto into) -> int64_t {
    using To = decltype(into);
    for (size_t i = 0; i < from.size(); ++i) {
      To result{};
      if (!store(from[i], result))
        return int64_t(i);
      if (to)
        std::memcpy(to + i * sizeof(To), &result, sizeof(To));
    }
    return -1;
  });
}

int64_t convertAll(const ArrayView &array, DType to, std::byte *out) {
  auto count = int64_t(array.bytes.size()) / artifact::byteSize(array.dtype);
  return withType(array.dtype, [&](auto from) -> int64_t {
    constexpr int64_t atOnce = 512;
    using From = decltype(from);
    decltype(plain(from)) block[atOnce];
    for (int64_t i = 0; i < count; i += atOnce) {
      int64_t n = std::min(atOnce, count - i);
      for (int64_t k = 0; k < n; ++k)
        block[k] = plain(load<From>(array.bytes.data(), i + k));
      int64_t bad =
          storeAll(std::span<const decltype(plain(from))>(block, size_t(n)), to,
                   out ? out + i * artifact::byteSize(to) : nullptr);
      if (bad >= 0)
        return i + bad;
    }
    return -1;
  });
}

} // namespace

double elementAsDouble(DType dtype, const std::byte *data, int64_t index) {
  return withType(dtype, [&](auto type) {
    return double(plain(load<decltype(type)>(data, index)));
  });
}

int64_t elementAsInteger(DType dtype, const std::byte *data, int64_t index) {
  return withType(dtype, [&](auto type) -> int64_t {
    if constexpr (isReal<decltype(type)>)
      return 0;
    else if constexpr (std::is_same_v<decltype(type), uint64_t>)
      return int64_t(std::min(load<uint64_t>(data, index),
                              uint64_t(std::numeric_limits<int64_t>::max())));
    else
      return plain(load<decltype(type)>(data, index));
  });
}

std::string integerText(DType dtype, const std::byte *data, int64_t index) {
  if (dtype == DType::U64)
    return std::to_string(load<uint64_t>(data, index));
  return std::to_string(elementAsInteger(dtype, data, index));
}

/// The first element of a floating-point array that `isBad`.
template <typename IsBad>
static std::optional<int64_t> firstBad(const ArrayView &array, IsBad isBad) {
  return withType(array.dtype, [&](auto type) -> std::optional<int64_t> {
    using T = decltype(type);
    if constexpr (isReal<T>) {
      auto count = int64_t(array.bytes.size() / sizeof(T));
      for (int64_t i = 0; i < count; ++i)
        if (isBad(double(load<T>(array.bytes.data(), i))))
          return i;
    }
    return std::nullopt;
  });
}

std::optional<int64_t> firstNonFinite(const ArrayView &array) {
  return firstBad(array, [](double value) { return !std::isfinite(value); });
}

std::optional<int64_t> firstNaN(const ArrayView &array) {
  return firstBad(array, [](double value) { return std::isnan(value); });
}

std::optional<int64_t> firstInexact(const ArrayView &array, DType to) {
  int64_t bad = convertAll(array, to, nullptr);
  return bad < 0 ? std::nullopt : std::optional(bad);
}

std::string elementText(const ArrayView &array, int64_t index) {
  if (isInteger(array.dtype))
    return integerText(array.dtype, array.bytes.data(), index);
  double value = elementAsDouble(array.dtype, array.bytes.data(), index);
  char text[32], *last = text + sizeof text;
  auto end = array.dtype == DType::F64
                 ? std::to_chars(text, last, value)
                 : std::to_chars(text, last, float(value));
  return std::string(text, end.ptr);
}

std::string positionText(std::span<const int64_t> shape, int64_t index) {
  std::vector<int64_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    position[i] = index % shape[i];
    index /= shape[i];
  }
  return shapeText(position);
}

Result<Array> convertExactly(const ArrayView &array, DType to) {
  auto count = int64_t(array.bytes.size()) / artifact::byteSize(array.dtype);
  Array result{to, {array.shape.begin(), array.shape.end()}, {}};
  result.bytes.resize(size_t(count * artifact::byteSize(to)));
  int64_t bad = convertAll(array, to, result.bytes.data());
  if (bad < 0)
    return result;
  return Status::usage("element " + positionText(array.shape, bad) + " of " +
                       std::string(spelling(array.dtype)) + " is " +
                       elementText(array, bad) + ", which " +
                       std::string(spelling(to)) + " cannot hold exactly");
}

Result<Array> parseScalar(std::string_view text, DType dtype) {
  Array result{dtype, {}, {}};
  auto put = [&](auto value) {
    const auto *raw = reinterpret_cast<const std::byte *>(&value);
    result.bytes.assign(raw, raw + sizeof value);
  };
  auto bad = [&](const std::string &why) {
    bool isFile =
        text.find('.') != std::string_view::npos &&
        text.find_first_not_of("0123456789.+-eE") != std::string_view::npos;
    return Status::usage(
        why + " but got " + inQuotes(text) +
        (isFile ? "; a file is '@" + std::string(text) + "'" : ""));
  };
  if (dtype == DType::Bool && (text == "true" || text == "false")) {
    put(Boolean{uint8_t(text == "true")});
    return result;
  }
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-"))
    digits.remove_prefix(1);
  const char *end = digits.data() + digits.size();
  if (isInteger(dtype)) {
    auto takes = [&](auto value) {
      auto parsed = std::from_chars(digits.data(), end, value);
      return parsed.ec == std::errc() && parsed.ptr == end &&
             withType(dtype, [&](auto type) {
               bool exact = store(value, type);
               put(type);
               return exact;
             });
    };
    if (!takes(int64_t{}) && !takes(uint64_t{}))
      return bad("expected a value of type " + std::string(spelling(dtype)));
    return result;
  }
  double value = 0;
  auto parsed = std::from_chars(digits.data(), end, value);
  // Out of range is what overflows or vanishes; no number that was meant.
  if (parsed.ec != std::errc() || parsed.ptr != end || digits.empty())
    return bad("expected a number of type " + std::string(spelling(dtype)));
  withType(dtype, [&](auto type) {
    if constexpr (isReal<decltype(type)>)
      put(rounded<decltype(type)>(value));
    return 0;
  });
  return result;
}

} // namespace tandem::io
