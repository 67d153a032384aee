//===- MemoryCache.cpp - the device's memory, kept for the next use -------===//
//
// Sizes are rounded so that different requests of about the same size share
// blocks: below 1 MiB to eighths of a power of two, above to whole MiB. A block
// serves requests down to 8/9 of its size.
//
//===----------------------------------------------------------------------===//
#include "cuda/MemoryCache.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace tandem::cuda {

using namespace driver;

namespace {

constexpr int64_t smallest = 512, large = int64_t(1) << 20;

} // namespace

int64_t MemoryCache::rounded(int64_t bytes) {
  int64_t step = large;
  if (bytes < large)
    step = std::max<int64_t>(
        smallest,
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes))) / 16);
  return (bytes + step - 1) / step * step;
}

Status MemoryCache::open() {
  if (!context.hasPools())
    return Status::success();
  CUmemPoolProps properties = {};
  properties.allocType = 1;
  properties.location.type = 1;
  properties.location.id = context.device().index;
  if (Status status = context.check(
          context.call().memPoolCreate(&pool, &properties), "cuMemPoolCreate");
      !status)
    return status;
  // The driver keeps what it has: to synchronize must not give memory away.
  uint64_t everything = UINT64_MAX;
  return context.check(
      context.call().memPoolSetAttribute(
          pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything),
      "cuMemPoolSetAttribute");
}

Status MemoryCache::shareWith(CUdevice device) {
  if (!pool) // of cuMemAlloc: the contexts' access is enough
    return Status::success();
  CUmemAccessDesc access = {{1, device}, 3};
  return context.check(context.call().memPoolSetAccess(pool, &access, 1),
                       "cuMemPoolSetAccess");
}

MemoryCache::~MemoryCache() {
  Context::Scope scope(context);
  // The device ends, and with it whatever others still do there.
  bool isDone =
      context.check(context.call().ctxSynchronize(), "cuCtxSynchronize").ok();
  for (auto &[stream, its] : kept) {
    for (Block &block : its.blocks)
      if (isDone)
        giveBack(block);
    if (its.done)
      events.give(its.done);
  }
  for (Block &block : retired)
    giveBack(block);
  for (auto &[capture, blocks] : captured)
    for (Block &block : blocks)
      giveBack(block);
  if (pool)
    context.call().memPoolDestroy(pool);
}

Result<void *> MemoryCache::allocate(int64_t bytes, CUstream stream) {
  int64_t wanted = rounded(bytes);
  std::lock_guard<std::mutex> lock(mutex);
  void *data = takeFree(keptOf(stream)->blocks, wanted, Users::Done, stream);
  if (!data) {
    Result<void *> made = fromDriver(wanted, stream);
    if (!made)
      return made;
    data = *made;
  }
  return data;
}

void *MemoryCache::allocateCaptured(int64_t bytes, CUstream stream) {
  int64_t wanted = rounded(bytes);
  uint64_t capture = context.captureOf(stream);
  std::lock_guard<std::mutex> lock(mutex);
  Blocks &mine = captured[{capture, stream}];
  if (void *data = takeFree(mine, wanted, Users::None, stream, capture))
    return data;
  if (Kept *its = keptOf(stream, /*isCapturing=*/true))
    if (void *data =
            takeFree(its->blocks, wanted, Users::Done, stream, capture))
      return data;
  return takeFree(mine, wanted, Users::Awaited, stream, capture);
}

/// Takes the smallest block that is large enough and whose other users are as
/// wanted; `stream` waits for those that are awaited.
void *MemoryCache::takeFree(Blocks &blocks, int64_t bytes, Users users,
                            CUstream stream, uint64_t capture) {
  auto isUsable = [&](Block &block) {
    return users == Users::Awaited || block.users.empty() ||
           (users == Users::Done && isDone(block));
  };
  Block *best = nullptr;
  for (Block &block : blocks)
    if (block.bytes >= bytes && block.bytes - bytes <= bytes / 8 &&
        (!best || block.bytes < best->bytes) && isUsable(block))
      best = &block;
  if (!best)
    return nullptr;
  for (CUevent user : best->users) {
    CUresult result = context.call().streamWaitEvent(stream, user, 0);
    if (!context.check(result, "cuStreamWaitEvent"))
      return nullptr;
  }
  for (CUevent user : best->users)
    events.give(user);
  void *data = best->data;
  used[reinterpret_cast<uintptr_t>(data)] = {best->bytes, capture};
  usedBytes += best->bytes;
  keptBytes -= best->bytes;
  std::swap(*best, blocks.back());
  blocks.pop_back();
  return data;
}

