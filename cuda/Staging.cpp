//===- Staging.cpp - copies of host memory that is not pinned -------------===//
//
// See Staging.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Staging.h"

#include <algorithm>
#include <cstring>

namespace tandem::cuda {

using namespace driver;

namespace {

/// Large enough that a piece takes longer than its event.
constexpr int64_t pieceBytes = int64_t(1) << 21;

} // namespace

Staging::~Staging() {
  Context::Scope scope(context);
  Context::Relaxed relaxed(context);
  for (Piece &piece : pieces) {
    (void)finish(piece).ok();
    if (piece.data)
      context.call().memFreeHost(piece.data);
  }
}

Status Staging::open() {
  Context::Relaxed relaxed(context);
  for (Piece &piece : pieces) {
    if (piece.data)
      continue;
    if (Status status =
            context.check(context.call().memHostAlloc(&piece.data, pieceBytes,
                                                      CU_MEMHOSTALLOC_PORTABLE),
                          "cuMemHostAlloc");
        !status)
      return status;
  }
  return Status::success();
}

Status Staging::start(Piece &piece, void *to, const void *from, int64_t bytes,
                      CUstream stream) {
  if (Status status = context.check(
          context.call().memcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                     reinterpret_cast<CUdeviceptr>(from),
                                     static_cast<size_t>(bytes), stream),
          "cuMemcpyAsync");
      !status)
    return status;
  Result<CUevent> event = events.record(stream);
  if (!event)
    return std::move(event).status();
  piece.event = *event;
  return Status::success();
}

Status Staging::finish(Piece &piece) {
  if (!piece.event)
    return Status::success();
  CUevent event = std::exchange(piece.event, nullptr);
  Context::Relaxed relaxed(context);
  CUresult result = context.call().eventSynchronize(event);
  events.give(event);
  return context.check(result, "cuEventSynchronize");
}

Status Staging::upload(void *to, const void *from, int64_t bytes,
                       CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = open(); !status)
    return status;
  for (int64_t done = 0; done < bytes; done += pieceBytes) {
    Piece &piece = pieces[next++ % pieces.size()];
    int64_t part = std::min(pieceBytes, bytes - done);
    if (Status status = finish(piece); !status)
      return status;
    context.driver().noteHostAccess(piece.data, part, /*isWrite=*/true);
    std::memcpy(piece.data, static_cast<const char *>(from) + done, part);
    if (Status status = start(piece, static_cast<char *>(to) + done, piece.data,
                              part, stream);
        !status)
      return status;
  }
  return Status::success();
}

Status Staging::download(void *to, const void *from, int64_t bytes,
                         CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = open(); !status)
    return status;
  int64_t started = 0, done = 0;
  size_t first = next;
  while (done < bytes) {
    while (started < bytes && next - first < pieces.size()) {
      Piece &piece = pieces[next % pieces.size()];
      if (Status status = finish(piece); !status)
        return status;
      int64_t part = std::min(pieceBytes, bytes - started);
      if (Status status =
              start(piece, piece.data,
                    static_cast<const char *>(from) + started, part, stream);
          !status)
        return status;
      started += part;
      ++next;
    }
    Piece &piece = pieces[first++ % pieces.size()];
    if (Status status = finish(piece); !status)
      return status;
    int64_t part = std::min(pieceBytes, bytes - done);
    context.driver().noteHostAccess(piece.data, part, /*isWrite=*/false);
    std::memcpy(static_cast<char *>(to) + done, piece.data, part);
    done += part;
  }
  return Status::success();
}

} // namespace tandem::cuda
