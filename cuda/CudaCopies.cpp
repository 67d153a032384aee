//===- CudaCopies.cpp - what moves bytes on a GPU -------------------------===//
//
// Copies in every direction, strided copies, fills and sums. Host memory that
// is not pinned goes through Staging; while a graph is recorded it is refused,
// because the graph would read it again at every replay.
//
//===----------------------------------------------------------------------===//
#include "cuda/BuiltinKernels.h"
#include "cuda/CudaDevice.h"
#include "cuda/Handles.h"
#include "cuda/RegisteredMemory.h"
#include "cuda/StridedLoop.h"
#include "runtime/tensor/Half.h"

#include <algorithm>
#include <bit>

namespace tandem::cuda {

using namespace driver;
using artifact::DType;
using runtime::Stream;

namespace {

uint64_t bitsOf(DType dtype, double value) {
  switch (dtype) {
  case DType::F16:
    return runtime::f16FromFloat(runtime::floatRoundedToOdd(value));
  case DType::BF16:
    return runtime::bf16FromFloat(runtime::floatRoundedToOdd(value));
  case DType::F32:
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  default:
    return std::bit_cast<uint64_t>(value);
  }
}

Status wrongType(const char *what, DType dtype) {
  return Status::usage("expected floating-point elements to " +
                       std::string(what) + " but got " +
                       std::string(spelling(dtype)));
}

} // namespace

Status CudaDevice::launch(const char *kernel, int64_t threads,
                          void **parameters, CUstream stream) {
  // Enough blocks to fill the device; the kernels loop.
  int64_t blocks =
      std::clamp<int64_t>((threads + builtinBlock - 1) / builtinBlock, 1,
                          int64_t(context->multiprocessors()) * 8);
  return context->check(context->call().launchKernel(
                            builtinFunctions.find(kernel)->second,
                            static_cast<unsigned>(blocks), 1, 1, builtinBlock,
                            1, 1, 0, stream, parameters, nullptr),
                        kernel);
}

Status CudaDevice::copy(void *to, const void *from, int64_t bytes,
                        Stream stream) {
  if (bytes == 0 || to == from)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  MemoryKind toKind = kindOf(to), fromKind = kindOf(from);
  if (toKind == MemoryKind::Device && fromKind == MemoryKind::Device &&
      address(to) < address(from) + static_cast<uint64_t>(bytes) &&
      address(from) < address(to) + static_cast<uint64_t>(bytes))
    return copyOverlapping(to, from, bytes, stream);
  if (toKind != MemoryKind::Pageable && fromKind != MemoryKind::Pageable) {
    Status status = context->check(
        context->call().memcpyAsync(address(to), address(from),
                                    static_cast<size_t>(bytes), cu(stream)),
        "cuMemcpyAsync");
    if (status && toKind == MemoryKind::Pinned)
      status = noteCopy(*context, *events, to, cu(stream));
    if (status && fromKind == MemoryKind::Pinned)
      status = noteCopy(*context, *events, from, cu(stream));
    return status;
  }
  if (context->isCapturing(cu(stream)))
    return forbid("to copy host memory that is not pinned", cu(stream));
  if (toKind == MemoryKind::Device)
    return staging->upload(to, from, bytes, cu(stream));
  if (fromKind == MemoryKind::Device)
    return staging->download(to, from, bytes, cu(stream));
  // Between host and host, in the stream's order.
  if (Status status = context->check(
          context->call().streamSynchronize(cu(stream)), "cuStreamSynchronize");
      !status)
    return status;
  std::copy_n(static_cast<const char *>(from), bytes, static_cast<char *>(to));
  return Status::success();
}

/// By way of new memory: the driver's copies are undefined here.
Status CudaDevice::copyOverlapping(void *to, const void *from, int64_t bytes,
                                   Stream stream) {
  Result<void *> between = allocate(bytes, stream);
  if (!between)
    return std::move(between).status();
  Status status = copy(*between, from, bytes, stream);
  if (status)
    status = copy(to, *between, bytes, stream);
  release(*between, stream, {});
  return status;
}

Status CudaDevice::copyStrided(const runtime::StridedCopy &copy,
                               Stream stream) {
  StridedLoop loop(copy);
  if (loop.isEmpty)
    return Status::success();
  if (loop.dimensions.empty())
    return this->copy(copy.to, copy.from, loop.rowBytes, stream);
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  // The copy engine takes long rows; short ones are faster in a kernel.
  constexpr int64_t longRow = 512, maxPitch = INT32_MAX;
  const StridedLoop::Dimension &rows = loop.dimensions.front();
  if (loop.dimensions.size() == 1 && loop.rowBytes >= longRow &&
      std::min(rows.to, rows.from) >= loop.rowBytes &&
      std::max(rows.to, rows.from) <= maxPitch) {
    CUDA_MEMCPY2D parameters = {};
    parameters.srcMemoryType = parameters.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    parameters.srcDevice = address(copy.from);
    parameters.srcPitch = static_cast<size_t>(rows.from);
    parameters.dstDevice = address(copy.to);
    parameters.dstPitch = static_cast<size_t>(rows.to);
    parameters.WidthInBytes = static_cast<size_t>(loop.rowBytes);
    parameters.Height = static_cast<size_t>(rows.size);
    return context->check(
        context->call().memcpy2DAsync(&parameters, cu(stream)),
        "cuMemcpy2DAsync");
  }

  int64_t word = loop.wordBytes(copy.to, copy.from);
  const char *kernel = word == 8   ? "tandem_copy_b64"
                       : word == 4 ? "tandem_copy_b32"
                       : word == 2 ? "tandem_copy_b16"
                                   : "tandem_copy_b8";
  if (loop.rowBytes > word)
    loop.dimensions.insert(loop.dimensions.begin(),
                           {loop.rowBytes / word, word, word});
  CopyParameters parameters;
  parameters.elements = 1;
  size_t inner = std::min<size_t>(loop.dimensions.size(), stridedRank);
  for (size_t d = 0; d < inner; ++d) {
    parameters.layout.sizes[d] = loop.dimensions[d].size;
    parameters.layout.toStrides[d] = loop.dimensions[d].to;
    parameters.layout.fromStrides[d] = loop.dimensions[d].from;
    parameters.elements *= static_cast<uint64_t>(loop.dimensions[d].size);
  }
  // What is beyond the kernel's rank: one launch for each of its indices.
  std::vector<int64_t> index(loop.dimensions.size() - inner, 0);
  while (true) {
    int64_t toOffset = 0, fromOffset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      toOffset += index[d] * loop.dimensions[inner + d].to;
      fromOffset += index[d] * loop.dimensions[inner + d].from;
    }
    parameters.to = address(copy.to) + static_cast<uint64_t>(toOffset);
    parameters.from = address(copy.from) + static_cast<uint64_t>(fromOffset);
    void *arguments[] = {&parameters.to, &parameters.from, &parameters.elements,
                         &parameters.layout};
    if (Status status =
            launch(kernel, static_cast<int64_t>(parameters.elements), arguments,
                   cu(stream));
        !status)
      return status;
    size_t d = 0;
    while (d < index.size() && ++index[d] == loop.dimensions[inner + d].size)
      index[d++] = 0;
    if (d == index.size())
      return Status::success();
  }
}