/// What `stream` keeps. Where its handle was another stream's, that one's
/// blocks are this one's behind that one's work; null if a capture would have
/// to wait for it.
MemoryCache::Kept *MemoryCache::keptOf(CUstream stream, bool isCapturing) {
  Kept &its = kept[stream];
  uint64_t number = context.numberOf(stream);
  if (its.number == number)
    return &its;
  if (!its.blocks.empty() && !(its.isRecorded && isDone(its.done))) {
    if (isCapturing)
      return nullptr;
    if (!its.isRecorded ||
        !context.check(context.call().streamWaitEvent(stream, its.done, 0),
                       "cuStreamWaitEvent"))
      std::ranges::move(std::exchange(its.blocks, {}),
                        std::back_inserter(retired));
  }
  its.number = number;
  return &its;
}

/// Moves the event behind all that uses the stream's blocks. A default stream
/// records nothing while a stream that it would wait for captures: the next
/// time does.
void MemoryCache::record(Kept &its, CUstream stream) {
  its.isRecorded = false;
  if (context.isCapturing(stream))
    return;
  if (!its.done) {
    Result<CUevent> event = events.take();
    if (!event)
      return;
    its.done = *event;
  }
  its.isRecorded =
      context
          .check(context.call().eventRecord(its.done, stream), "cuEventRecord")
          .ok();
}

bool MemoryCache::isDone(CUevent event) {
  Result<bool> done = isFree(event, Users::Done);
  return done && *done;
}

bool MemoryCache::isDone(Block &block) {
  Result<bool> done = isFree(block, Users::Done);
  return done && *done;
}

/// Whether the work before the event is done; waits for it if it is awaited.
Result<bool> MemoryCache::isFree(CUevent event, Users users) {
  Context::Relaxed relaxed(context);
  if (users == Users::Awaited) {
    if (Status status = context.check(context.call().eventSynchronize(event),
                                      "cuEventSynchronize");
        !status)
      return status;
    return true;
  }
  CUresult result = context.call().eventQuery(event);
  if (result == CUDA_ERROR_NOT_READY)
    return false;
  if (Status status = context.check(result, "cuEventQuery"); !status)
    return status;
  return true;
}

/// The same of the block's users on other streams, each of which is forgotten
/// when it is done.
Result<bool> MemoryCache::isFree(Block &block, Users users) {
  while (!block.users.empty()) {
    Result<bool> free = isFree(block.users.back(), users);
    if (!free || !*free)
      return free;
    events.give(block.users.back());
    block.users.pop_back();
  }
  return true;
}

CUresult MemoryCache::ask(void *&data, int64_t bytes, CUstream stream) {
  Context::Relaxed relaxed(context);
  CUdeviceptr pointer = 0;
  CUresult result =
      pool ? context.call().memAllocFromPoolAsync(&pointer, bytes, pool, stream)
           : context.call().memAlloc(&pointer, bytes);
  data = reinterpret_cast<void *>(pointer);
  return result;
}

Result<void *> MemoryCache::fromDriver(int64_t bytes, CUstream stream) {
  const char *name = pool ? "cuMemAllocFromPoolAsync" : "cuMemAlloc";
  void *data = nullptr;
  auto isBeyondLimit = [&] {
    return limit && bytes > limit - usedBytes - keptBytes;
  };
  CUresult result =
      isBeyondLimit() ? CUDA_ERROR_OUT_OF_MEMORY : ask(data, bytes, stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    if (void *waited =
            takeFree(keptOf(stream)->blocks, bytes, Users::Awaited, stream))
      return waited;
  for (Users users : {Users::Done, Users::Awaited}) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
      break;
    if (Status status = giveBackKept(users); !status)
      return status;
    if (!isBeyondLimit())
      result = ask(data, bytes, stream);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && isBeyondLimit())
    return beyondLimit(bytes);
  if (Status status = context.check(result, name); !status)
    return result == CUDA_ERROR_OUT_OF_MEMORY ? outOfMemory(bytes, status)
                                              : status;
  used[reinterpret_cast<uintptr_t>(data)] = {bytes, 0};
  usedBytes += bytes;
  return data;
}

