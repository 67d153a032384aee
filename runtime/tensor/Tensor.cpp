//===- Tensor.cpp - n-dimensional arrays ----------------------------------===//
//
// Shapes and views. A tensor that was made here lies within its
// storage: `view` and `wrap` check that once, with overflow, so that nothing
// later does. Copies are in TensorCopies.cpp, element access and conversion in
// TensorElements.cpp, DLPack in DLPack.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Tensor.h"
#include "runtime/device/Backend.h"
#include "runtime/tensor/Strides.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace tandem::runtime {

namespace {

/// The distance in bytes from a tensor's first element to the lowest byte and
/// past the highest byte of its elements; false on overflow, also of the bytes
/// between the two.
struct Reach {
  int64_t low = 0, high = 0;
};

bool reachOf(std::span<const int64_t> shape, std::span<const int64_t> strides,
             int64_t elementBytes, Reach &reach) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) {
      reach = {};
      return true;
    }
    int64_t step;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step))
      return false;
    int64_t &side = step < 0 ? low : high;
    if (__builtin_add_overflow(side, step, &side))
      return false;
  }
  if (__builtin_add_overflow(high, 1, &high) ||
      __builtin_mul_overflow(low, elementBytes, &reach.low) ||
      __builtin_mul_overflow(high, elementBytes, &reach.high))
    return false;
  int64_t extent;
  return !__builtin_sub_overflow(reach.high, reach.low, &extent);
}

/// Checks that the device knows the memory. Of a device that this program
/// cannot open nothing is known; the call that gets the tensor says so.
Status checkOwned(Device device, const char *data, int64_t bytes) {
  Result<Backend *> backend = backendOf(device);
  if (!backend || bytes == 0 ||
      ((*backend)->owns(data) && (*backend)->owns(data + bytes - 1)))
    return Status::success();
  return Status::usage("expected memory of '" + toString(device) +
                       "' but got a pointer that this device does not know");
}

} // namespace

Extents::Extents(std::span<const int64_t> values) {
  for (int64_t value : values) {
    if (size_ == maxRank)
      break;
    values_[size_++] = value;
  }
}

std::string toString(std::span<const int64_t> extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  return std::string(spelling(dtype)) + " " + toString(shape);
}

Result<int64_t> elementCount(DType dtype, std::span<const int64_t> shape) {
  if (shape.size() > size_t(maxRank))
    return Status::usage("expected at most " + std::to_string(maxRank) +
                         " dimensions but got " + std::to_string(shape.size()));
  int64_t count = 1;
  bool empty = false, tooLarge = false;
  for (int64_t size : shape) {
    if (size < 0)
      return Status::usage("expected sizes of at least 0 but got shape " +
                           toString(shape));
    empty |= size == 0;
    if (size > 0 && (__builtin_mul_overflow(count, size, &count) ||
                     count > maxTensorBytes / byteSize(dtype)))
      tooLarge = true;
    if (tooLarge)
      count = 1;
  }
  if (tooLarge)
    return Status::usage("expected a tensor of at most 2^48 bytes but got "
                         "shape " +
                         toString(shape));
  return empty ? 0 : count;
}

Tensor Tensor::over(std::shared_ptr<Storage> storage, int64_t offset,
                    DType dtype, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, int64_t elements) {
  Tensor tensor;
  tensor.storage_ = std::move(storage);
  tensor.offset_ = offset;
  tensor.elements_ = elements;
  tensor.dtype_ = dtype;
  tensor.shape_ = Extents(shape);
  tensor.strides_ = Extents(strides);
  // A stride that nothing steps by may be any number, but sums of strides must
  // be numbers.
  for (int i = 0; i < tensor.rank(); ++i)
    if (int64_t &step = tensor.strides_[i];
        step > maxTensorBytes || step < -maxTensorBytes)
      step = 0;
  return tensor;
}

Result<Tensor> Tensor::empty(DType dtype, std::span<const int64_t> shape,
                             Device device,
                             std::shared_ptr<MemoryAccount> account) {
  Result<int64_t> count = elementCount(dtype, shape);
  if (!count)
    return count.status();
  auto storage =
      Storage::allocate(*count * byteSize(dtype), std::move(account), device);
  if (!storage)
    return storage.status();
  return over(std::move(*storage), 0, dtype, shape, rowMajorStrides(shape),
              *count);
}

