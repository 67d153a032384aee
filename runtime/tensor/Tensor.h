//===- Tensor.h - n-dimensional arrays and their storage ------------------===//
//
// A Tensor is a typed, possibly strided view of a Storage. Copying a Tensor
// shares the storage and allocates nothing. A Storage counts its writes: every
// write through this runtime bumps its version, so that a context can tell
// whether what it saved is still what it saved. Versions belong to storage, not
// to views of it.
//
// A storage that the runtime allocated can be freed and made anew while handles
// keep speaking of it: a handle knows its offset in the storage and not an
// address, and whether its elements are there (`isBacked`).
//
// A handle also carries what grad mode needs: whether it requires grad, whether
// it is a leaf (nothing made it of other tensors), and whether it is one of
// several pieces of a value. These belong to the handle: a view made here has
// none of them, as if it were made with gradients disabled.
//
// Shapes and strides are in elements. Tensors may be read from several threads;
// whoever writes one keeps others away meanwhile.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_TENSOR_H
#define TANDEM_RUNTIME_TENSOR_TENSOR_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/Status.h"
#include "runtime/tensor/Storage.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

struct DLManagedTensor;

namespace tandem::runtime {

using artifact::DType;

/// The largest rank of a tensor.
inline constexpr int maxRank = 16;

/// A short list of sizes or strides, held in place.
class Extents {
public:
  Extents() = default;
  /// Takes the first `maxRank` of `values`; callers check the rank.
  explicit Extents(std::span<const int64_t> values);

  int size() const { return size_; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t &operator[](int i) { return values_[i]; }
  operator std::span<const int64_t>() const {
    return {values_.data(), static_cast<size_t>(size_)};
  }

private:
  std::array<int64_t, maxRank> values_{};
  int size_ = 0;
};

/// Returns "[2, 3]".
std::string toString(std::span<const int64_t> extents);

/// Returns the number of elements of `shape`, or a Status that says why such a
/// shape cannot be: rank, a negative size, more than 2^48 bytes.
Result<int64_t> elementCount(DType dtype, std::span<const int64_t> shape);

/// An n-dimensional array; or nothing (`defined()` false).
class Tensor {
public:
  Tensor() = default;

  /// Returns a new row-major tensor with arbitrary contents, on the host.
  static Result<Tensor>
  empty(DType dtype, std::span<const int64_t> shape,
        std::shared_ptr<MemoryAccount> account = nullptr) {
    return empty(dtype, shape, Device{}, std::move(account));
  }
  /// The same on `device`, for use on its current stream.
  static Result<Tensor> empty(DType dtype, std::span<const int64_t> shape,
                              Device device,
                              std::shared_ptr<MemoryAccount> account = nullptr);
  /// Returns a row-major tensor that begins where `storage` does; fails if that
  /// is too small.
  static Result<Tensor> in(std::shared_ptr<Storage> storage, DType dtype,
                           std::span<const int64_t> shape);
  /// Returns a new row-major tensor of zeros.
  static Result<Tensor>
  zeros(DType dtype, std::span<const int64_t> shape,
        std::shared_ptr<MemoryAccount> account = nullptr) {
    return zeros(dtype, shape, Device{}, std::move(account));
  }
  static Result<Tensor> zeros(DType dtype, std::span<const int64_t> shape,
                              Device device,
                              std::shared_ptr<MemoryAccount> account = nullptr);
  /// Returns a new row-major tensor with the `byteSize(dtype) * elements` bytes
  /// at `data`.
  static Result<Tensor> copyOf(const void *data, DType dtype,
                               std::span<const int64_t> shape);
  /// Returns a tensor over the caller's host memory, without copying. `strides`
  /// (in elements) may be empty: row-major. `release` (may be
  /// empty) runs when the last tensor that shares it is gone.
  static Result<Tensor> wrap(void *data, DType dtype,
                             std::span<const int64_t> shape,
                             std::span<const int64_t> strides = {},
                             std::function<void()> release = {});
  /// The same over memory of `device`, for use on its current stream. Memory
  /// that the device does not know is refused.
  static Result<Tensor> wrapOn(Device device, void *data, DType dtype,
                               std::span<const int64_t> shape,
                               std::span<const int64_t> strides = {},
                               std::function<void()> release = {});

  /// Returns a tensor over the caller's host memory, which is registered with
  /// `device` until the last tensor that shares it is gone: what is copied from
  /// there needs no copy between, and is read when the device comes to it. Of
  /// the host: as `wrap`.
  static Result<Tensor> wrapRegistered(Device device, void *data, DType dtype,
                                       std::span<const int64_t> shape,
                                       std::span<const int64_t> strides = {});

  /// Takes over a DLPack tensor (v0.6 ABI) without copying: its deleter runs
  /// when the last tensor that shares it is gone. On error the caller keeps it.
  /// Of a device: for use on its current stream, which its producer was told.
  static Result<Tensor> fromDLPack(DLManagedTensor *managed);
  /// Exports this tensor without copying; the receiver calls the deleter.
  /// Writes through it are seen by contexts only after `markWritten`. Of a
  /// device: for use on its current stream.
  Result<DLManagedTensor *> toDLPack() const;
  /// The same for use on `consumer`, a stream of the tensor's device: that
  /// waits for the current one.
  Result<DLManagedTensor *> toDLPack(Stream consumer) const;

  bool defined() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  std::span<const int64_t> strides() const { return strides_; }
  int rank() const { return shape_.size(); }
  int64_t elements() const { return elements_; }
  /// Returns the bytes of the elements, without gaps.
  int64_t bytes() const { return elements_ * byteSize(dtype_); }
  Device device() const { return storage_ ? storage_->device() : Device{}; }

