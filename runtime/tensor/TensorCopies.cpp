//===- TensorCopies.cpp - copies between tensors --------------------------===//
//
// Copies of any strides, on a device, the host being one, and between them.
// What is on a device is copied there by its backend on the device's current
// stream; what goes between devices goes as dense bytes.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Backend.h"
#include "runtime/tensor/ElementRows.h"
#include "runtime/tensor/Overlap.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::runtime {

namespace {

template <int64_t size>
void copyRow(char *to, int64_t toStep, const char *from, int64_t fromStep,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStep, from + i * fromStep, size);
}

} // namespace

Extents scaled(std::span<const int64_t> values, int64_t factor) {
  Extents made(values);
  for (int i = 0; i < made.size(); ++i)
    made[i] *= factor;
  return made;
}

void copyElements(void *to, std::span<const int64_t> toStrides,
                  const void *from, std::span<const int64_t> fromStrides,
                  std::span<const int64_t> shape, int64_t size) {
  copyStrided(to, scaled(toStrides, size), from, scaled(fromStrides, size),
              shape, size);
}

void copyStrided(void *to, std::span<const int64_t> toStrides, const void *from,
                 std::span<const int64_t> fromStrides,
                 std::span<const int64_t> shape, int64_t size) {
  int64_t ta = shape.empty() ? size : toStrides.back();
  int64_t sa = shape.empty() ? size : fromStrides.back();
  forEachRow(shape, toStrides, fromStrides,
             [&](int64_t t, int64_t s, int64_t count) {
               char *row = static_cast<char *>(to) + t;
               const char *other = static_cast<const char *>(from) + s;
               if (ta == size && sa == size) {
                 std::memcpy(row, other, count * size);
                 return;
               }
               switch (size) {
               case 1:
                 return copyRow<1>(row, ta, other, sa, count);
               case 2:
                 return copyRow<2>(row, ta, other, sa, count);
               case 4:
                 return copyRow<4>(row, ta, other, sa, count);
               default:
                 return copyRow<8>(row, ta, other, sa, count);
               }
             });
}

/// Checks that there are elements that this program can get at.
Status Tensor::checkElements() const {
  if (!defined())
    return Status::usage("expected a tensor but got none");
  if (!storage_->backend())
    return Status::usage("expected a tensor on device 'cpu' but got one on '" +
                         toString(device()) + "'");
  if (!isBacked())
    return Status::usage(
        "expected a tensor with elements but its storage has " +
        std::to_string(storage_->bytes()) + " bytes");
  return Status::success();
}

Status Tensor::copyFrom(const Tensor &source) {
  if (Status status = checkElements(); !status)
    return status;
  if (Status status = source.checkElements(); !status)
    return status;
  if (dtype_ != source.dtype_ ||
      !std::equal(shape().begin(), shape().end(), source.shape().begin(),
                  source.shape().end()))
    return Status::usage("expected " + describe(dtype_, shape_) + " but got " +
                         describe(source.dtype_, source.shape_));
  bool bothDense = isDense() && source.isDense();
  if (!bothDense && shareMemory(*this, source))
    return Status::usage("cannot copy between overlapping strided views");
  markWritten();
  if (!elements_)
    return Status::success();
  return device() == source.device() ? copyOnDevice(source)
                                     : copyAcross(source);
}

/// Copies within one device. The two overlap only if both are dense.
Status Tensor::copyOnDevice(const Tensor &source) {
  Backend &backend = *storage_->backend();
  Stream stream = currentStream(device());
  useOn(stream);
  source.useOn(stream);
  if (!isDense() || !source.isDense()) {
    int64_t size = byteSize(dtype_);
    Extents toStrides = scaled(strides_, size);
    Extents fromStrides = scaled(source.strides_, size);
    return backend.copyStrided(
        {bytesAt(), source.bytesAt(), shape_, toStrides, fromStrides, size},
        stream);
  }
  return backend.copy(bytesAt(), source.bytesAt(), bytes(), stream);
}

