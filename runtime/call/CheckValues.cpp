//===- CheckValues.cpp - labels and indices of a call ---------------------===//
//
// Integers that are outside of what the artifact says of their input would make
// NaN of some results and leave others finite, so the call is refused. Of a
// model on the host alone: a device's call does not wait for the work that may
// still write what it is given.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"
#include "runtime/tensor/ElementRows.h"

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
std::optional<std::string> outside(const char *from, const Range &range) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return range.has(value) ? std::nullopt : std::optional(std::to_string(value));
}

/// The element at `from` as text, if it is an integer that is outside.
std::optional<std::string> outside(DType type, const char *from,
                                   const Range &range) {
  switch (type) {
  case DType::I8:
    return outside<int8_t>(from, range);
  case DType::U8:
    return outside<uint8_t>(from, range);
  case DType::I16:
    return outside<int16_t>(from, range);
  case DType::U16:
    return outside<uint16_t>(from, range);
  case DType::I32:
    return outside<int32_t>(from, range);
  case DType::U32:
    return outside<uint32_t>(from, range);
  case DType::I64:
    return outside<int64_t>(from, range);
  case DType::U64:
    return outside<uint64_t>(from, range);
  default:
    return std::nullopt;
  }
}

/// `piece`: what a rank has of the value, if that has padding, which may be
/// anything; else null.
std::optional<Outside> firstOutside(const Tensor &tensor, const Range &range,
                                    const comm::Shard *piece) {
  std::optional<comm::Places> places;
  if (piece)
    places.emplace(*piece);
  const auto *data = static_cast<const char *>(tensor.data());
  int64_t bytes = byteSize(tensor.dtype()), before = 0;
  int64_t step = tensor.rank() ? tensor.strides().back() * bytes : 0;
  std::optional<Outside> found;
  forEachRow(tensor.shape(), tensor.strides(), tensor.strides(),
             [&](int64_t offset, int64_t, int64_t count) {
               const char *row = data + offset * bytes;
               for (int64_t i = 0; i < count && !found; ++i)
                 if (places && places->next() < 0)
                   continue;
                 else if (auto text =
                              outside(tensor.dtype(), row + i * step, range))
                   found = Outside{before + i, std::move(*text)};
               before += count;
             });
  return found;
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
    std::optional<comm::Shard> piece;
    if (!argument.value->whole.empty() && call.core.communicators)
      piece = comm::shardOf(call.core.manifest().mesh, *argument.value,
                            call.core.communicators->world().rank());
    auto outside = firstOutside(*tensor, range, piece ? &*piece : nullptr);
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