/// Gives what is kept and done with back to the driver, which can use it for
/// any stream then; if it is awaited, waits for it first.
Status MemoryCache::giveBackKept(Users users) {
  Context::Relaxed relaxed(context);
  Status status;
  for (auto &[stream, its] : kept) {
    if (its.blocks.empty() || !its.isRecorded)
      continue;
    Result<bool> isBehind = isFree(its.done, users);
    if (!isBehind)
      return std::move(isBehind).status();
    if (!*isBehind)
      continue;
    std::erase_if(its.blocks, [&](Block &block) {
      Result<bool> free = isFree(block, users);
      if (!free && status.ok())
        status = free.status();
      if (free && *free)
        giveBack(block);
      return free && *free;
    });
    if (!status)
      return status;
  }
  if (pool)
    context.call().memPoolTrimTo(pool, 0);
  return status;
}

/// Needs no order: nothing that uses the block is queued.
void MemoryCache::giveBack(Block &block) {
  for (CUevent user : block.users)
    events.give(user);
  context.call().memFree(reinterpret_cast<CUdeviceptr>(block.data));
  keptBytes -= block.bytes;
}

void MemoryCache::release(void *data, CUstream stream,
                          std::span<const runtime::Stream> others) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = used.find(reinterpret_cast<uintptr_t>(data));
  if (it == used.end())
    return;
  Block block{data, it->second.bytes, {}};
  uint64_t owner = it->second.capture, capture = context.captureOf(stream);
  usedBytes -= block.bytes;
  keptBytes += block.bytes;
  used.erase(it);
  bool isKnown = (owner == 0 || owner == capture) &&
                 noteUsers(block, stream, capture, others);
  if (!isKnown) {
    retired.push_back(std::move(block));
  } else if (capture) {
    captured[{capture, stream}].push_back(std::move(block));
  } else {
    Kept &its = *keptOf(stream);
    its.blocks.push_back(std::move(block));
    record(its, stream);
  }
}

/// Records where each of `others` is. False if that does not say when the block
/// is free: a user that captures while `stream` does not, or the other way
/// round, or an event that cannot be recorded.
bool MemoryCache::noteUsers(Block &block, CUstream stream, uint64_t capture,
                            std::span<const runtime::Stream> others) {
  for (runtime::Stream other : others) {
    auto user = static_cast<CUstream>(other);
    if (user == stream)
      continue;
    if (context.captureOf(user) != capture)
      return false;
    Result<CUevent> event = events.record(user);
    if (!event)
      return false;
    block.users.push_back(*event);
  }
  return true;
}

bool MemoryCache::owns(const void *pointer) const {
  auto value = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard<std::mutex> lock(mutex);
  auto it = used.upper_bound(value);
  if (it == used.begin())
    return false;
  --it;
  return value - it->first < static_cast<uint64_t>(it->second.bytes);
}

MemoryCache::Usage MemoryCache::usage() const {
  std::lock_guard<std::mutex> lock(mutex);
  return {usedBytes, keptBytes};
}

Status MemoryCache::setLimit(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  limit = bytes;
  Status status;
  for (Users users : {Users::Done, Users::Awaited})
    if (status.ok() && limit && usedBytes + keptBytes > limit)
      status = giveBackKept(users);
  return status;
}

int64_t MemoryCache::limitSet() const {
  std::lock_guard<std::mutex> lock(mutex);
  return limit;
}

Status MemoryCache::beyondLimit(int64_t bytes) const {
  std::string captured =
      keptBytes ? ", " + std::to_string(keptBytes) + " more belong to graphs"
                : "";
  return Status::failed("out of memory on device '" +
                        toString(context.device()) + "': expected " +
                        std::to_string(bytes) + " bytes beside the " +
                        std::to_string(usedBytes) + " in use, but the limit " +
                        "that was set is " + std::to_string(limit) + captured);
}

Status MemoryCache::outOfMemory(int64_t bytes, const Status &cause) const {
  size_t free = 0, total = 0;
  std::string found;
  if (!context.call().memGetInfo(&free, &total))
    found = ", " + std::to_string(free) + " of " + std::to_string(total) +
            " are free";
  return Status::failed("out of memory on device '" +
                        toString(context.device()) + "': expected " +
                        std::to_string(bytes) + " bytes beside the " +
                        std::to_string(usedBytes) + " in use, but" +
                        (found.empty() ? " got none" : found.substr(1)) + " (" +
                        cause.message() + ")");
}

} // namespace tandem::cuda
