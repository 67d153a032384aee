//===- Tensor.cpp - n-dimensional arrays and their storage ----------------===//
//
// Storage, shapes and views. A tensor that was made here lies within its
// storage: `view` and `wrap` check that once, with overflow, so that nothing
// later does. Element access and conversion are in TensorElements.cpp, DLPack
// in DLPack.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/Tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tandem::runtime {

namespace {

constexpr int64_t maxTensorBytes = int64_t(1) << 48;

/// The distance in bytes from a tensor's first element to the lowest byte and
/// past the highest byte of its elements; false on overflow.
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
  return true;
}

Extents rowMajor(std::span<const int64_t> shape) {
  Extents strides(shape);
  int64_t step = 1;
  for (int i = strides.size() - 1; i >= 0; --i) {
    int64_t size = shape[i];
    strides[i] = step;
    step *= size > 0 ? size : 1;
  }
  return strides;
}

} // namespace

void MemoryAccount::add(int64_t bytes) {
  int64_t now = current.fetch_add(bytes) + bytes;
  int64_t highest = peak.load();
  while (now > highest && !peak.compare_exchange_weak(highest, now)) {
  }
}

std::string toString(Device device) {
  if (device.kind == DeviceKind::Cpu)
    return "cpu";
  std::string name = device.kind == DeviceKind::Cuda ? "cuda" : "device";
  return name + ":" + std::to_string(device.index);
}

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

Result<std::shared_ptr<Storage>>
Storage::allocate(int64_t bytes, std::shared_ptr<MemoryAccount> account) {
  auto align = static_cast<int64_t>(storageAlignment);
  if (bytes < 0 || bytes > maxTensorBytes)
    return Status::failed("cannot allocate " + std::to_string(bytes) +
                          " bytes");
  // At least one line, so that no storage has a null or shared address.
  int64_t rounded = bytes == 0 ? align : (bytes + align - 1) / align * align;
  void *data = std::aligned_alloc(storageAlignment, rounded);
  if (!data)
    return Status::failed("out of memory: cannot allocate " +
                          std::to_string(rounded) + " bytes");
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = rounded;
  storage->owned_ = true;
  storage->account_ = std::move(account);
  if (storage->account_)
    storage->account_->add(rounded);
  return storage;
}

std::shared_ptr<Storage> Storage::wrap(void *data, int64_t bytes, Device device,
                                       std::function<void()> release) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->release_ = std::move(release);
  return storage;
}

Storage::~Storage() {
  if (owned_)
    std::free(data_);
  if (account_)
    account_->remove(bytes_);
  if (release_)
    release_();
}

Tensor Tensor::over(std::shared_ptr<Storage> storage, void *data, DType dtype,
                    std::span<const int64_t> shape,
                    std::span<const int64_t> strides, int64_t elements) {
  Tensor tensor;
  tensor.storage_ = std::move(storage);
  tensor.data_ = data;
  tensor.elements_ = elements;
  tensor.dtype_ = dtype;
  tensor.shape_ = Extents(shape);
  tensor.strides_ = Extents(strides);
  return tensor;
}

Result<Tensor> Tensor::empty(DType dtype, std::span<const int64_t> shape,
                             std::shared_ptr<MemoryAccount> account) {
  Result<int64_t> count = elementCount(dtype, shape);
  if (!count)
    return count.status();
  auto storage =
      Storage::allocate(*count * byteSize(dtype), std::move(account));
  if (!storage)
    return storage.status();
  void *data = (*storage)->data();
  return over(std::move(*storage), data, dtype, shape, rowMajor(shape), *count);
}

Result<Tensor> Tensor::zeros(DType dtype, std::span<const int64_t> shape,
                             std::shared_ptr<MemoryAccount> account) {
  Result<Tensor> tensor = empty(dtype, shape, std::move(account));
  if (tensor)
    std::memset(tensor->data_, 0, tensor->bytes());
  return tensor;
}

Result<Tensor> Tensor::copyOf(const void *data, DType dtype,
                              std::span<const int64_t> shape) {
  Result<Tensor> tensor = empty(dtype, shape);
  if (tensor && tensor->elements_) {
    if (!data)
      return Status::usage("expected data for a tensor of type " +
                           describe(dtype, shape) + " but got null");
    std::memcpy(tensor->data_, data, tensor->bytes());
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
  Extents steps = strides.empty() ? rowMajor(shape) : Extents(strides);
  Reach reach;
  if (!reachOf(shape, steps, byteSize(dtype), reach) ||
      reach.high - reach.low > maxTensorBytes)
    return Status::usage("expected a tensor within 2^48 bytes but got shape " +
                         toString(shape) + " with strides " + toString(steps));
  auto storage =
      Storage::wrap(static_cast<char *>(data) + reach.low,
                    reach.high - reach.low, device, std::move(release));
  return over(std::move(storage), data, dtype, shape, steps, *count);
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
  return data_;
}

Result<Tensor> Tensor::view(std::span<const int64_t> shape,
                            std::span<const int64_t> strides,
                            int64_t offset) const {
  if (!defined())
    return Status::usage("expected a tensor to view but got none");
  Result<int64_t> count = elementCount(dtype_, shape);
  if (!count)
    return count.status();
  if (strides.size() != shape.size())
    return Status::usage("expected " + std::to_string(shape.size()) +
                         " strides but got " + toString(strides));
  int64_t size = byteSize(dtype_), from, low, high;
  int64_t before =
      static_cast<char *>(data_) - static_cast<char *>(storage_->data());
  Reach reach;
  if (!reachOf(shape, strides, size, reach) ||
      __builtin_mul_overflow(offset, size, &from) ||
      __builtin_add_overflow(from, before, &from) ||
      __builtin_add_overflow(from, reach.low, &low) ||
      __builtin_add_overflow(from, reach.high, &high) || low < 0 ||
      high > storage_->bytes())
    return Status::usage("expected a view within the storage (" +
                         std::to_string(storage_->bytes()) +
                         " bytes) but got shape " + toString(shape) +
                         " with strides " + toString(strides) + " at element " +
                         std::to_string(offset));
  return over(storage_, static_cast<char *>(storage_->data()) + from, dtype_,
              shape, strides, *count);
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
  // no storage.
  return view(shape, strides_, end == begin ? 0 : begin * strides_[0]);
}

AddressRange addressRange(const Tensor &tensor) {
  Reach reach;
  // A tensor's reach was checked when it was made.
  if (!tensor.elements() || !reachOf(tensor.shape(), tensor.strides(),
                                     byteSize(tensor.dtype()), reach))
    return {};
  auto first = reinterpret_cast<uintptr_t>(tensor.data());
  return {first + reach.low, first + reach.high};
}

bool mayOverlapItself(const Tensor &tensor) {
  if (tensor.isDense())
    return false;
  // By rising stride: each step must clear all that the smaller ones reach.
  std::array<std::pair<int64_t, int64_t>, maxRank> dims;
  int count = 0;
  for (int i = 0; i < tensor.rank(); ++i)
    if (tensor.shape()[i] > 1)
      dims[count++] = {std::abs(tensor.strides()[i]), tensor.shape()[i]};
  std::sort(dims.begin(), dims.begin() + count);
  int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (dims[i].first <= reach)
      return true;
    reach += dims[i].first * (dims[i].second - 1);
  }
  return false;
}

} // namespace tandem::runtime
