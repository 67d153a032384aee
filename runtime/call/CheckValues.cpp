//===- CheckValues.cpp - labels and indices of a call ---------------------===//
//
// Integers that are outside of what the artifact says of their input would make
// NaN of some results and leave others finite, so the call is refused. Of a
// model on the host alone: a device's call does not wait for the work that may
// still write what it is given.
//
//===----------------------------------------------------------------------===//
#include "runtime/ElementRows.h"
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"

#include <cstring>
#include <optional>
#include <utility>

namespace tandem::runtime {

namespace {

/// The integers from `low` to below `high`, and one more.
struct Range {
  int64_t low, high;
  std::optional<int64_t> ignored;

  template <typename T> bool has(T value) const {
    return (std::cmp_greater_equal(value, low) && std::cmp_less(value, high)) ||
           (ignored && std::cmp_equal(value, *ignored));
  }
};

/// An element that is outside, and its place in row-major order.
struct Outside {
  int64_t index;
  std::string value;
};

template <typename T>
std::optional<Outside> firstOutside(const Tensor &tensor, const Range &range) {
  const auto *data = reinterpret_cast<const char *>(tensor.data<T>());
  std::optional<Outside> found;
  int64_t before = 0;
  forEachRow(tensor.shape(), tensor.strides(), tensor.strides(),
             [&](int64_t offset, int64_t, int64_t count) {
               int64_t step = tensor.rank() ? tensor.strides().back() : 0;
               for (int64_t i = 0; i < count && !found; ++i) {
                 T value;
                 std::memcpy(&value,
                             data + (offset + i * step) * int64_t(sizeof(T)),
                             sizeof(T));
                 if (!range.has(value))
                   found = Outside{before + i, std::to_string(value)};
               }
               before += count;
             });
  return found;
}

std::optional<Outside> firstOutside(const Tensor &tensor, const Range &range) {
  switch (tensor.dtype()) {
  case DType::I8:
    return firstOutside<int8_t>(tensor, range);
  case DType::U8:
    return firstOutside<uint8_t>(tensor, range);
  case DType::I16:
    return firstOutside<int16_t>(tensor, range);
  case DType::U16:
    return firstOutside<uint16_t>(tensor, range);
  case DType::I32:
    return firstOutside<int32_t>(tensor, range);
  case DType::U32:
    return firstOutside<uint32_t>(tensor, range);
  case DType::I64:
    return firstOutside<int64_t>(tensor, range);
  case DType::U64:
    return firstOutside<uint64_t>(tensor, range);
  default:
    return std::nullopt;
  }
}

/// "row 3" of a vector, else "element [0, 3]".
std::string placeOf(std::span<const int64_t> shape, int64_t index) {
  if (shape.size() == 1)
    return "row " + std::to_string(index);
  Extents position(shape);
  for (int d = position.size() - 1; d >= 0; --d) {
    position[d] = index % shape[d];
    index /= shape[d];
  }
  return "element " + toString(position);
}

} // namespace

void checkValues(const Invocation &call, const MatchedCall &matched,
                 Problems &problems) {
  if (call.place.device() != Device{})
    return;
  for (size_t a = 0; a < call.plan.arguments.size(); ++a) {
    const BoundArgument &argument = call.program.arguments[a];
    const Tensor *tensor = matched.given[a];
    if (!tensor || !argument.isCallers || !argument.value ||
        !argument.value->high || !matched.isDefined[a])
      continue;
    Range range{argument.value->low.value_or(0), *argument.value->high,
                argument.value->ignored};
    auto outside = firstOutside(*tensor, range);
    if (!outside)
      continue;
    problems.add(argumentName(call.plan, a) + ": expected integers from " +
                 std::to_string(range.low) + " to " +
                 std::to_string(range.high - 1) +
                 (range.ignored ? ", or " + std::to_string(*range.ignored) +
                                      ", which does not count"
                                : "") +
                 " but " + placeOf(tensor->shape(), outside->index) + " is " +
                 outside->value);
  }
}

} // namespace tandem::runtime
