//===- CApiTensors.cpp - the C API: tensors and devices -------------------===//
//
// Tensors, where they are, and the streams that calls relate to. See CApi.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/CApi.h"
#include "runtime/device/Backend.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::capi;

namespace {

bool isDType(tdm_dtype dtype) {
  return dtype >= TDM_BOOL && dtype <= TDM_F8E5M2;
}

Status checkType(tdm_dtype dtype, int rank, const int64_t *shape) {
  if (!isDType(dtype))
    return Status::usage("expected a tdm_dtype but got " +
                         std::to_string(static_cast<int>(dtype)));
  if (rank < 0 || rank > maxRank)
    return Status::usage("expected a rank of 0 to " + std::to_string(maxRank) +
                         " but got " + std::to_string(rank));
  return rank && !shape ? null("shape") : Status::success();
}

} // namespace

tdm_status tdm_tensor_empty(tdm_tensor **tensor) {
  return call([&]() -> Status {
    return tensor ? give(Tensor(), tensor) : null("place for the tensor");
  });
}

tdm_status tdm_tensor_zeros(tdm_dtype dtype, int rank, const int64_t *shape,
                            tdm_tensor **tensor) {
  return call([&]() -> Status {
    if (!tensor)
      return null("place for the tensor");
    if (Status status = checkType(dtype, rank, shape); !status)
      return status;
    return give(Tensor::zeros(static_cast<DType>(dtype),
                              {shape, static_cast<size_t>(rank)}),
                tensor);
  });
}

tdm_status tdm_tensor_zeros_on(const char *device, tdm_dtype dtype, int rank,
                               const int64_t *shape, tdm_tensor **tensor) {
  return call([&]() -> Status {
    if (!device || !tensor)
      return null(device ? "place for the tensor" : "device");
    if (Status status = checkType(dtype, rank, shape); !status)
      return status;
    Result<Device> found = parseDevice(device);
    if (!found)
      return std::move(found).status();
    return give(Tensor::zeros(static_cast<DType>(dtype),
                              {shape, static_cast<size_t>(rank)}, *found),
                tensor);
  });
}

/// `device` is null for the host. Registered memory is the host's.
static tdm_status wrap(const char *device, void *data, tdm_dtype dtype,
                       int rank, const int64_t *shape, const int64_t *strides,
                       tdm_tensor **tensor, bool isRegistered = false) {
  return call([&]() -> Status {
    if (!tensor)
      return null("place for the tensor");
    if (Status status = checkType(dtype, rank, shape); !status)
      return status;
    Result<Device> found = device ? parseDevice(device) : Device{};
    if (!found)
      return std::move(found).status();
    auto count = static_cast<size_t>(rank);
    std::span<const int64_t> steps;
    if (strides)
      steps = {strides, count};
    // Elements before `data` are not what the caller gave.
    if (std::any_of(steps.begin(), steps.end(),
                    [](int64_t step) { return step < 0; }))
      return Status::usage(
          "expected strides of at least 0 but got " + toString(steps) +
          "; a view of a tensor over the whole memory may have others");
    if (isRegistered)
      return give(Tensor::wrapRegistered(*found, data,
                                         static_cast<DType>(dtype),
                                         {shape, count}, steps),
                  tensor);
    return give(Tensor::wrapOn(*found, data, static_cast<DType>(dtype),
                               {shape, count}, steps),
                tensor);
  });
}

tdm_status tdm_tensor_wrap(void *data, tdm_dtype dtype, int rank,
                           const int64_t *shape, const int64_t *strides,
                           tdm_tensor **tensor) {
  return wrap(nullptr, data, dtype, rank, shape, strides, tensor);
}

tdm_status tdm_tensor_wrap_on(const char *device, void *data, tdm_dtype dtype,
                              int rank, const int64_t *shape,
                              const int64_t *strides, tdm_tensor **tensor) {
  if (!device)
    return call([] { return null("device"); });
  return wrap(device, data, dtype, rank, shape, strides, tensor);
}

tdm_status tdm_tensor_wrap_registered(const char *device, void *data,
                                      tdm_dtype dtype, int rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      tdm_tensor **tensor) {
  if (!device)
    return call([] { return null("device"); });
  return wrap(device, data, dtype, rank, shape, strides, tensor,
              /*isRegistered=*/true);
}

