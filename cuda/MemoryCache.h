//===- MemoryCache.h - the device's memory, kept for the next use ---------===//
//
// Allocations come from a stream-ordered pool of the driver (or, where it has
// none, from cuMemAlloc) and are kept when they are given back: a step that was
// made once asks the driver for nothing. What was given back for a stream can
// be had again for that stream: what is queued there later runs later. Bytes
// that other streams used as well wait for events on those.
//
// Order of choice, for a stream: a block of its own that nobody else uses; a
// new one; and when the device has no more, a block of its own after waiting,
// on the stream, for its other users; what all streams keep, given back to the
// driver: at first that whose users are done, then, if it is not enough, the
// rest, after the host has waited for these. It waits for events alone, which
// were recorded when the memory was given back: to wait for the whole device
// would end every capture of a graph that somebody has under way.
//
// While a stream captures a graph, nothing is asked of the driver: an
// allocation takes what is kept for the stream, or fails. Such a block is the
// capture's for ever, and so is one that is given back in it: the graph uses it
// at every replay, so it serves only that capture again.
//
// The handle of a stream that was destroyed may come again. The new stream has
// what the old one kept, behind the old one's work.
//
// Safe to use from several threads. Its functions need a Scope around them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_MEMORYCACHE_H
#define TANDEM_CUDA_MEMORYCACHE_H

#include "cuda/Events.h"

#include <map>
#include <span>

namespace tandem::cuda {

class MemoryCache {
public:
  MemoryCache(const Context &context, EventPool &events)
      : context(context), events(events) {}
  ~MemoryCache();

  /// Makes the pool.
  Status open();
  /// `bytes` is more than 0; `stream` does not capture.
  Result<void *> allocate(int64_t bytes, driver::CUstream stream);
  /// The same in a capture; null if nothing fits that is kept.
  void *allocateCaptured(int64_t bytes, driver::CUstream stream);
  void release(void *data, driver::CUstream stream,
               std::span<const runtime::Stream> others);
  /// True if `pointer` lies in an allocation that was not given back.
  bool owns(const void *pointer) const;

  /// Lets the copies of another device go straight to and from the memory.
  Status shareWith(driver::CUdevice device);

  /// Sets how many bytes may be used and kept together; 0: what the device has.
  /// What is in use stays. What is kept beyond it is given back; the status is
  /// of the waits for its users.
  Status setLimit(int64_t bytes);
  int64_t limitSet() const;

  struct Usage {
    int64_t used = 0, kept = 0; ///< bytes given out; bytes kept for later
  };
  Usage usage() const;

private:
  struct Block {
    void *data = nullptr;
    int64_t bytes = 0;
    /// Events on other streams that used it.
    std::vector<driver::CUevent> users;
  };
  using Blocks = std::vector<Block>;
  /// What a stream keeps.
  struct Kept {
    uint64_t number = 0; ///< of the stream
    Blocks blocks;
    /// Recorded on the stream when it was given the last of `blocks`.
    driver::CUevent done = nullptr;
    bool isRecorded = false; ///< false: `done` says nothing of `blocks`
  };
  struct Used {
    int64_t bytes = 0;
    uint64_t capture = 0; ///< whose it is, or 0
  };
  /// What is done about the other users of a block that would fit.
  enum class Users { None, Done, Awaited };

  static int64_t rounded(int64_t bytes);
  void *takeFree(Blocks &blocks, int64_t bytes, Users users,
                 driver::CUstream stream, uint64_t capture = 0);
  bool noteUsers(Block &block, driver::CUstream stream, uint64_t capture,
                 std::span<const runtime::Stream> others);
  Kept *keptOf(driver::CUstream stream, bool isCapturing = false);
  void record(Kept &its, driver::CUstream stream);
  bool isDone(driver::CUevent event);
  bool isDone(Block &block);
  Result<void *> fromDriver(int64_t bytes, driver::CUstream stream);
  driver::CUresult ask(void *&data, int64_t bytes, driver::CUstream stream);
  Result<bool> isFree(driver::CUevent event, Users users);
  Result<bool> isFree(Block &block, Users users);
  void giveBack(Block &block);
  Status giveBackKept(Users users);
  Status beyondLimit(int64_t bytes) const;
  Status outOfMemory(int64_t bytes, const Status &cause) const;

  const Context &context;
  EventPool &events;
  driver::CUmemoryPool pool = nullptr;
  mutable std::mutex mutex;
  std::map<driver::CUstream, Kept> kept;
  /// By capture and stream.
  std::map<std::pair<uint64_t, driver::CUstream>, Blocks> captured;
  Blocks retired; ///< never used again: a graph may, or a lost user
  std::map<uintptr_t, Used> used;
  int64_t usedBytes = 0, keptBytes = 0;
  int64_t limit = 0; ///< of both together; 0: none
};

} // namespace tandem::cuda

#endif
