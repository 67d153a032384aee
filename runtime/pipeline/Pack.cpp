//===- Pack.cpp - values that go between stages in one message ------------===//
#include "runtime/pipeline/Pack.h"

#include <algorithm>

namespace tandem::pipeline {

using artifact::DType;
using artifact::Slot;
using runtime::Tensor;

Pack::Pack(const std::vector<std::string> &names,
           const std::vector<Slot> &slots, artifact::Role role) {
  for (const std::string &name : names) {
    auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot &one) {
      return one.role == role && one.name == name;
    });
    if (slot == slots.end())
      continue;
    slots_.push_back(&*slot);
    offsets_.push_back(bytes_);
    int64_t size = byteSize(slot->dtype);
    for (int64_t extent : slot->shape)
      size *= extent;
    // Where each begins no copy is needed to compute with it.
    constexpr int64_t step = artifact::bufferAlignment;
    bytes_ += (size + step - 1) / step * step;
  }
}

Result<std::unique_ptr<Buffer>>
Pack::take(const std::shared_ptr<runtime::MemoryAccount> &account) {
  if (!free_.empty()) {
    auto buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  auto made = std::make_unique<Buffer>();
  int64_t shape[] = {bytes_};
  auto memory = Tensor::zeros(DType::U8, shape, account);
  if (!memory)
    return std::move(memory).status();
  made->memory = *std::move(memory);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot &slot = *slots_[i];
    std::vector<int64_t> strides(slot.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;)
      strides[d - 1] = strides[d] * slot.shape[d];
    auto part =
        made->memory.viewAs(slot.dtype, slot.shape, strides, offsets_[i]);
    if (!part)
      return std::move(part).status();
    made->parts.push_back(*std::move(part));
  }
  return made;
}

void Pack::giveBack(std::unique_ptr<Buffer> buffer) {
  if (buffer)
    free_.push_back(std::move(buffer));
}

} // namespace tandem::pipeline
