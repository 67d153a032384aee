//===- Values.cpp - tensors in messages, and what is said of contexts -----===//
#include "runtime/graph/distributed/Worker.h"

namespace tandem::graph::distributed {

Status unknownContext(uint64_t id) {
  return Status::usage("there is no context " + describeId(id) +
                       ": it was released, or never begun");
}

Status writeValues(Writer &writer, std::span<const Value> values,
                   bool hasHistory) {
  writer.put(static_cast<uint32_t>(values.size()));
  for (const Value &value : values) {
    writer.put(static_cast<uint8_t>(hasHistory && value.edge));
    if (Status status = writer.put(value.tensor); !status)
      return status;
  }
  return Status::success();
}

Result<std::vector<Value>> readValues(Reader &reader,
                                      std::vector<bool> &marked) {
  auto count = reader.get<uint32_t>();
  std::vector<Value> values;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    marked.push_back(reader.get<uint8_t>() != 0);
    Result<Tensor> tensor = reader.tensor();
    if (!tensor)
      return std::move(tensor).status();
    values.emplace_back(std::move(*tensor));
  }
  return values;
}

} // namespace tandem::graph::distributed
