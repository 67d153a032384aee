//===- Dataset.cpp - arrays of rows, served in batches --------------------===//
#include "runtime/cli/Dataset.h"

#include "runtime/io/Elements.h"
#include "runtime/io/Tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tandem::commands {

using artifact::Slot;
using runtime::Tensor;

namespace {

/// Returns "f32 [N, 8]": what the rows for an input of this shape look like.
std::string rowsText(const Slot &slot) {
  std::string text = runtime::toString(slot.shape);
  text.replace(1, text.find_first_of(",]") - 1, "N");
  return std::string(spelling(slot.dtype)) + " " + text;
}

bool sameShape(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

} // namespace

Result<Dataset> Dataset::match(const artifact::Program &program,
                               std::vector<NamedTensor> arrays,
                               const std::string &option,
                               std::string_view also) {
  Dataset data;
  data.arrays_ = std::move(arrays);
  std::vector<const Slot *> inputs = inputsOf(program);
  Problems problems;
  for (const Slot *slot : inputs)
    if (!slot->shape.empty() && data.batch_ == 0)
      data.batch_ = slot->shape[0];
  if (data.batch_ == 0)
    problems.add("program '" + program.name +
                 "' has no input whose first dimension could be the batch");

  std::string known, rowsOf;
  for (const Slot *slot : inputs)
    known += (known.empty() ? "'" : ", '") + slot->name + "'";
  for (const NamedTensor &given : data.arrays_)
    if (given.name != also &&
        std::none_of(inputs.begin(), inputs.end(),
                     [&](const Slot *s) { return s->name == given.name; }))
      problems.add(option + " '" + given.name + "': program '" + program.name +
                   "' has no such input; it has " +
                   (known.empty() ? "none" : known));

  for (const Slot *slot : inputs) {
    const Tensor *array = data.array(slot->name);
    bool batched = !slot->shape.empty() && slot->shape[0] == data.batch_;
    if (!array) {
      problems.add("missing " + option + " '" + slot->name + "' (" +
                   (batched ? rowsText(*slot)
                            : runtime::describe(slot->dtype, slot->shape)) +
                   ")");
      continue;
    }
    bool fits = array->dtype() == slot->dtype &&
                array->rank() == int(slot->shape.size()) &&
                (batched ? sameShape(array->shape().subspan(1),
                                     std::span(slot->shape).subspan(1))
                         : sameShape(array->shape(), slot->shape));
    if (!fits) {
      problems.add(option + " '" + slot->name + "': expected " +
                   (batched ? rowsText(*slot)
                            : runtime::describe(slot->dtype, slot->shape)) +
                   " but got " +
                   runtime::describe(array->dtype(), array->shape()));
      continue;
    }
    Column column = {*array, *array, 0};
    if (batched) {
      int64_t rows = array->shape()[0];
      if (rowsOf.empty()) {
        rowsOf = slot->name;
        data.rows_ = rows;
      } else if (rows != data.rows_) {
        problems.add(option + " '" + slot->name + "': expected " +
                     std::to_string(data.rows_) + " rows, as '" + rowsOf +
                     "' has, but got " + std::to_string(rows));
      }
      auto batch = Tensor::zeros(slot->dtype, slot->shape);
      if (!batch)
        return std::move(batch).status();
      column.rowBytes = rows ? array->bytes() / rows : 0;
      column.batch = std::move(*batch);
    }
    data.columns_.push_back(std::move(column));
  }
  if (problems.none() && data.rows_ == 0)
    problems.add(option + ": expected at least one row but got none");
  if (!problems.none())
    return problems.status();
  for (size_t i = 0; i < inputs.size(); ++i)
    data.arguments_.push_back({inputs[i]->name, &data.columns_[i].batch});
  return data;
}

void Dataset::gather(std::span<const int64_t> rows) {
  for (Column &column : columns_) {
    if (column.rowBytes == 0)
      continue;
    const auto *from = column.rows.data<std::byte>();
    auto *to = column.batch.mutableData<std::byte>();
    auto bytes = size_t(column.rowBytes);
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(to + i * bytes, from + size_t(rows[i]) * bytes, bytes);
  }
}

const Tensor *Dataset::array(std::string_view name) const {
  for (const NamedTensor &given : arrays_)
    if (given.name == name)
      return &given.tensor;
  return nullptr;
}

std::vector<std::string> Dataset::nonFinite() const {
  std::vector<std::string> names;
  for (const NamedTensor &given : arrays_)
    if (io::hasNonFinite(io::viewOf(given.tensor)))
      names.push_back(given.name);
  return names;
}

std::vector<int64_t> rowOrder(int64_t rows, bool shuffle, uint64_t seed,
                              int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle)
    return order;
  uint64_t counter = mix(mix(seed) ^ uint64_t(epoch));
  // Fisher and Yates; an index below `bound` is the high half of a 128-bit
  // product, and the few low halves that would favour some are drawn again.
  for (auto bound = uint64_t(rows); bound > 1; --bound) {
    unsigned __int128 product;
    do
      product = static_cast<unsigned __int128>(mix(counter++)) * bound;
    while (uint64_t(product) < -bound % bound);
    std::swap(order[bound - 1], order[uint64_t(product >> 64)]);
  }
  return order;
}

} // namespace tandem::commands
