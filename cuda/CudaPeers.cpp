//===- CudaPeers.cpp - copies from one GPU to another ---------------------===//
//
// A copy runs on the stream of the device that it goes to, between two events:
// it waits for the other device's stream, and that one for it. The host waits
// for neither. Where the machine lets one device read the other's memory the
// copy goes straight there; else the driver takes it through the host, and
// where it refuses to (some virtual GPUs), the layer does.
//
//===----------------------------------------------------------------------===//
#include "cuda/CudaDevice.h"
#include "cuda/Handles.h"

#include <algorithm>

namespace tandem::cuda {

using namespace driver;
using runtime::Backend;
using runtime::Stream;

namespace {

bool isRefusal(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED ||
         result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

} // namespace

/// Gives this device access to the other one's memory, once, if it can have it.
/// Contexts say so for what cuMemAlloc made, pools for what is theirs. Without
/// it copies take longer, so only a lost device is an error.
Status CudaDevice::connect(CudaDevice &other) {
  std::lock_guard<std::mutex> lock(peersMutex);
  CUcontext theirs = other.context->handle();
  if (std::ranges::find(peers, theirs) != peers.end())
    return Status::success();
  peers.push_back(theirs);
  const Functions &call = context->call();
  int can = 0;
  CUresult result = call.deviceCanAccessPeer(&can, context->ordinal(),
                                             other.context->ordinal());
  if (!result && can) {
    Context::Relaxed relaxed(*context);
    // Another library of the process may have done so.
    result = call.ctxEnablePeerAccess(theirs, 0);
    if (!result || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      (void)other.memory->shareWith(context->ordinal()).ok();
  }
  return context->isLost() ? context->lostStatus() : Status::success();
}

Status CudaDevice::copyFrom(Backend &from, const void *data, Stream otherStream,
                            void *to, int64_t bytes, Stream stream) {
  auto &other = static_cast<CudaDevice &>(from);
  if (bytes == 0)
    return Status::success();
  // The order of the drivers' waits: each stream's event is of its own context,
  // and may be waited for in the other.
  runtime::Fence before = nullptr, after = nullptr;
  Status status = other.record(before, otherStream);
  if (status)
    status = waitFor(stream, before);
  bool isRefused = false;
  if (status) {
    Context::Scope scope(*context);
    status = scope.status();
    if (status)
      status = connect(other);
    if (status) {
      CUresult result = context->call().memcpyPeerAsync(
          address(to), context->handle(), address(data),
          other.context->handle(), static_cast<size_t>(bytes), cu(stream));
      isRefused = isRefusal(result);
      if (!isRefused)
        status = context->check(result, "cuMemcpyPeerAsync");
    }
  }
  if (isRefused)
    status = copyThroughHost(other, data, otherStream, to, bytes, stream);
  if (status)
    status = record(after, stream);
  if (status)
    status = other.waitFor(otherStream, after);
  other.releaseFence(before);
  releaseFence(after);
  return status
             ? status
             : std::move(status).in("copy from '" + toString(other.device()) +
                                    "' to '" + toString(device()) + "'");
}

Status CudaDevice::copyThroughHost(CudaDevice &other, const void *from,
                                   Stream otherStream, void *to, int64_t bytes,
                                   Stream stream) {
  constexpr int64_t most = int64_t(8) << 20;
  std::vector<char> part(static_cast<size_t>(std::min(bytes, most)));
  Status status;
  for (int64_t done = 0; status.ok() && done < bytes; done += most) {
    int64_t size = std::min(most, bytes - done);
    status = other.copy(part.data(), static_cast<const char *>(from) + done,
                        size, otherStream);
    if (status) // `copy` has read it on return
      status = copy(static_cast<char *>(to) + done, part.data(), size, stream);
  }
  return status;
}

} // namespace tandem::cuda
