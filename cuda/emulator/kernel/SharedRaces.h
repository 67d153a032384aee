//===- SharedRaces.h - who touched which byte of shared memory, and when --===//
//
// A happens-before race detector for the shared memory of one block, exact to
// the byte. Time is a counter that grows at every synchronization; an access
// leaves its thread's time on the bytes (a stamp). Two accesses of which one
// writes race unless the later thread knows of a time of the earlier one that
// is not before the access.
//
// A barrier of the whole block makes everything before it known to everyone:
// that is `base`. Knowledge that comes from less (bar.warp.sync, barriers of
// some threads, mbarriers) is kept per thread, and only where a kernel has
// such.
//
// The asynchronous proxy (TMA, wgmma) reads and writes as one more thread,
// whose accesses no barrier orders but the wait that belongs to them. What
// threads wrote it sees only where fence.proxy.async, by any thread that knew
// of it, stands between.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_SHAREDRACES_H
#define TANDEM_CUDA_EMULATOR_KERNEL_SHAREDRACES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::emulator::kernel {

/// What a synchronization knows: a time per thread, the proxies' last; then
/// again one per thread, up to which its writes were passed to the proxies.
/// Empty: nothing.
using Clock = std::vector<uint32_t>;

/// What an access ran into.
struct Conflict {
  enum Kind : uint8_t {
    None,
    ReadAfterWrite,
    WriteAfterWrite,
    WriteAfterRead,
    InFlight,  ///< bytes of an asynchronous copy that was not waited for
    NotPassed, ///< by a proxy, of what threads wrote, without a proxy's fence
    AsyncRead  ///< a write to bytes that an asynchronous operation still reads
  } kind = None;
  uint32_t thread = 0; ///< the other one; kSeveral if not one
  size_t offset = 0;   ///< the first byte
  static constexpr uint32_t kSeveral = 0xffffffff;
};

class SharedRaces {
public:
  /// For blocks of `threads` threads with `bytes` of shared memory. `partial`:
  /// there may be synchronization of less than the block. `timed`: it is asked
  /// when who did what in other memory.
  SharedRaces(uint32_t threads, size_t bytes, bool partial, bool timed);

  /// Forgets everything: another block begins.
  void newBlock();

  /// The numbers that stand for the asynchronous proxy: for its copies, and for
  /// the products of warpgroups, which nothing orders but what threads wait
  /// for.
  uint32_t proxy() const { return threads; }
  uint32_t products() const { return threads + 1; }
  bool isProxy(uint32_t thread) const {
    return thread == proxy() || thread == products();
  }

  Conflict read(uint32_t thread, size_t offset, size_t bytes);
  Conflict write(uint32_t thread, size_t offset, size_t bytes);
  /// Atomics race with plain accesses but not with one another: they are
  /// writes that leave no stamp on bytes that other atomics stamped.
  Conflict atomic(uint32_t thread, size_t offset, size_t bytes);

  /// A copy of `thread` into these bytes has begun, and has ended: from there
  /// on it is a write of `thread` (or of the proxy) now.
  void beginCopy(uint32_t thread, size_t offset, size_t bytes);
  void endCopy(uint32_t thread, size_t offset, size_t bytes);

  /// Every thread knows everything but the proxies' doings.
  void barrier();
  /// Adds what `thread` knows and did to `clock`; later doings are later.
  void release(uint32_t thread, Clock &clock);
  /// `thread` knows what `clock` knows.
  void acquire(uint32_t thread, const Clock &clock);
  /// fence.proxy.async: the writes that `thread` knows of are passed to the
  /// proxies, for those who learn of it.
  void passToProxies(uint32_t thread);

  // For what the block does in other memory (WeakMemory.h), if `timed`. Times
  // of this kind never begin anew.

