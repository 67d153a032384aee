//===- DLPack.cpp - tensors from and to other libraries -------------------===//
//
// Import and export of DLManagedTensor (runtime/dlpack.h) without copying. An
// imported tensor of a device that this program cannot open is kept as it is,
// so that the call it is given to can name the argument; its memory is never
// touched.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "runtime/device/Backend.h"

#include <limits>
#include <new>

namespace tandem::runtime {

namespace {

std::optional<DType> fromDLPackType(DLDataType type) {
  if (type.lanes != 1)
    return std::nullopt;
  switch (type.code * 1000 + type.bits) {
  case kDLInt * 1000 + 8:
    return DType::I8;
  case kDLInt * 1000 + 16:
    return DType::I16;
  case kDLInt * 1000 + 32:
    return DType::I32;
  case kDLInt * 1000 + 64:
    return DType::I64;
  case kDLUInt * 1000 + 8:
    return DType::U8;
  case kDLUInt * 1000 + 16:
    return DType::U16;
  case kDLUInt * 1000 + 32:
    return DType::U32;
  case kDLUInt * 1000 + 64:
    return DType::U64;
  case kDLFloat8E4M3FN * 1000 + 8:
    return DType::F8E4M3FN;
  case kDLFloat8E5M2 * 1000 + 8:
    return DType::F8E5M2;
  case kDLFloat * 1000 + 16:
    return DType::F16;
  case kDLFloat * 1000 + 32:
    return DType::F32;
  case kDLFloat * 1000 + 64:
    return DType::F64;
  case kDLBfloat * 1000 + 16:
    return DType::BF16;
  case kDLBool * 1000 + 8:
    return DType::Bool;
  default:
    return std::nullopt;
  }
}

DLDataType toDLPackType(DType type) {
  auto bits = static_cast<uint8_t>(byteSize(type) * 8);
  switch (type) {
  case DType::Bool:
    return {kDLBool, bits, 1};
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64:
    return {kDLUInt, bits, 1};
  case DType::F8E4M3FN:
    return {kDLFloat8E4M3FN, bits, 1};
  case DType::F8E5M2:
    return {kDLFloat8E5M2, bits, 1};
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
    return {kDLInt, bits, 1};
  case DType::BF16:
    return {kDLBfloat, bits, 1};
  default:
    return {kDLFloat, bits, 1};
  }
}

Device fromDLPackDevice(DLDevice device) {
  switch (static_cast<int>(device.device_type)) {
  case kDLCPU:
  case kDLCUDAHost:
    return {DeviceKind::Cpu, 0};
  case kDLCUDA:
  case kDLCUDAManaged:
    return {DeviceKind::Cuda, device.device_id};
  case kDLExtDev:
    return {DeviceKind::CudaEmu, device.device_id};
  default:
    return {DeviceKind::Other, device.device_id};
  }
}

/// What an exported tensor keeps alive.
struct Export {
  DLManagedTensor managed;
  Tensor tensor;
  Extents shape, strides;
};

} // namespace

Result<Tensor> Tensor::fromDLPack(DLManagedTensor *managed) {
  if (!managed)
    return Status::usage("expected a DLPack tensor but got null");
  const DLTensor &from = managed->dl_tensor;
  std::optional<DType> dtype = fromDLPackType(from.dtype);
  if (!dtype)
    return Status::usage(
        "expected a DLPack type that Tandem has but got code " +
        std::to_string(from.dtype.code) + " with " +
        std::to_string(from.dtype.bits) + " bits and " +
        std::to_string(from.dtype.lanes) + " lanes");
  if (from.ndim < 0 || from.ndim > maxRank)
    return Status::usage("expected a DLPack tensor of 0 to " +
                         std::to_string(maxRank) + " dimensions but got " +
                         std::to_string(from.ndim));
  if (from.ndim && !from.shape)
    return Status::usage("expected a DLPack tensor of " +
                         std::to_string(from.ndim) +
                         " dimensions to have a shape but got null");
  auto rank = static_cast<size_t>(from.ndim);
  std::span<const int64_t> shape{from.shape, rank}, strides;
  if (from.strides)
    strides = {from.strides, rank};
  char *data = static_cast<char *>(from.data);
  if (data && from.byte_offset > std::numeric_limits<uintptr_t>::max() -
                                     reinterpret_cast<uintptr_t>(data))
    return Status::usage("expected a DLPack tensor to begin within the memory "
                         "but got the byte offset " +
                         std::to_string(from.byte_offset));
  if (data)
    data += from.byte_offset;
  return wrapOn(fromDLPackDevice(from.device), data, *dtype, shape, strides,
                [managed] {
                  if (managed->deleter)
                    managed->deleter(managed);
                });
}

Result<DLManagedTensor *> Tensor::toDLPack(Stream consumer) const {
  Result<DLManagedTensor *> made = toDLPack();
  Backend *backend = storage_ ? storage_->backend() : nullptr;
  if (!made || !backend)
    return made;
  useOn(consumer);
  if (Status status = backend->wait(consumer, currentStream(device()));
      !status) {
    (*made)->deleter(*made);
    return status;
  }
  return made;
}

Result<DLManagedTensor *> Tensor::toDLPack() const {
  if (!defined())
    return Status::usage("expected a tensor to export but got none");
  if (device().kind == DeviceKind::Other)
    return Status::unsupported("cannot export a tensor on '" +
                               toString(device()) + "'");
  if (!isBacked())
    return Status::usage("expected a tensor with elements to export but its "
                         "storage is freed");
  auto *made = new (std::nothrow) Export;
  if (!made)
    return Status::failed("out of memory");
  // The receiver keeps the address.
  storage_->fix();
  storage_->expose();
  useOn(currentStream(device()));
  made->tensor = *this;
  made->shape = shape_;
  made->strides = strides_;
  DLTensor &to = made->managed.dl_tensor;
  to.data = const_cast<void *>(data());
  to.device = {static_cast<DLDeviceType>(device().kind), device().index};
  to.ndim = rank();
  to.dtype = toDLPackType(dtype_);
  to.shape = &made->shape[0];
  to.strides = &made->strides[0];
  to.byte_offset = 0;
  made->managed.manager_ctx = made;
  made->managed.deleter = [](DLManagedTensor *self) {
    delete static_cast<Export *>(self->manager_ctx);
  };
  return &made->managed;
}

} // namespace tandem::runtime