tdm_status tdm_tensor_from_dlpack(DLManagedTensor *managed,
                                  tdm_tensor **tensor) {
  return call([&]() -> Status {
    if (!tensor)
      return null("place for the tensor");
    // The handle first: once the tensor is taken over, nothing may fail.
    auto made = std::make_unique<tdm_tensor>();
    Result<Tensor> taken = Tensor::fromDLPack(managed);
    if (!taken)
      return std::move(taken).status();
    made->tensor = std::move(*taken);
    *tensor = made.release();
    return Status::success();
  });
}

static tdm_status toDLPack(const tdm_tensor *tensor, DLManagedTensor **managed,
                           std::optional<Stream> consumer) {
  return call([&]() -> Status {
    if (!tensor || !managed)
      return null(tensor ? "place for the DLPack tensor" : "tensor");
    Result<DLManagedTensor *> made = consumer
                                         ? tensor->tensor.toDLPack(*consumer)
                                         : tensor->tensor.toDLPack();
    if (!made)
      return std::move(made).status();
    *managed = *made;
    return Status::success();
  });
}

tdm_status tdm_tensor_to_dlpack(const tdm_tensor *tensor,
                                DLManagedTensor **managed) {
  return toDLPack(tensor, managed, std::nullopt);
}

tdm_status tdm_tensor_to_dlpack_on(const tdm_tensor *tensor, void *stream,
                                   DLManagedTensor **managed) {
  return toDLPack(tensor, managed, stream);
}

tdm_status tdm_tensor_copy_to(const tdm_tensor *tensor, const char *device,
                              tdm_tensor **copy) {
  return call([&]() -> Status {
    if (!tensor || !device || !copy)
      return null(!tensor   ? "tensor"
                  : !device ? "device"
                            : "place for the copy");
    Result<Device> found = parseDevice(device);
    return found ? give(tensor->tensor.copyTo(*found), copy)
                 : std::move(found).status();
  });
}

tdm_status tdm_tensor_use_on(const tdm_tensor *tensor, void *stream) {
  return call([&]() -> Status {
    if (!tensor)
      return null("tensor");
    tensor->tensor.useOn(stream);
    return Status::success();
  });
}

const char *tdm_tensor_device(const tdm_tensor *tensor) {
  thread_local std::string name;
  if (tdm_tensor_rank(tensor) < 0)
    return nullptr;
  name = toString(tensor->tensor.device());
  return name.c_str();
}

tdm_status tdm_stream_set_current(const char *device, void *stream) {
  return call([&]() -> Status {
    if (!device)
      return null("device");
    Result<Device> found = parseDevice(device);
    if (found && found->isHost() && stream)
      return Status::usage(std::string("expected a null stream of '") + device +
                           "', which has none");
    if (found)
      setCurrentStream(*found, stream);
    return std::move(found).status();
  });
}

tdm_status tdm_synchronize(const char *device) {
  return call([&]() -> Status {
    if (!device)
      return null("device");
    Result<Device> found = parseDevice(device);
    if (!found)
      return std::move(found).status();
    Result<Backend *> backend = backendOf(*found);
    if (!backend)
      return std::move(backend).status();
    return (*backend)->synchronize(currentStream(*found));
  });
}

void tdm_tensor_free(tdm_tensor *tensor) { delete tensor; }

tdm_dtype tdm_tensor_dtype(const tdm_tensor *tensor) {
  return tensor ? static_cast<tdm_dtype>(tensor->tensor.dtype()) : TDM_F32;
}

int tdm_tensor_rank(const tdm_tensor *tensor) {
  return tensor && tensor->tensor.defined() ? tensor->tensor.rank() : -1;
}

const int64_t *tdm_tensor_shape(const tdm_tensor *tensor) {
  return tdm_tensor_rank(tensor) < 0 ? nullptr : tensor->tensor.shape().data();
}

const int64_t *tdm_tensor_strides(const tdm_tensor *tensor) {
  return tdm_tensor_rank(tensor) < 0 ? nullptr
                                     : tensor->tensor.strides().data();
}

int64_t tdm_tensor_elements(const tdm_tensor *tensor) {
  return tensor ? tensor->tensor.elements() : 0;
}

void *tdm_tensor_data(const tdm_tensor *tensor) {
  if (!tensor)
    return nullptr;
  if (const auto &storage = tensor->tensor.storage())
    storage->expose();
  return const_cast<void *>(tensor->tensor.data());
}

