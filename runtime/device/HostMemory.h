//===- HostMemory.h - what a device's model keeps on the host -------------===//
//
// Internal to the runtime. Pinned memory that copies of a device's programs
// write and read while nobody on the host waits for them. It is counted apart
// from the device's, and given back once all that was queued with it has run.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_HOSTMEMORY_H
#define TANDEM_RUNTIME_DEVICE_HOSTMEMORY_H

#include "runtime/device/Backend.h"

namespace tandem::runtime {

class HostMemory {
public:
  HostMemory() = default;
  explicit HostMemory(Backend &backend);

  /// Returns a tensor of the host, in pinned memory of its own.
  Result<Tensor> allocate(artifact::DType dtype,
                          std::span<const int64_t> shape) const;
  /// Notes that what `stream` has been given so far uses the memory.
  Status useUntilNow(Stream stream) const;
  /// Says that the host reads or writes the tensor, after what was noted.
  Status await(const Tensor &tensor, bool isWrite) const;
  /// Returns the bytes that are allocated now.
  int64_t bytes() const;

private:
  struct State;
  /// The memory may outlive the model.
  std::shared_ptr<State> state;
};

} // namespace tandem::runtime

#endif
