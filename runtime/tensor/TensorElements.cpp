//===- TensorElements.cpp - reading and converting elements ---------------===//
//
// Element loops over tensors of any strides, in row-major order. Elements are
// moved with memcpy: memory that came from outside may be misaligned. Loops run
// on the host: what is on a device is copied there to be converted, and filled
// there if the device cannot.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/ElementRows.h"
#include "runtime/tensor/Half.h"
#include "runtime/tensor/Tensor.h"

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

namespace tandem::runtime {

namespace {

template <typename T> T read(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// An integer of any type but u64.
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
  case DType::U16:
    return read<uint16_t>(from);
  case DType::I32:
    return read<int32_t>(from);
  case DType::U32:
    return read<uint32_t>(from);
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
  case DType::F8E4M3FN:
    return floatFromF8E4M3FN(read<uint8_t>(from));
  case DType::F8E5M2:
    return floatFromF8E5M2(read<uint8_t>(from));
  case DType::F32:
    return read<float>(from);
  default:
    return read<double>(from);
  }
}

template <typename T, std::integral From> T clamped(From value) {
  using Limits = std::numeric_limits<T>;
  if (std::cmp_less(value, Limits::min()))
    return Limits::min();
  return std::cmp_greater(value, Limits::max()) ? Limits::max()
                                                : static_cast<T>(value);
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
  case DType::U16:
    return write(to, clamped<uint16_t>(value));
  case DType::U32:
    return write(to, clamped<uint32_t>(value));
  case DType::U64:
    return write(to, clamped<uint64_t>(value));
  case DType::F16:
    return write(to,
                 f16FromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::BF16:
    return write(to,
                 bf16FromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::F8E4M3FN:
    return write(
        to, f8E4M3FNFromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::F8E5M2:
    return write(
        to, f8E5M2FromFloat(floatRoundedToOdd(static_cast<double>(value))));
  case DType::F32:
    return write(to, static_cast<float>(value));
  case DType::F64:
    return write(to, static_cast<double>(value));
  }
}

} // namespace

void fillElements(DType dtype, void *to, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, double value) {
  int64_t size = byteSize(dtype);
  int64_t step = shape.empty() ? 1 : strides.back();
  forEachRow(shape, strides, strides, [&](int64_t t, int64_t, int64_t count) {
    char *row = static_cast<char *>(to) + t * size;
    for (int64_t i = 0; i < count; ++i)
      store(dtype, row + i * step * size, value);
  });
}

Result<Tensor> Tensor::to(DType dtype) const {
  if (dtype == dtype_)
    return dense();
  if (Status status = checkElements(); !status)
    return status;
  if (!device().isHost()) {
    Result<Tensor> host = copyTo(Device{});
    Result<Tensor> made = host ? host->to(dtype) : std::move(host);
    return made ? made->copyTo(device()) : std::move(made);
  }
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
                 if (dtype_ == DType::U64)
                   store(dtype, target, read<uint64_t>(source));
                 else if (artifact::isInteger(dtype_))
                   store(dtype, target, loadInteger(dtype_, source));
                 else
                   store(dtype, target, loadFloat(dtype_, source));
               }
             });
  return copy;
}

Status Tensor::fill(double value) {
  if (Status status = checkElements(); !status)
    return status;
  if (!device().isHost())
    return fillOnDevice(value);
  markWritten();
  fillElements(dtype_, bytesAt(), shape_, strides_, value);
  return Status::success();
}

double Tensor::at(int64_t index) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (!defined() || !isBacked() || index < 0 || index >= elements_)
    return none;
  int64_t offset = 0;
  for (int i = rank() - 1; i >= 0; --i) {
    offset += index % shape_[i] * strides_[i];
    index /= shape_[i];
  }
  const char *from = bytesAt() + offset * byteSize(dtype_);
  char element[sizeof(int64_t)];
  if (!device().isHost()) {
    if (!readOnDevice(element, from))
      return none;
    from = element;
  }
  if (dtype_ == DType::U64)
    return static_cast<double>(read<uint64_t>(from));
  return artifact::isInteger(dtype_)
             ? static_cast<double>(loadInteger(dtype_, from))
             : loadFloat(dtype_, from);
}

} // namespace tandem::runtime
