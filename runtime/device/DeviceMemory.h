//===- DeviceMemory.h - where a model's memory lies -----------------------===//
//
// Internal to the runtime. A model lives on the host or on one device, and all
// that it copies goes through here or through Tensor. Tensors of the host that
// go to a device, or come from one, pass through pinned memory: an upload has
// two buffers by turns, so that the host fills one while the device still reads
// the other, and nothing waits for the device's computation; a download is read
// after one wait for all of a call.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_DEVICEMEMORY_H
#define TANDEM_RUNTIME_DEVICE_DEVICEMEMORY_H

#include "runtime/device/Backend.h"

namespace tandem::runtime {

class DeviceMemory {
public:
  DeviceMemory() = default;
  static Result<DeviceMemory> at(Device device);

  Device device() const { return device_; }
  Backend &backend() const { return *backend_; }
  bool isHost() const { return device_.isHost(); }
  bool isCapturing(Stream stream) const {
    return backend_->isCapturing(stream);
  }
  /// True if a kernel can read or write the tensor where it is.
  bool isUsable(const Tensor &tensor) const;
  /// True if a call may be given the tensor: it is here or on the host.
  bool reaches(const Tensor &tensor) const {
    return tensor.device().isHost() || tensor.device() == device_;
  }
  /// Returns "'cuda:0' or 'cpu'".
  std::string names() const;

  /// Copies bytes that are here, on the current stream.
  Status copy(void *to, const void *from, int64_t bytes) const;

private:
  Device device_;
  Backend *backend_ = nullptr;
};

/// Host memory that the device copies from and to directly.
class PinnedBuffer {
public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer &&other) noexcept { swap(other); }
  PinnedBuffer &operator=(PinnedBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedBuffer();

  /// Allocates the memory, once.
  Status reserve(Backend &backend, int64_t bytes);
  /// Returns the memory, which the host is about to read, or to write.
  void *forHost(int64_t bytes, bool isWrite) const {
    backend_->usePinned(data_, bytes, isWrite);
    return data_;
  }
  /// Returns the memory for the device.
  void *forDevice() const { return data_; }
  /// Notes that what `stream` has been given so far uses the memory.
  Status useUntilNow(Stream stream) { return backend_->record(fence_, stream); }
  /// Returns when all that was noted is done.
  Status await() { return backend_->await(fence_); }

private:
  void swap(PinnedBuffer &other);

  Backend *backend_ = nullptr;
  void *data_ = nullptr;
  Fence fence_ = nullptr;
};

/// The way of one argument from the host to another device.
class Upload {
public:
  Status reserve(Backend &backend, int64_t bytes);
  /// Queues the copy of a host tensor to a dense one of the device, on the
  /// current stream. The host tensor was read on return.
  Status copy(Tensor &to, const Tensor &from);

private:
  PinnedBuffer buffers[2];
  int next = 0;
};

/// The way of one result from another device to the host.
class Download {
public:
  Status reserve(Backend &backend, int64_t bytes);
  /// Queues the copy of a dense tensor of the device, on the current stream.
  Status start(const Tensor &from, Tensor &to);
  bool isStarted() const { return !!to_.defined(); }
  /// Hands over what `start` copied, which must be there; or forgets it.
  void finish(bool isThere);

private:
  PinnedBuffer buffer;
  Tensor to_;
};

} // namespace tandem::runtime

#endif