tdm_status tdm_tensor_view(const tdm_tensor *tensor, int rank,
                           const int64_t *shape, const int64_t *strides,
                           int64_t offset, tdm_tensor **view) {
  return call([&]() -> Status {
    if (!tensor || !view)
      return null(tensor ? "place for the tensor" : "tensor");
    if (Status status = checkType(TDM_F32, rank, shape); !status)
      return status;
    if (rank && !strides)
      return null("list of strides");
    auto count = static_cast<size_t>(rank);
    return give(tensor->tensor.view({shape, count}, {strides, count}, offset),
                view);
  });
}

tdm_status tdm_tensor_detach(const tdm_tensor *tensor, tdm_tensor **detached) {
  return call([&]() -> Status {
    if (!tensor || !detached)
      return null(tensor ? "place for the tensor" : "tensor");
    return give(tensor->tensor.detach(), detached);
  });
}

tdm_status tdm_tensor_resize_storage(tdm_tensor *tensor, int64_t elements) {
  return call([&]() -> Status {
    if (!tensor)
      return null("tensor");
    return tensor->tensor.resizeStorage(elements);
  });
}

uint64_t tdm_tensor_version(const tdm_tensor *tensor) {
  return tensor ? tensor->tensor.version() : 0;
}

tdm_status tdm_tensor_set_requires_grad(tdm_tensor *tensor, int requires_grad) {
  return call([&]() -> Status {
    return tensor ? tensor->tensor.setRequiresGrad(requires_grad != 0)
                  : null("tensor");
  });
}

int tdm_tensor_requires_grad(const tdm_tensor *tensor) {
  return tensor && tensor->tensor.requiresGrad();
}

int tdm_tensor_is_leaf(const tdm_tensor *tensor) {
  return tensor && tensor->tensor.isLeaf();
}

const char *tdm_tensor_part_of(const tdm_tensor *tensor) {
  return tensor ? tensor->tensor.partOf() : nullptr;
}

void tdm_tensor_mark_written(tdm_tensor *tensor) {
  if (tensor)
    tensor->tensor.markWritten();
}

/// Checks a copy between a tensor and `bytes` bytes of memory.
static Status checkCopy(const tdm_tensor *tensor, const void *data,
                        size_t bytes) {
  if (!tensor)
    return null("tensor");
  const Tensor &own = tensor->tensor;
  if (!own.defined())
    return Status::usage("expected a tensor but got an empty handle");
  if (!own.isBacked())
    return Status::usage(
        "expected a tensor with elements but its storage has " +
        std::to_string(own.storage()->bytes()) + " bytes");
  if (bytes != static_cast<size_t>(own.bytes()))
    return Status::usage("expected " + std::to_string(own.bytes()) +
                         " bytes for " + describe(own.dtype(), own.shape()) +
                         " but got " + std::to_string(bytes));
  return bytes && !data ? null("place for the data") : Status::success();
}

tdm_status tdm_tensor_write(tdm_tensor *tensor, const void *data,
                            size_t bytes) {
  return call([&]() -> Status {
    if (Status status = checkCopy(tensor, data, bytes); !status)
      return status;
    Tensor &to = tensor->tensor;
    if (to.isDense() &&
        to.device().isHost()) { // allocates nothing: batches come this way
      if (bytes)
        std::memcpy(to.mutableData(), data, bytes);
      return Status::success();
    }
    auto memory =
        Tensor::wrap(const_cast<void *>(data), to.dtype(), to.shape());
    if (!memory)
      return std::move(memory).status();
    if (Status status = to.copyFrom(*memory); !status || !bytes)
      return status;
    // It may lie in memory that is registered.
    return to.storage()->backend()->finishCopies(data,
                                                 currentStream(to.device()));
  });
}

tdm_status tdm_tensor_read(const tdm_tensor *tensor, void *data, size_t bytes) {
  return call([&]() -> Status {
    if (Status status = checkCopy(tensor, data, bytes); !status)
      return status;
    const Tensor &from = tensor->tensor;
    if (from.isDense() && from.device().isHost()) {
      if (bytes)
        std::memcpy(data, from.data(), bytes);
      return Status::success();
    }
    auto memory = Tensor::wrap(data, from.dtype(), from.shape());
    return memory ? memory->copyFrom(from) : memory.status();
  });
}
