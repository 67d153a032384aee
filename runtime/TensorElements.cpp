//===- TensorElements.cpp - copying and converting elements ---------------===//
//
// Element loops over tensors of any strides, in row-major order. Elements are
// moved with memcpy: memory that came from outside may be misaligned.
//
//===----------------------------------------------------------------------===//
#include "runtime/Half.h"
#include "runtime/Overlap.h"
#include "runtime/Tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tandem::runtime {

namespace {

/// Calls `row(offset a, offset b, count)` for each innermost row of two tensors
/// of one shape; offsets in elements. A scalar is one row of one element.
template <typename Fn>
void forEachRow(std::span<const int64_t> shape, std::span<const int64_t> a,
                std::span<const int64_t> b, Fn row) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  int outer = static_cast<int>(shape.size()) - 1;
  if (outer < 0) {
    row(0, 0, 1);
    return;
  }
  std::array<int64_t, maxRank> index{};
  int64_t at = 0, bt = 0;
  while (true) {
    row(at, bt, shape[outer]);
    int d = outer - 1;
    for (; d >= 0; --d) {
      at += a[d];
      bt += b[d];
      if (++index[d] < shape[d])
        break;
      at -= a[d] * shape[d];
      bt -= b[d] * shape[d];
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

template <int64_t size>
void copyRow(char *to, int64_t toStep, const char *from, int64_t fromStep,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStep * size, from + i * fromStep * size, size);
}

template <typename T> T read(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

bool isInteger(DType type) { return type <= DType::I64; }

int64_t loadInteger(DType type, const char *from) {
  switch (type) {
  case DType::Bool:
    return read<uint8_t>(from) != 0;
  case DType::I8:
    return read<int8_t>(from);
  case DType::U8:
    return read<uint8_t>(from);
  case DType::I16:
    return read<int16_t>(from);
  case DType::I32:
    return read<int32_t>(from);
  default:
    return read<int64_t>(from);
  }
}

double loadFloat(DType type, const char *from) {
  switch (type) {
  case DType::F16:
    return floatFromF16(read<uint16_t>(from));
  case DType::BF16:
    return floatFromBF16(read<uint16_t>(from));
  case DType::F32:
    return read<float>(from);
  default:
    return read<double>(from);
  }
}

template <typename T> T clamped(int64_t value) {
  using Limits = std::numeric_limits<T>;
  if (value < int64_t(Limits::min()))
    return Limits::min();
  return value > int64_t(Limits::max()) ? Limits::max() : static_cast<T>(value);
}

template <typename T> T clamped(double value) {
  using Limits = std::numeric_limits<T>;
  // 2^digits: one past the largest value, and exact also for 64 bits.
  double end = std::ldexp(1.0, Limits::digits);
  if (std::isnan(value))
    return 0;
  if (value >= end)
    return Limits::max();
  return value < double(Limits::min()) ? Limits::min() : static_cast<T>(value);
}

template <typename T> void write(char *to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

template <typename From> void store(DType type, char *to, From value) {
  switch (type) {
  case DType::Bool:
    return write<uint8_t>(to, value != 0);
  case DType::I8:
    return write(to, clamped<int8_t>(value));
  case DType::U8:
    return write(to, clamped<uint8_t>(value));
  case DType::I16:
    return write(to, clamped<int16_t>(value));
  case DType::I32:
    return write(to, clamped<int32_t>(value));
  case DType::I64:
    return write(to, clamped<int64_t>(value));
  case DType::F16:
    return write(to,
                 f16FromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::BF16:
    return write(to,
                 bf16FromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::F32:
    return write(to, static_cast<float>(value));
  case DType::F64:
    return write(to, static_cast<double>(value));
  }
}

Status hostOnly(const Tensor &tensor) {
  if (!tensor.defined())
    return Status::usage("expected a tensor but got none");
  if (!tensor.device().isHost())
    return Status::usage("expected a tensor on device 'cpu' but got one on '" +
                         toString(tensor.device()) + "'");
  if (!tensor.isBacked())
    return Status::usage(
        "expected a tensor with elements but its storage has " +
        std::to_string(tensor.storage()->bytes()) + " bytes");
  return Status::success();
}

} // namespace

Status Tensor::copyFrom(const Tensor &source) {
  if (Status status = hostOnly(*this); !status)
    return status;
  if (Status status = hostOnly(source); !status)
    return status;
  if (dtype_ != source.dtype_ ||
      !std::equal(shape().begin(), shape().end(), source.shape().begin(),
                  source.shape().end()))
    return Status::usage("expected " + describe(dtype_, shape_) + " but got " +
                         describe(source.dtype_, source.shape_));
  markWritten();
  char *to = bytesAt();
  const char *from = source.bytesAt();
  int64_t size = byteSize(dtype_);
  if (isDense() && source.isDense()) {
    if (elements_)
      std::memmove(to, from, bytes());
    return Status::success();
  }
  if (shareMemory(*this, source))
    return Status::usage("cannot copy between overlapping strided views");
  int64_t ta = rank() ? strides_[rank() - 1] : 1;
  int64_t sa = rank() ? source.strides_[rank() - 1] : 1;
  forEachRow(shape_, strides_, source.strides_,
             [&](int64_t t, int64_t s, int64_t count) {
               char *row = to + t * size;
               const char *other = from + s * size;
               if (ta == 1 && sa == 1) {
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
  return Status::success();
}

Result<Tensor> Tensor::dense() const {
  if (Status status = hostOnly(*this); !status)
    return status;
  if (isDense())
    return *this;
  Result<Tensor> copy = empty(dtype_, shape_);
  if (copy)
    if (Status status = copy->copyFrom(*this); !status)
      return status;
  return copy;
}

Result<Tensor> Tensor::to(DType dtype) const {
  if (dtype == dtype_)
    return dense();
  if (Status status = hostOnly(*this); !status)
    return status;
  Result<Tensor> copy = empty(dtype, shape_);
  if (!copy)
    return copy;
  char *to = copy->bytesAt();
  const char *from = bytesAt();
  int64_t toSize = byteSize(dtype), fromSize = byteSize(dtype_);
  int64_t ts = rank() ? copy->strides_[rank() - 1] : 1;
  int64_t fs = rank() ? strides_[rank() - 1] : 1;
  forEachRow(shape_, copy->strides_, strides_,
             [&](int64_t t, int64_t f, int64_t count) {
               for (int64_t i = 0; i < count; ++i) {
                 char *target = to + (t + i * ts) * toSize;
                 const char *source = from + (f + i * fs) * fromSize;
                 if (isInteger(dtype_))
                   store(dtype, target, loadInteger(dtype_, source));
                 else
                   store(dtype, target, loadFloat(dtype_, source));
               }
             });
  return copy;
}

Status Tensor::fill(double value) {
  if (Status status = hostOnly(*this); !status)
    return status;
  markWritten();
  char *to = bytesAt();
  int64_t size = byteSize(dtype_);
  int64_t step = rank() ? strides_[rank() - 1] : 1;
  forEachRow(shape_, strides_, strides_,
             [&](int64_t t, int64_t, int64_t count) {
               for (int64_t i = 0; i < count; ++i)
                 store(dtype_, to + (t + i * step) * size, value);
             });
  return Status::success();
}

double Tensor::at(int64_t index) const {
  if (!defined() || !device().isHost() || !isBacked() || index < 0 ||
      index >= elements_)
    return std::numeric_limits<double>::quiet_NaN();
  int64_t offset = 0;
  for (int i = rank() - 1; i >= 0; --i) {
    offset += index % shape_[i] * strides_[i];
    index /= shape_[i];
  }
  const char *from = bytesAt() + offset * byteSize(dtype_);
  return isInteger(dtype_) ? static_cast<double>(loadInteger(dtype_, from))
                           : loadFloat(dtype_, from);
}

} // namespace tandem::runtime
