//===- Block.h - the threads of one block and how they wait ---------------===//
//
// A block runs until all of its threads have ended, or until an error ends it.
// Threads that wait for one another are fibers; a thread that waits goes on
// with another of its warp directly, and only a warp in which everyone waits
// goes back to the scheduler. Kernels in which nobody waits run their threads
// one after the other on one fiber.
//
// One Block serves all blocks of a launch in turn.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_BLOCK_H
#define TANDEM_CUDA_EMULATOR_KERNEL_BLOCK_H

#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/kernel/Fiber.h"
#include "cuda/emulator/kernel/GlobalMemory.h"
#include "cuda/emulator/kernel/LaunchErrors.h"
#include "cuda/emulator/kernel/SharedRaces.h"
#include "cuda/emulator/kernel/WeakMemory.h"
#include "runtime/artifact/Emulation.h"

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>

namespace tandem::emulator::kernel {

class Block;

/// Bytes that a bulk copy brings to shared memory.
struct BulkCopy {
  std::byte *to;
  std::vector<std::byte> data;
  bool isLast = false; ///< of one instruction
};

/// A barrier in shared memory.
struct Mbarrier {
  uint32_t expected = 0, pending = 0; ///< arrivals of a phase, still to come
  int64_t bytes = 0;                  ///< announced less come
  uint64_t phase = 0;                 ///< phases that have ended
  bool isFenced = false;     ///< copies may use it: its initialization is known
  Clock arriving, completed; ///< of this phase, of the last
  std::vector<BulkCopy> copies; ///< begun, not yet made
};

/// A copy by cp.async that has been started.
struct AsyncCopy {
  std::byte *to;
  const std::byte *from;
  uint32_t bytes, read; ///< bytes beyond `read` become zero
};

/// The emulator's side of a thread; kernels see the base.
struct Thread : artifact::EmulatedThread {
  Block *block = nullptr;
  uint32_t index = 0; ///< in the block
  bool ended = false;
  uint32_t polls = 0;             ///< atomic accesses
  const char *waitsFor = nullptr; ///< for messages; null: runs or may run
  uint32_t barrier = 0;           ///< the barrier it waits at
  const void *in = nullptr; ///< operands of the collective it takes part in
  void *out = nullptr;      ///< where the collective's result goes
  std::vector<AsyncCopy> copies;    ///< not yet landed, in order
  std::vector<uint32_t> copyGroups; ///< of `copies`: how many a group has
  Clock openBulk;                   ///< bulk stores in no group
  std::vector<Clock> bulkGroups;    ///< of bulk stores, not waited for
  Clock openProducts;               ///< wgmma in no group
  std::vector<Clock> productGroups; ///< of wgmma, not waited for
  uint32_t openCopies = 0;          ///< the last of `copies`, in no group
  std::vector<size_t> newMbarriers; ///< initialized, and not fenced since
  bool productsFenced = false, productsAwaited = false; ///< since the fence
  std::vector<uint64_t> sums; ///< of products since the fence: hashes
};

/// The lanes that carry out a collective, when the last has come.
struct Lanes {
  Thread *first; ///< lane 0
  uint32_t mask;
  Block &block;

  bool has(uint32_t lane) const { return mask >> lane & 1; }
  template <typename T> const T &in(uint32_t lane) const {
    return *static_cast<const T *>(first[lane].in);
  }
  template <typename T> T &out(uint32_t lane) const {
    return *static_cast<T *>(first[lane].out);
  }
};

/// What a collective does, by the lane that comes last.
using Operation = void (*)(Lanes &lanes);

class Block {
public:
  /// `weak`: other blocks see only what is handed over to them.
  Block(const LaunchRequest &request, const artifact::EmulatedChunk &chunk,
        GlobalMemory &global, LaunchErrors &errors, FiberStacks &stacks,
        std::byte *arena, bool weak);

  /// Runs the block `ctaid`; false after an error that ends the launch.
  bool run(const uint32_t ctaid[3], std::mt19937_64 &random);

  // What follows is for the emulator's functions, on a thread's fiber.

  /// Waits until every lane of `mask` has come with the same operation.
  void collective(Thread &thread, uint32_t mask, const char *name,
                  Operation operation, const void *in, void *out,
                  bool aligned = false);
  /// The lanes of `mask` that the warp of `thread` has.
  uint32_t existing(const Thread &thread, uint32_t mask) const;
  uint32_t running(const Thread &thread) const;

  /// The same for the four warps of a warpgroup: every thread comes, and the
  /// last carries it out; `first` of Lanes is the group's first thread.
  void warpgroup(Thread &thread, const char *name, Operation operation,
                 const void *in, void *out);