  /// True if the elements lie row-major without gaps.
  bool isDense() const;

  /// False if the storage was resized and lacks elements of this tensor.
  bool isBacked() const {
    return !storage_ || !storage_->wasResized() || reachesStorage();
  }
  /// Fails unless they are, where this program can get at them.
  Status checkElements() const;
  /// Returns the number of elements that the storage needs, from its first byte
  /// on, for this tensor to be backed.
  int64_t storageElements() const;

  /// Makes the storage hold `elements` elements of this tensor's type; 0 frees
  /// it. See `Storage::resize`.
  Status resizeStorage(int64_t elements) const;

  bool requiresGrad() const { return requiresGrad_; }
  /// True unless a program made it from tensors that require grad.
  bool isLeaf() const { return isLeaf_; }
  /// The op that made this tensor together with other pieces of one value, or
  /// null.
  const char *partOf() const { return partOf_; }
  /// Makes this handle a leaf that requires grad, or not; an error for integers
  /// and for a tensor that a program made.
  Status setRequiresGrad(bool requiresGrad);
  /// Returns a handle over the same elements that requires no grad.
  Tensor detach() const;
  /// For the executor: the handle of a result. `partOf` must stay.
  void setMade(bool requiresGrad, const char *partOf = nullptr) {
    requiresGrad_ = requiresGrad;
    isLeaf_ = !requiresGrad;
    partOf_ = partOf;
  }

  void takeMarks(const Tensor &other) {
    requiresGrad_ = other.requiresGrad_;
    isLeaf_ = other.isLeaf_;
    partOf_ = other.partOf_;
  }

  /// Returns the address of the first element; null if the storage is freed.
  const void *data() const {
    char *base = storage_ ? static_cast<char *>(storage_->data()) : nullptr;
    return base ? base + offset_ : nullptr;
  }
  template <typename T> const T *data() const {
    return static_cast<const T *>(data());
  }
  /// Returns the address of the first element to write to, and bumps the
  /// storage's version. A write through a pointer kept from earlier is to be
  /// reported with `markWritten`.
  void *mutableData();
  template <typename T> T *mutableData() {
    return static_cast<T *>(mutableData());
  }

  const std::shared_ptr<Storage> &storage() const { return storage_; }
  uint64_t version() const { return storage_ ? storage_->version() : 0; }
  /// Reports a write made behind the runtime's back.
  void markWritten() const {
    if (storage_)
      storage_->bumpVersion();
  }

  /// Returns a view with other sizes and strides, `offset` elements after this
  /// tensor's first; it must lie within the storage.
  Result<Tensor> view(std::span<const int64_t> shape,
                      std::span<const int64_t> strides,
                      int64_t offset = 0) const;
  /// Returns a view of another type, too: `offset` bytes after this tensor's
  /// first element. The storage may be freed: the view then is not backed.
  Result<Tensor> viewAs(DType dtype, std::span<const int64_t> shape,
                        std::span<const int64_t> strides,
                        int64_t byteOffset) const;
  /// Returns the view of the rows [begin, end) of the first dimension.
  Result<Tensor> slice(int64_t begin, int64_t end) const;

  /// Returns this tensor if it is dense, else a dense copy.
  Result<Tensor> dense() const;
  /// Returns a dense tensor of another type: this one if nothing changes.
  /// Floating point values are rounded to nearest even; a value that an integer
  /// type cannot hold is clamped to its ends, NaN becomes 0; a bool is whether
  /// the value is not 0.
  Result<Tensor> to(DType dtype) const;
  /// Returns a dense copy on `device`.
  Result<Tensor> copyTo(Device device) const;
  /// Returns this tensor if it is on the host, else a copy that is.
  Result<Tensor> onHost() const;
  /// Overwrites the elements with those of `source`: same shape and type, any
  /// strides, any device. On one device it is queued on the current stream and
  /// allocates nothing (but where dense elements overlap); what is read or
  /// written on the host is done on return.
  Status copyFrom(const Tensor &source);
  /// Overwrites every element with `value`, converted as by `to`.
  Status fill(double value);
  /// Overwrites every element with 0.
  Status zero();

  /// Returns element number `index` in row-major order as a double (NaN if
  /// there is no such element). Of a device it is fetched, one by one.
  double at(int64_t index) const;

  /// Notes that work queued on a stream of its device uses the tensor, beside
  /// what the runtime itself queues: its memory is not used anew before that.
  void useOn(Stream stream) const {
    if (storage_)
      storage_->useOn(stream);
  }

private:
  Status copyOnDevice(const Tensor &source);
  Status copyAcross(const Tensor &source);
  Status fillOnDevice(double value);
  bool readOnDevice(char *to, const char *from) const;
  static Tensor over(std::shared_ptr<Storage> storage, int64_t offset,
                     DType dtype, std::span<const int64_t> shape,
                     std::span<const int64_t> strides, int64_t elements);
  bool reachesStorage() const;
  char *bytesAt() const {
    return const_cast<char *>(static_cast<const char *>(data()));
  }

  std::shared_ptr<Storage> storage_;
  int64_t offset_ = 0; ///< bytes from the storage's first to this one's
  int64_t elements_ = 0;
  const char *partOf_ = nullptr;
  DType dtype_ = DType::F32;
  bool requiresGrad_ = false, isLeaf_ = true;
  Extents shape_, strides_;
};

/// Returns "f32 [2, 3]".
std::string describe(DType dtype, std::span<const int64_t> shape);

} // namespace tandem::runtime

#endif