Result<Tensor> Tensor::in(std::shared_ptr<Storage> storage, DType dtype,
                          std::span<const int64_t> shape) {
  Result<int64_t> count = elementCount(dtype, shape);
  if (!count)
    return count.status();
  if (int64_t bytes = *count * byteSize(dtype); bytes > storage->bytes())
    return Status::usage("expected a storage of at least " +
                         std::to_string(bytes) + " bytes but got " +
                         std::to_string(storage->bytes()));
  return over(std::move(storage), 0, dtype, shape, rowMajorStrides(shape),
              *count);
}

Result<Tensor> Tensor::zeros(DType dtype, std::span<const int64_t> shape,
                             Device device,
                             std::shared_ptr<MemoryAccount> account) {
  Result<Tensor> tensor = empty(dtype, shape, device, std::move(account));
  if (tensor && tensor->elements_)
    if (Status status = tensor->storage_->backend()->zero(
            tensor->bytesAt(), tensor->bytes(), currentStream(device));
        !status)
      return status;
  return tensor;
}

Result<Tensor> Tensor::copyOf(const void *data, DType dtype,
                              std::span<const int64_t> shape) {
  Result<Tensor> tensor = empty(dtype, shape);
  if (tensor && tensor->elements_) {
    if (!data)
      return Status::usage("expected data for a tensor of type " +
                           describe(dtype, shape) + " but got null");
    std::memcpy(tensor->bytesAt(), data, tensor->bytes());
  }
  return tensor;
}

Result<Tensor> Tensor::wrap(void *data, DType dtype,
                            std::span<const int64_t> shape,
                            std::span<const int64_t> strides,
                            std::function<void()> release) {
  return wrapOn(Device{}, data, dtype, shape, strides, std::move(release));
}

Result<Tensor> Tensor::wrapOn(Device device, void *data, DType dtype,
                              std::span<const int64_t> shape,
                              std::span<const int64_t> strides,
                              std::function<void()> release) {
  Result<int64_t> count = elementCount(dtype, shape);
  if (!count)
    return count.status();
  if (*count && !data)
    return Status::usage("expected data for a tensor of type " +
                         describe(dtype, shape) + " but got null");
  if (!strides.empty() && strides.size() != shape.size())
    return Status::usage("expected " + std::to_string(shape.size()) +
                         " strides but got " + toString(strides));
  Extents steps = strides.empty() ? rowMajorStrides(shape) : Extents(strides);
  Reach reach;
  if (!reachOf(shape, steps, byteSize(dtype), reach) ||
      reach.high - reach.low > maxTensorBytes)
    return Status::usage("expected a tensor within 2^48 bytes but got shape " +
                         toString(shape) + " with strides " + toString(steps));
  if (Status status = checkOwned(device, static_cast<char *>(data) + reach.low,
                                 *count ? reach.high - reach.low : 0);
      !status)
    return status;
  auto storage =
      Storage::wrap(static_cast<char *>(data) + reach.low,
                    reach.high - reach.low, device, std::move(release));
  return over(std::move(storage), -reach.low, dtype, shape, steps, *count);
}

namespace {

/// Host memory that a device knows.
struct Registered {
  Backend *backend = nullptr;
  void *data = nullptr; ///< null: it is not registered

  Registered() = default;
  Registered(const Registered &) = delete;
  Registered &operator=(const Registered &) = delete;
  ~Registered() {
    if (data)
      backend->unregisterHost(data);
  }
};

} // namespace

Result<Tensor> Tensor::wrapRegistered(Device device, void *data, DType dtype,
                                      std::span<const int64_t> shape,
                                      std::span<const int64_t> strides) {
  Result<Backend *> backend = backendOf(device);
  if (!backend)
    return std::move(backend).status();
  auto registered = std::make_shared<Registered>();
  registered->backend = *backend;
  Result<Tensor> made = wrap(data, dtype, shape, strides, [registered] {});
  if (!made || device.isHost() || !made->elements())
    return made;
  Storage &storage = *made->storage_;
  if (Status status = (*backend)->registerHost(storage.data(), storage.bytes());
      !status)
    return status;
  registered->data = storage.data();
  storage.allowDirect();
  return made;
}

bool Tensor::isDense() const {
  if (elements_ <= 1)
    return true;
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step)
      return false;
    step *= shape_[i];
  }
  return true;
}