  /// What a thread knew at some time of what others had done.
  struct Knowledge {
    uint64_t base = 0; ///< of everyone: what was before
    std::vector<uint64_t> times;
    bool knows(uint32_t thread, uint64_t time) const {
      return time < base || times[thread] >= time;
    }
  };
  /// When the thread does what it does now.
  uint64_t timeOf(uint32_t thread) const { return past + times[thread]; }
  /// Whether `thread` knows what `other` did at `time`, in the same block.
  bool knows(uint32_t thread, uint32_t other, uint64_t time) const {
    return thread == other || time < past + base ||
           (!knowledge[thread].empty() && knowledge[thread][other] &&
            past + knowledge[thread][other] >= time);
  }
  /// Returns what `thread` knows and did; its later doings are later.
  Knowledge knowledgeOf(uint32_t thread);

private:
  // A stamp is time << kThreadBits | thread, or, with the top bit set, an index
  // into `records`: what a plain stamp cannot say.
  static constexpr uint32_t kThreadBits = 11;
  static constexpr uint32_t kThreadMask = (1u << kThreadBits) - 1;
  static constexpr uint32_t kRecord = 1u << 31;
  static constexpr uint32_t kMany = kThreadMask; ///< thread of a stamp: several
  static constexpr uint32_t kAtomic = kThreadMask - 1; ///< several atomics
  static constexpr uint32_t kLastTime = (1u << (31 - kThreadBits)) - 1;

  /// Stamps of several accesses, or of a copy that has not ended.
  struct Record {
    bool copy = false;
    std::vector<uint32_t> stamps;
  };

  /// What is found by (stamp, mine), of pairs of which neither is 0: a table
  /// that is searched from the place that a pair's hash says.
  class Transitions {
  public:
    /// The pair's value; 0 where it is new.
    uint32_t &operator()(uint32_t stamp, uint32_t mine);
    void clear();

  private:
    struct Entry {
      uint32_t stamp = 0, mine = 0, next = 0;
      uint32_t generation = 0; ///< of another one it is no entry
    };
    void grow();
    std::vector<Entry> entries;
    size_t count = 0;
    uint32_t generation = 1;
  };

  uint32_t stampOf(uint32_t thread) {
    return isProxy(thread)
               ? proxyStampOf(thread)
               : (partial ? times[thread] : base) << kThreadBits | thread;
  }
  uint32_t proxyStampOf(uint32_t thread);
  bool seesWrite(uint32_t thread, uint32_t write);
  const Record *record(uint32_t stamp) const;
  bool ordered(uint32_t thread, uint32_t stamp) const;
  bool isSeen(uint32_t thread, uint32_t write) const;
  size_t width() const { return 2 * (threads + size_t(2)); }
  Conflict conflictWith(uint32_t thread, uint32_t stamp, size_t offset,
                        Conflict::Kind kind) const;
  uint32_t withReader(uint32_t stamp, uint32_t mine, uint32_t thread);
  uint32_t intern(Record record);
  void tick();
  void forget();
  Conflict change(uint32_t thread, size_t offset, size_t bytes, bool atomic);

  uint32_t threads;
  bool partial;
  bool timed; ///< or `partial`: each thread has a time and knowledge
  uint32_t now = 1, base = 1;
  uint32_t blockBegan = 1;
  bool isAnyPassed = false;            ///< in this block
  uint64_t past = 0;                   ///< times before `now` began anew
  std::vector<uint32_t> writes, reads; ///< a stamp per byte; 0: none
  std::vector<uint32_t> times;         ///< of each thread and proxy
  std::vector<Clock> knowledge;        ///< of each thread, if `timed`
  std::vector<Record> records;
  std::vector<uint32_t> copyStamps; ///< of each thread and proxy; 0: none
  uint32_t proxyStamp[2] = {}, proxyTime[2] = {}; ///< the proxies' last stamps
  uint32_t firstRecord = 0; ///< the index of records[0]; lower ones are stale
  std::vector<uint32_t>
      seen; ///< of each thread and proxy: a stamp that it sees
  Transitions transitions;
};

} // namespace tandem::emulator::kernel

#endif
