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
  giveBackAll();
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
  void *data = nullptr;
  if (auto it = kept.find(stream); it != kept.end())
    data = takeFree(it->second, wanted, Users::Done, stream);
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
  if (auto it = kept.find(stream); it != kept.end())
    if (void *data = takeFree(it->second, wanted, Users::Done, stream, capture))
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

bool MemoryCache::isDone(Block &block) {
  Context::Relaxed relaxed(context);
  while (!block.users.empty()) {
    CUresult result = context.call().eventQuery(block.users.back());
    if (result != CUDA_ERROR_NOT_READY &&
        !context.check(result, "cuEventQuery"))
      return false;
    if (result)
      return false;
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
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    if (auto it = kept.find(stream); it != kept.end())
      if (void *waited = takeFree(it->second, bytes, Users::Awaited, stream))
        return waited;
    giveBackAll();
    if (isBeyondLimit())
      return beyondLimit(bytes);
    result = ask(data, bytes, stream);
  }
  if (Status status = context.check(result, name); !status)
    return result == CUDA_ERROR_OUT_OF_MEMORY ? outOfMemory(bytes, status)
                                              : status;
  used[reinterpret_cast<uintptr_t>(data)] = {bytes, 0};
  usedBytes += bytes;
  return data;
}

/// Gives what is kept back to the driver, when everything that the device has
/// to do is done: then the driver can use it for any stream.
void MemoryCache::giveBackAll() {
  Context::Relaxed relaxed(context);
  if (!context.check(context.call().ctxSynchronize(), "cuCtxSynchronize"))
    return;
  for (auto &[stream, blocks] : kept) {
    for (Block &block : blocks)
      giveBack(block);
    blocks.clear();
  }
  if (pool)
    context.call().memPoolTrimTo(pool, 0);
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
  Blocks &blocks = !isKnown  ? retired
                   : capture ? captured[{capture, stream}]
                             : kept[stream];
  blocks.push_back(std::move(block));
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

void MemoryCache::setLimit(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  limit = bytes;
  if (limit && usedBytes + keptBytes > limit)
    giveBackAll();
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