void *Tensor::mutableData() {
  markWritten();
  return bytesAt();
}

bool Tensor::reachesStorage() const {
  Reach reach;
  return !elements_ || (reachOf(shape_, strides_, byteSize(dtype_), reach) &&
                        offset_ + reach.high <= storage_->bytes());
}

int64_t Tensor::storageElements() const {
  Reach reach;
  if (!elements_ || !reachOf(shape_, strides_, byteSize(dtype_), reach))
    return 0;
  return (offset_ + reach.high + byteSize(dtype_) - 1) / byteSize(dtype_);
}

Status Tensor::resizeStorage(int64_t elements) const {
  if (!defined())
    return Status::usage("expected a tensor but got none");
  int64_t bytes;
  if (elements < 0 ||
      __builtin_mul_overflow(elements, byteSize(dtype_), &bytes))
    return Status::usage("expected a storage of 0 to 2^48 bytes but got " +
                         std::to_string(elements) + " elements");
  return storage_->resize(bytes);
}

Status Tensor::setRequiresGrad(bool requiresGrad) {
  if (!defined())
    return Status::usage("expected a tensor but got none");
  if (requiresGrad && !artifact::isFloat(dtype_))
    return Status::usage("expected a floating point type for a tensor that "
                         "requires grad but got '" +
                         std::string(spelling(dtype_)) + "'");
  if (!isLeaf_)
    return Status::usage("expected a leaf but got a tensor that a program "
                         "made; detach it first");
  requiresGrad_ = requiresGrad;
  return Status::success();
}

Tensor Tensor::detach() const {
  Tensor other = *this;
  other.setMade(false);
  return other;
}

Result<Tensor> Tensor::view(std::span<const int64_t> shape,
                            std::span<const int64_t> strides,
                            int64_t offset) const {
  int64_t bytes;
  if (__builtin_mul_overflow(offset, byteSize(dtype_), &bytes))
    return Status::usage("expected a view within the storage but got offset " +
                         std::to_string(offset));
  return viewAs(dtype_, shape, strides, bytes);
}

Result<Tensor> Tensor::viewAs(DType dtype, std::span<const int64_t> shape,
                              std::span<const int64_t> strides,
                              int64_t byteOffset) const {
  if (!defined())
    return Status::usage("expected a tensor to view but got none");
  Result<int64_t> count = elementCount(dtype, shape);
  if (!count)
    return count.status();
  if (strides.size() != shape.size())
    return Status::usage("expected " + std::to_string(shape.size()) +
                         " strides but got " + toString(strides));
  int64_t from, low, high;
  Reach reach;
  bool fits = reachOf(shape, strides, byteSize(dtype), reach) &&
              !__builtin_add_overflow(offset_, byteOffset, &from) &&
              !__builtin_add_overflow(from, reach.low, &low) &&
              !__builtin_add_overflow(from, reach.high, &high) && low >= 0;
  // What a freed storage will hold is not known; an access asks again.
  bool isFreed = storage_->wasResized() && storage_->bytes() == 0;
  if (!fits || high > (isFreed ? maxTensorBytes : storage_->bytes()))
    return Status::usage("expected a view within the storage (" +
                         std::to_string(storage_->bytes()) +
                         " bytes) but got shape " + toString(shape) +
                         " with strides " + toString(strides) + " at byte " +
                         std::to_string(byteOffset));
  return over(storage_, from, dtype, shape, strides, *count);
}

Result<Tensor> Tensor::slice(int64_t begin, int64_t end) const {
  if (!defined() || rank() == 0)
    return Status::usage("expected a tensor with rows but got " +
                         (defined() ? describe(dtype_, shape_) : "none"));
  if (begin < 0 || end < begin || end > shape_[0])
    return Status::usage("expected rows within [0, " +
                         std::to_string(shape_[0]) + ") but got [" +
                         std::to_string(begin) + ", " + std::to_string(end) +
                         ")");
  Extents shape = shape_;
  shape[0] = end - begin;
  // An empty slice stays at the first element: past the last row there may be
  // no storage, and strides that nothing steps by lead anywhere.
  bool isEmpty = end == begin || elements_ == 0;
  return view(shape, strides_, isEmpty ? 0 : begin * strides_[0]);
}

} // namespace tandem::runtime