Status CudaDevice::zero(void *to, int64_t bytes, Stream stream) {
  if (bytes == 0)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  return context->check(
      context->call().memsetD8Async(address(to), 0, static_cast<size_t>(bytes),
                                    cu(stream)),
      "cuMemsetD8Async");
}

Status CudaDevice::add(DType dtype, void *to, const void *x, const void *y,
                       int64_t elements, Stream stream) {
  const char *kernel = addKernelName(dtype);
  if (!kernel)
    return wrongType("add", dtype);
  if (elements == 0)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  AddParameters parameters{address(to), address(x), address(y),
                           static_cast<uint64_t>(elements)};
  void *arguments[] = {&parameters.to, &parameters.x, &parameters.y,
                       &parameters.elements};
  int64_t vector = 16 / byteSize(dtype);
  return launch(kernel, (elements + vector - 1) / vector, arguments,
                cu(stream));
}

Status CudaDevice::fill(DType dtype, void *to, double value, int64_t elements,
                        Stream stream) {
  if (!isFloat(dtype))
    return wrongType("fill", dtype);
  if (elements == 0)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  FillParameters parameters{address(to), bitsOf(dtype, value),
                            static_cast<uint64_t>(elements)};
  auto count = static_cast<size_t>(elements);
  const Functions &call = context->call();
  switch (byteSize(dtype)) {
  case 2:
    return context->check(
        call.memsetD16Async(parameters.to,
                            static_cast<unsigned short>(parameters.bits), count,
                            cu(stream)),
        "cuMemsetD16Async");
  case 4:
    return context->check(
        call.memsetD32Async(parameters.to,
                            static_cast<unsigned>(parameters.bits), count,
                            cu(stream)),
        "cuMemsetD32Async");
  default: {
    void *arguments[] = {&parameters.to, &parameters.bits,
                         &parameters.elements};
    return launch("tandem_fill_b64", elements, arguments, cu(stream));
  }
  }
}

} // namespace tandem::cuda
