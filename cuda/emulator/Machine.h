//===- Machine.h - the emulated computer ----------------------------------===//
//
// All state of the emulator: devices, their streams and memory, events, what is
// queued, what was found. The driver's functions (Entry*.cpp) hold its lock.
//
// The host is one lane for all threads: a thread that learns from another one
// that work has finished is taken to know it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_MACHINE_H
#define TANDEM_CUDA_EMULATOR_MACHINE_H

#include "cuda/emulator/Failures.h"
#include "cuda/emulator/Handles.h"
#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/Limits.h"
#include "cuda/emulator/Memory.h"
#include "cuda/emulator/Report.h"
#include "cuda/emulator/Scheduler.h"
#include "cuda/emulator/Shadow.h"
#include "cuda/emulator/Streams.h"

#include <mutex>
#include <span>
#include <unordered_set>

namespace tandem::emulator {

struct Module;
struct Function;
struct Graph;
struct GraphExec;
struct Node;

/// What a CUcontext points to: a device's primary context is the device.
struct Device {
  int ordinal = 0;
  unsigned retained = 0; ///< how often the primary context is
  driver::CUresult error = driver::CUDA_SUCCESS; ///< what broke the context
  size_t used = 0;                               ///< bytes of its memory
  Stream *legacy = nullptr;                      ///< the default stream
  Pool defaultPool;
  std::vector<const Device *> peers; ///< whose memory its kernels may use
  /// The last operations of streams that were destroyed, if not known to be
  /// done, and whether the stream was a blocking one.
  std::vector<std::pair<OperationPtr, bool>> orphans;
};

/// What the devices of this machine are like.
struct DeviceTraits {
  /// Sets what a text of Control.h asks for (tandemEmulatorSetTraits), a list
  /// with commas; false if it is not understood.
  bool set(std::string_view text);

  int count = 1;
  int major = 9, minor = 0;
  std::string name = "Tandem CUDA emulator";
  int multiprocessors = int(kMultiprocessors);
  bool hasPeers = true;     ///< a device may use another one's memory
  bool canCopyPeers = true; ///< and copy it
  bool hasPools = true, canRegister = true;
  size_t memory = size_t(16) << 30;
  int version = 13000; ///< of the driver
};

/// True if the device's kernels may use the memory, and its copies go straight
/// there.
bool hasAccess(const Device &device, const Allocation &to);

/// What the driver knows about a thread.
struct ThreadState {
  std::vector<Device *> contexts; ///< the last one is current
  driver::CUstreamCaptureMode captureMode =
      driver::CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool inHostFunction = false;
  bool isLookingOn = false; ///< what it sees done, the host has not waited for
};

class Machine {
public:
  Machine();

  /// Runs what is queued and prints the errors that nobody has asked for: the
  /// process ends.
  void finish();

  static ThreadState &thread();
  /// Returns the current context's device, or null.
  static Device *current();

  // Streams.cpp
  Stream &createStream(Device &device, unsigned flags, bool isLegacy);
  /// Takes a stream out of the live ones: its handle may come again.
  void endStream(std::vector<std::unique_ptr<Stream>>::iterator at);
  /// Returns the stream of a handle (the current device's default one of null),
  /// or null if there is none.
  Stream *stream(driver::CUstream handle);
  /// Queues a command on a stream, or adds it to what the stream captures.
  driver::CUresult push(Stream &stream, Command command,
                        std::span<const OperationPtr> also = {});
  /// Queues a command that is no part of a capture.
  OperationPtr submit(Stream &stream, Command command,
                      std::span<const OperationPtr> also = {});
  /// Queues an operation of a lane of its own: it waits for `waitsFor` alone.
  OperationPtr submitOn(Stream &stream, Lane lane, Command command,
                        std::vector<OperationPtr> waitsFor);
  Lane newLane();
  /// Runs an operation and what it waits for; where that is not for this
  /// machine alone, lets other threads have it meanwhile.
  void need(const OperationPtr &operation);
  /// The host waits; returns the device's state then.
  driver::CUresult await(const OperationPtr &operation, Device &device);
  /// The host waits for all streams of a device.
  driver::CUresult awaitDevice(Device &device);
  /// The host knows that the operation is done.
  void observe(const Operation &operation);

  // Memory (Allocations.cpp)
  driver::CUresult allocate(Device &device, size_t bytes, MemoryKind kind,
                            Pool *pool, Allocation *&result);
  void release(Allocation &allocation);
  /// Says that the host uses memory now; `writes` is the word for a write.
  void hostAccess(uintptr_t begin, size_t bytes, bool isWrite,
                  const char *writes = "writes");

  // Capture.cpp
  driver::CUresult captureUnsafe();
  driver::CUresult captureImplicit(const Stream &legacy);
  /// True while a stream captures that a default stream would wait for.
  bool isCaptureImplicit(const Stream &legacy) const;

  /// Runs all that is queued, waits for it, and mends broken contexts. If no
  /// handles and no memory are left, numbers and virtual time begin anew.
  void restart();
  /// Sets policy, consistency, failures and devices as the environment says.
  void readEnvironment();
  /// "weak", "strong" or "every"; false for another text.
  bool setConsistency(std::string_view text);

  /// Runs an operation: the scheduler's.
  void run(Operation &operation);

  std::recursive_mutex lock;
  bool started = false;
  bool isClosing = false; ///< the process ends: its functions and memory may
                          ///< be gone
  DeviceTraits traits;
  std::vector<std::unique_ptr<Device>> devices;

  Report report;
  Failures failures;
  Memory memory;
  Shadow shadow;
  Scheduler scheduler;
  Consistency consistency = Consistency::Weak; ///< of blocks of one launch

  std::vector<std::unique_ptr<Stream>> streams; ///< live, by creation
  /// Destroyed: the next stream has the handle of the last of them, as one of
  /// CUDA's may have.
  std::vector<std::unique_ptr<Stream>> ended;
  Handles<Event> events;
  std::unordered_set<const void *> nodes; ///< of all graphs
  Handles<Pool> pools;
  Handles<Module> modules;
  Handles<Function> functions;
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
  std::vector<std::shared_ptr<Capture>> captures; ///< those that go on

  Clock hostClock;
  uint64_t hostTime = 0, endTime = 0;
  unsigned streamCount = 0, eventCount = 0;

private:
  uint64_t orders = 0;
  std::vector<Tick> lanes;
};

/// Returns the one machine of this process. It is never destroyed: what uses
/// the driver may do so until the very end of the process.
Machine &machine();

} // namespace tandem::emulator

#endif
