//===- TensorElements.cpp - reading and converting elements ---------------===//
//
// Element loops over tensors of any strides, in row-major order. Elements are
// moved with memcpy: memory that came from outside may be misaligned. What is
// on a device is converted on the host.
//
//===----------------------------------------------------------------------===//
#include "runtime/ElementRows.h"
#include "runtime/Half.h"
#include "runtime/Tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tandem::runtime {

namespace {

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

} // namespace

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
                 if (isInteger(dtype_))
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
  return isInteger(dtype_) ? static_cast<double>(loadInteger(dtype_, from))
                           : loadFloat(dtype_, from);
}

} // namespace tandem::runtime
