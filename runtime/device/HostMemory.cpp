//===- HostMemory.cpp - what a device's model keeps on the host -----------===//
#include "runtime/device/HostMemory.h"

namespace tandem::runtime {

struct HostMemory::State {
  explicit State(Backend &backend) : backend(backend) {}
  State(const State &) = delete;
  State &operator=(const State &) = delete;
  ~State() { backend.releaseFence(fence); }

  Backend &backend;
  Fence fence = nullptr; ///< after the last use
  MemoryAccount account;
};

HostMemory::HostMemory(Backend &backend)
    : state(std::make_shared<State>(backend)) {}

Result<Tensor> HostMemory::allocate(artifact::DType dtype,
                                    std::span<const int64_t> shape) const {
  Result<int64_t> elements = elementCount(dtype, shape);
  if (!elements)
    return std::move(elements).status();
  // Storages have whole lines, and no null address.
  auto line = static_cast<int64_t>(storageAlignment);
  int64_t bytes = std::max<int64_t>(*elements * byteSize(dtype), 1);
  bytes = (bytes + line - 1) / line * line;
  Result<void *> data = state->backend.allocatePinned(bytes);
  if (!data)
    return std::move(data).status();
  state->account.add(bytes);
  auto release = [owner = state, data = *data, bytes] {
    // After a failure of the device nothing uses the memory any more.
    (void)owner->backend.await(owner->fence).ok();
    owner->backend.releasePinned(data);
    owner->account.remove(bytes);
  };
  return Tensor::wrap(*data, dtype, shape, {}, std::move(release));
}

Status HostMemory::useUntilNow(Stream stream) const {
  // Who replays a capture orders its memory.
  if (!state || state->backend.isCapturing(stream))
    return Status::success();
  return state->backend.record(state->fence, stream);
}

Status HostMemory::await(const Tensor &tensor, bool isWrite) const {
  if (Status status = state->backend.await(state->fence); !status)
    return status;
  state->backend.usePinned(tensor.data(), tensor.bytes(), isWrite);
  return Status::success();
}

int64_t HostMemory::bytes() const {
  return state ? state->account.current.load() : 0;
}

} // namespace tandem::runtime