  /// Makes the copies when the mbarrier at `pointer` is looked at.
  void copyLater(Thread &thread, void *pointer, std::vector<BulkCopy> copies);
  /// Somebody may be able to go on.
  void progressed() { progress = true; }

  enum class Reduction { None, Count, And, Or };
  /// Comes to barrier `id` that `count` threads come to (0: all), and waits
  /// unless it only arrives. Returns the reduction of `value`.
  uint32_t barrier(Thread &thread, uint32_t id, uint32_t count, bool waits,
                   bool aligned, Reduction reduction = Reduction::None,
                   uint32_t value = 0);

  /// Lets others run, then goes on.
  void pause(Thread &thread);
  /// The thread made an atomic access: may be it polls, so others get a turn
  /// now and then.
  void polled(Thread &thread);
  /// Waits until `ready(thread, data)`; it is asked again in every round.
  void waitUntil(Thread &thread, const char *what, bool (*ready)(void *),
                 void *data);

  /// An error after which the kernel goes on.
  void error(const Thread &thread, const std::string &kind,
             const std::string &detail = {});
  /// An error after which it cannot: the launch ends here. The stack of the
  /// thread is left as it is, so what is on it is never destroyed; the texts
  /// are taken over for that reason.
  [[noreturn]] void fail(const Thread &thread, std::string kind,
                         std::string detail = {});

  bool isShared(const void *pointer) const {
    return static_cast<size_t>(static_cast<const std::byte *>(pointer) -
                               shared) < sharedBytes;
  }
  /// Whether it is in the memory of the running thread's own variables.
  bool isLocal(const Thread &thread, const void *pointer) const;
  size_t offsetOf(const void *pointer) const {
    return static_cast<const std::byte *>(pointer) - shared;
  }
  /// Checks an access to shared memory that is made by the emulator or the
  /// kernel: bounds (fails), races.
  void checkShared(const Thread &thread, const void *pointer, size_t bytes,
                   uint32_t flags);
  void checkGlobal(const Thread &thread, uint32_t site, const void *pointer,
                   size_t bytes, uint32_t flags);
  /// Reports a race, if there is one.
  void conflict(const Thread &thread, const Conflict &conflict);
  void conflict(const Thread &thread, const WeakMemory::Race &race);

  std::byte *shared;
  size_t sharedBytes;
  SharedRaces races;
  GlobalMemory &global;
  std::optional<WeakMemory> weak;
  std::unordered_map<size_t, Mbarrier> mbarriers; ///< by offset
  uint32_t ctaid[3] = {};
  uint64_t ticks = 0; ///< the clock that threads read

private:
  struct Pending {
    uint32_t mask, arrived;
    Operation operation;
    const char *name;
    uint32_t site;
  };
  struct Warp {
    uint32_t first = 0;    ///< index of lane 0
    uint32_t existing = 0; ///< masks of lanes
    uint32_t ready = 0, paused = 0, ended = 0;
    uint32_t atBarrier = 0, barrierSite = 0;
    std::vector<Pending> pending;
  };
  /// Threads of a warpgroup that have come to a collective.
  struct Warpgroup {
    uint32_t arrived = 0, site = 0;
    Operation operation = nullptr;
  };
  struct Barrier {
    uint32_t expected = 0, arrived = 0, waiting = 0;
    uint32_t sum = 0, result = 0;
    Clock clock;
  };

  static void runFiber(void *thread);
  static void runAll(void *block);
  void begin(const uint32_t ctaid[3]);
  void runFibers();
  void schedule();
  uint32_t pick(uint32_t lanes);
  void wait(Thread &thread, const char *what);
  void wake(Thread &thread);
  void leave(Thread &thread, bool forGood);
  void complete(uint32_t id);
  void reportStuck();
  const char *nameOfSite(uint32_t site) const;

  const LaunchRequest &request;
  const artifact::EmulatedChunk &chunk;
  const artifact::EmulatedKernel &code;
  LaunchErrors &errors;
  FiberStacks &stacks;
  std::vector<Thread> threads;
  std::unique_ptr<Fiber[]> fibers; ///< one per thread, or one for all
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<uint32_t> warpOrder;
  std::vector<uint32_t> threadOrder; ///< not on the fiber: that may be left
  std::array<Barrier, 16> barriers;
  Fiber scheduler;
  std::mt19937_64 *random = nullptr;
  uint32_t endedThreads = 0;
  bool synchronizes, failed = false;
  bool progress = false; ///< since the scheduler's last look
};

} // namespace tandem::emulator::kernel

#endif
