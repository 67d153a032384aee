//===- CheckValues.cpp - labels and indices of a call ---------------------===//
//
// Integers that are outside of what the artifact says of their input would make
// NaN of some results and leave others finite, so the call is refused. Those on
// the host alone are looked at: a call does not wait for a device's work, which
// may still write what is there, or in memory that is registered.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/CheckValues.h"
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"
#include "runtime/tensor/ElementRows.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace tandem::runtime {

using artifact::SliceRange;

namespace {

bool hasValuesToCheck(const artifact::Value &value) {
  return value.high || !value.ranges.empty();
}

/// True if nothing but the host writes the tensor's elements.
bool isHosts(const Tensor &tensor, const DeviceMemory &place) {
  return tensor.device().isHost() && tensor.isBacked() &&
         (place.isHost() || !tensor.storage()->isDirect());
}

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

/// A slice of a tensor, and where its elements are in the tensor.
struct Part {
  Extents begins, steps, shape, strides;
  const char *data = nullptr;

  /// The elements of `range`, or all, that are in `tensor`: of a rank its piece
  /// of the value, whose padding may be anything.
  Part(const Tensor &tensor, const artifact::Value &value,
       const SliceRange *range, const comm::MeshRank *rank);
};

Part::Part(const Tensor &tensor, const artifact::Value &value,
           const SliceRange *range, const comm::MeshRank *rank)
    : begins(tensor.shape()), steps(tensor.shape()), shape(tensor.shape()),
      strides(tensor.strides()) {
  int64_t offset = 0;
  for (int d = 0; d < begins.size(); ++d) {
    comm::Held held = rank ? comm::heldBy(*rank, value, static_cast<size_t>(d))
                           : comm::Held{0, shape[d]};
    int64_t first = held.begin, end = first + held.count;
    int64_t step = range ? range->steps[d] : 1;
    int64_t at = range ? range->begins[d] : first;
    // The first index that the rank has.
    if (at < first)
      at += (first - at + step - 1) / step * step;
    end = range ? std::min(end, range->ends[d]) : end;
    begins[d] = at - first;
    steps[d] = step;
    shape[d] = at < end ? (end - at - 1) / step + 1 : 0;
    offset += begins[d] * strides[d];
    strides[d] *= step;
  }
  data = static_cast<const char *>(tensor.data());
  if (!std::ranges::count(std::span<const int64_t>(shape), 0))
    data += offset * byteSize(tensor.dtype());
}

std::optional<Outside> firstOutside(const Part &part, DType type,
                                    const Range &range) {
  int64_t bytes = byteSize(type), before = 0;
  int rank = part.shape.size();
  int64_t step = rank ? part.strides[rank - 1] * bytes : 0;
  std::optional<Outside> found;
  forEachRow(part.shape, part.strides, part.strides,
             [&](int64_t offset, int64_t, int64_t count) {
               const char *row = part.data + offset * bytes;
               for (int64_t i = 0; i < count && !found; ++i)
                 if (auto text = outside(type, row + i * step, range))
                   found = Outside{before + i, std::move(*text)};
               before += count;
             });
  return found;
}

/// "row 3" of a vector, else "element [0, 3]", of the tensor.
std::string placeOf(const Part &part, int64_t index) {
  Extents position(part.shape);
  for (int d = position.size() - 1; d >= 0; --d) {
    position[d] = part.begins[d] + index % part.shape[d] * part.steps[d];
    index /= part.shape[d];
  }
  return position.size() == 1 ? "row " + std::to_string(position[0])
                              : "element " + toString(position);
}

/// What is wrong with a part, or nothing.
std::string problemOf(const Part &part, DType type, const Range &range) {
  auto found = firstOutside(part, type, range);
  if (!found)
    return "";
  return "expected integers from " + std::to_string(range.low) + " to " +
         std::to_string(range.high - 1) +
         (range.ignored ? ", or " + std::to_string(*range.ignored) +
                              ", which does not count"
                        : "") +
         " but " + placeOf(part, found->index) + " is " + found->value;
}

} // namespace

std::string valuesOutside(const Tensor &tensor, const artifact::Value &value,
                          const comm::MeshRank *rank) {
  std::string problem;
  if (value.high)
    problem = problemOf(Part(tensor, value, nullptr, rank), tensor.dtype(),
                        {value.low.value_or(0), *value.high, value.ignored});
  for (const SliceRange &range : value.ranges)
    if (problem.empty())
      problem = problemOf(Part(tensor, value, &range, rank), tensor.dtype(),
                          {range.low, range.high, range.ignored});
  return problem;
}

void checkValues(const Invocation &call, const MatchedCall &matched,
                 Problems &problems) {
  for (size_t a = 0; a < call.plan.arguments.size(); ++a) {
    const BoundArgument &argument = call.program.arguments[a];
    const Tensor *tensor = matched.given[a];
    if (!tensor || !argument.isCallers || !argument.value ||
        !hasValuesToCheck(*argument.value) || !matched.isDefined[a] ||
        !isHosts(*tensor, call.place))
      continue;
    std::optional<comm::MeshRank> rank;
    if (!argument.value->sharding.empty() && call.core.communicators)
      rank.emplace(comm::MeshRank{call.core.manifest().mesh,
                                  call.core.communicators->world().rank()});
    std::string problem =
        valuesOutside(*tensor, *argument.value, rank ? &*rank : nullptr);
    if (!problem.empty())
      problems.add(argumentName(call.plan, a) + ": " + problem);
  }
}

} // namespace tandem::runtime