/// Copies between the host and a device, or between two devices, as dense
/// bytes: through dense copies where either side is not. In a capture this is
/// refused, and ends it: a replay would lack the copy, or read the host again.
Status Tensor::copyAcross(const Tensor &source) {
  Backend *own = storage_->backend(), *other = source.storage_->backend();
  Stream stream = currentStream(device());
  Stream otherStream = currentStream(source.device());
  bool isRefused = false;
  for (auto [backend, its] :
       {std::pair(own, stream), std::pair(other, otherStream)})
    if (backend->isCapturing(its)) {
      backend->breakCapture(its);
      isRefused = true;
    }
  if (isRefused)
    return Status::usage("cannot copy from '" + toString(source.device()) +
                         "' to '" + toString(device()) +
                         "' while a stream is captured");
  if (!source.isDense()) {
    Result<Tensor> dense = source.copyTo(source.device());
    return dense ? copyAcross(*dense) : std::move(dense).status();
  }
  if (!isDense()) {
    Result<Tensor> dense = empty(dtype_, shape_, device());
    if (!dense)
      return std::move(dense).status();
    if (Status status = dense->copyAcross(source); !status)
      return status;
    return copyOnDevice(*dense);
  }
  useOn(stream);
  source.useOn(otherStream);
  // The device copies from the host and to it, in the order of its stream. Who
  // reads memory of the host knows no stream: there it has arrived on return.
  if (device().isHost()) {
    if (Status status =
            other->copy(bytesAt(), source.bytesAt(), bytes(), otherStream);
        !status)
      return status;
    return other->finishCopies(bytesAt(), otherStream);
  }
  if (source.device().isHost())
    return own->copy(bytesAt(), source.bytesAt(), bytes(), stream);
  if (device().kind == source.device().kind)
    return own->copyFrom(*other, source.bytesAt(), otherStream, bytesAt(),
                         bytes(), stream);
  // Two drivers, of which neither knows the other's memory.
  Result<Tensor> host = source.onHost();
  return host ? copyAcross(*host) : std::move(host).status();
}

Result<Tensor> Tensor::copyTo(Device device) const {
  if (!defined())
    return Status::usage("expected a tensor but got none");
  Result<Tensor> copy = empty(dtype_, shape_, device);
  if (copy)
    if (Status status = copy->copyFrom(*this); !status)
      return status;
  return copy;
}

Result<Tensor> Tensor::onHost() const {
  return defined() && !device().isHost() ? copyTo(Device{}) : *this;
}

Result<Tensor> Tensor::dense() const {
  if (Status status = checkElements(); !status)
    return status;
  return isDense() ? *this : copyTo(device());
}

Status Tensor::zero() {
  if (Status status = checkElements(); !status)
    return status;
  if (!isDense())
    return fill(0);
  markWritten();
  Stream stream = currentStream(device());
  useOn(stream);
  return elements_ ? storage_->backend()->zero(bytesAt(), bytes(), stream)
                   : Status::success();
}

Status Tensor::fillOnDevice(double value) {
  if (artifact::isFloat(dtype_) && isDense()) {
    markWritten();
    Stream stream = currentStream(device());
    useOn(stream);
    return elements_ ? storage_->backend()->fill(dtype_, bytesAt(), value,
                                                 elements_, stream)
                     : Status::success();
  }
  Result<Tensor> host = empty(dtype_, shape_);
  if (!host)
    return std::move(host).status();
  if (Status status = host->fill(value); !status)
    return status;
  return copyFrom(*host);
}

/// Reads one element; false if that cannot be. A capture of the stream ends,
/// because the host cannot wait for it.
bool Tensor::readOnDevice(char *to, const char *from) const {
  Backend *backend = storage_->backend(); // null: see Storage::backend
  Stream stream = currentStream(device());
  return backend && backend->copy(to, from, byteSize(dtype_), stream).ok();
}

} // namespace tandem::runtime
