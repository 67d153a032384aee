//===- EntryCopies.cpp - copies and fills ---------------------------------===//
#include "cuda/emulator/Copies.h"
#include "cuda/emulator/Entry.h"

using namespace tandem::emulator;

namespace tandem::cuda::driver {

static CopyShape line(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CopyShape shape;
  shape.to = static_cast<uintptr_t>(to);
  shape.from = static_cast<uintptr_t>(from);
  shape.width = bytes;
  return shape;
}

static CUdeviceptr pointerTo(const void *host) {
  return reinterpret_cast<uintptr_t>(host);
}

static CUresult copy(CUdeviceptr to, Side toSide, CUdeviceptr from,
                     Side fromSide, size_t bytes, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    return copyOn(m, on, line(to, from, bytes), toSide, fromSide);
  });
}

/// On the default stream; returns when it is done.
static CUresult copyNow(CUdeviceptr to, Side toSide, CUdeviceptr from,
                        Side fromSide, size_t bytes) {
  return withStream(nullptr, [&](Machine &m, Stream &on) {
    if (CUresult result = m.captureUnsafe())
      return result;
    if (CUresult result =
            copyOn(m, on, line(to, from, bytes), toSide, fromSide))
      return result;
    return m.await(on.last, *on.device);
  });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
  return copy(to, Side::Any, from, Side::Any, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  return copy(to, Side::Device, pointerTo(from), Side::Host, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  return copy(pointerTo(to), Side::Host, from, Side::Device, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  return copy(to, Side::Device, from, Side::Device, bytes, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext,
                           CUdeviceptr from, CUcontext fromContext,
                           size_t bytes, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!deviceOf(toContext) || !deviceOf(fromContext))
      return CUDA_ERROR_INVALID_CONTEXT;
    if (toContext != fromContext && !m.traits.canCopyPeers)
      return CUDA_ERROR_NOT_SUPPORTED;
    return copyOn(m, on, line(to, from, bytes), Side::Device, Side::Device);
  });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return copyNow(to, Side::Device, pointerTo(from), Side::Host, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return copyNow(pointerTo(to), Side::Host, from, Side::Device, bytes);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *description, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!description)
      return CUDA_ERROR_INVALID_VALUE;
    CopyShape shape;
    Side to, from;
    if (CUresult result = shapeOf(as3D(*description), shape, to, from))
      return result;
    return copyOn(m, on, shape, to, from);
  });
}

static CUresult fill(CUdeviceptr to, uint32_t value, unsigned elementBytes,
                     size_t count, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (m.failures.strikes(Failures::Fill))
      return CUDA_ERROR_INVALID_VALUE;
    FillShape shape;
    shape.to = static_cast<uintptr_t>(to);
    shape.value = value;
    shape.elementBytes = elementBytes;
    shape.width = count;
    Command command;
    if (CUresult result = makeFill(m, shape, command))
      return result;
    return count ? m.push(on, std::move(command)) : CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  return fill(to, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                          CUstream stream) {
  return fill(to, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream stream) {
  return fill(to, value, 4, count, stream);
}

} // namespace tandem::cuda::driver
