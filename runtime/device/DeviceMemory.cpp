//===- DeviceMemory.cpp - where a model's memory lies ---------------------===//
//
// See DeviceMemory.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/DeviceMemory.h"
#include "runtime/tensor/ElementRows.h"
#include "runtime/tensor/Strides.h"

#include <utility>

namespace tandem::runtime {

Result<DeviceMemory> DeviceMemory::at(Device device) {
  Result<Backend *> backend = backendOf(device);
  if (!backend)
    return std::move(backend).status();
  DeviceMemory made;
  made.device_ = device;
  made.backend_ = *backend;
  return made;
}

bool DeviceMemory::isUsable(const Tensor &tensor) const {
  return tensor.device() == device_ && tensor.isDense() &&
         reinterpret_cast<uintptr_t>(tensor.data()) % storageAlignment == 0;
}

std::string DeviceMemory::names() const {
  return "'" + toString(device_) + (isHost() ? "'" : "' or 'cpu'");
}

Status DeviceMemory::copy(void *to, const void *from, int64_t bytes) const {
  if (bytes == 0 || to == from)
    return Status::success();
  return backend_->copy(to, from, bytes, currentStream(device_));
}

PinnedBuffer::~PinnedBuffer() {
  if (!data_)
    return;
  // After a failure of the device nothing uses the memory any more.
  (void)await().ok();
  backend_->releaseFence(fence_);
  backend_->releasePinned(data_);
}

void PinnedBuffer::swap(PinnedBuffer &other) {
  std::swap(backend_, other.backend_);
  std::swap(data_, other.data_);
  std::swap(fence_, other.fence_);
}

Status PinnedBuffer::reserve(Backend &backend, int64_t bytes) {
  if (data_ || bytes == 0)
    return Status::success();
  Result<void *> made = backend.allocatePinned(bytes);
  if (!made)
    return std::move(made).status();
  backend_ = &backend;
  data_ = *made;
  return Status::success();
}

Status Upload::reserve(Backend &backend, int64_t bytes) {
  for (PinnedBuffer &buffer : buffers)
    if (Status status = buffer.reserve(backend, bytes); !status)
      return status;
  return Status::success();
}

Status Upload::copy(Tensor &to, const Tensor &from) {
  if (!to.elements())
    return Status::success();
  PinnedBuffer &buffer = buffers[next];
  next = 1 - next;
  if (Status status = buffer.await(); !status)
    return status;
  copyElements(buffer.forHost(to.bytes(), /*isWrite=*/true),
               rowMajorStrides(to.shape()), from.data(), from.strides(),
               to.shape(), byteSize(to.dtype()));
  Stream stream = currentStream(to.device());
  to.useOn(stream);
  if (Status status = to.storage()->backend()->copy(
          to.mutableData(), buffer.forDevice(), to.bytes(), stream);
      !status)
    return status;
  return buffer.useUntilNow(stream);
}

Status Download::reserve(Backend &backend, int64_t bytes) {
  return buffer.reserve(backend, bytes);
}

Status Download::start(const Tensor &from, Tensor &to) {
  if (from.elements()) {
    Stream stream = currentStream(from.device());
    from.useOn(stream);
    if (Status status = from.storage()->backend()->copy(
            buffer.forDevice(), from.data(), from.bytes(), stream);
        !status)
      return status;
  }
  to_ = to;
  return Status::success();
}

void Download::finish(bool isThere) {
  if (isThere && to_.elements())
    copyElements(to_.mutableData(), to_.strides(),
                 buffer.forHost(to_.bytes(), /*isWrite=*/false),
                 rowMajorStrides(to_.shape()), to_.shape(),
                 byteSize(to_.dtype()));
  to_ = Tensor();
}

} // namespace tandem::runtime
