//===- Backend.h - what a device does for the runtime ---------------------===//
//
// The door between the runtime and what has memory and runs kernels. The host
// is one (device/HostBackend.h); a device's layer (cuda/) registers how its
// devices are opened, and the runtime sees nothing else of it.
//
// All work is queued on streams and nothing waits for it, unless said so. What
// is queued on one stream runs in order; streams wait for each other by `wait`
// alone. Nothing is done on a device's default stream unless it was asked for.
// The host has the default stream alone, and work on it is done on return.
//
// Functions may be called from any thread. Errors carry the driver's name for
// the cause. After `isLost`, every function fails, and memory can still be
// released.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_BACKEND_H
#define TANDEM_RUNTIME_DEVICE_BACKEND_H

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/device/Action.h"
#include "runtime/device/Device.h"
#include "runtime/tensor/Tensor.h"

#include <memory>
#include <span>
#include <string>

namespace tandem::comm {
class MeshCommunicators;
} // namespace tandem::comm

namespace tandem::runtime {

struct RunTimes;

/// A point in a stream's work that the host can wait for (a CUevent).
using Fence = void *;

/// A copy between strided elements. Sizes in elements, strides in bytes.
struct StridedCopy {
  void *to = nullptr;
  const void *from = nullptr;
  std::span<const int64_t> sizes, toStrides, fromStrides;
  int64_t elementBytes = 0;
};

/// One run of a program.
struct ProgramRun {
  size_t program = 0; ///< index in the manifest's programs
  /// The address of each of the program's buffers. Those that no launch of this
  /// run uses may be null.
  std::span<void *const> buffers;
  /// What each launch does (Action.h).
  std::span<const Action> actions;
  /// The program's stream 0. Its other streams wait for this one at the
  /// beginning, and this one for them at the end.
  Stream stream = nullptr;
  /// May be recorded as a graph once and replayed while nothing changes.
  bool useGraph = false;
  /// What collectives go over, of the manifest's mesh; null where nobody gave
  /// the model one.
  comm::MeshCommunicators *communicators = nullptr;
  /// Gets what the run took where work is not queued, unless null.
  RunTimes *times = nullptr;
};

/// How code is loaded.
struct LoadOptions {
  /// Launches may be calls of a vendor's library where the artifact says so and
  /// the library is there.
  bool useLibraries = true;
  /// The threads that run kernels of the host.
  int threads = 1;
};

/// An artifact's code on a device.
class DeviceCode {
public:
  virtual ~DeviceCode() = default;
  /// Queues the launches. Nothing of it was queued if it fails in its checks;
  /// else the status names the launch. Allocates nothing the second time.
  virtual Status run(const ProgramRun &run) = 0;

  /// Allocates what the program needs beside its buffers, charged to `account`.
  virtual Status reserve(size_t program,
                         const std::shared_ptr<MemoryAccount> &account) {
    (void)program, (void)account;
    return Status::success();
  }
  /// Zeros memory that the programs will use, on its current stream.
  virtual Status clear(Storage &storage);
  /// Returns the number of threads that run kernels of the host.
  virtual int threads() const { return 1; }
  /// Returns what was loaded of the target's code: "cubin, 3 of 4 calls of
  /// libraries"; nothing where there is one kind alone.
  virtual std::string description() const { return {}; }
};

/// One device.
class Backend {
public:
  virtual ~Backend() = default;

  virtual Device device() const = 0;
  /// Returns "NVIDIA H200, sm_90, driver 13.0".
  virtual std::string description() const = 0;
  virtual bool isLost() const = 0;
  /// True if work may run after the call that asks for it: then memory is in
  /// use until it has run, and what a call needs is better there before it. On
  /// the host work is done on return.
  virtual bool isQueued() const { return true; }

  /// Allocates bytes (more than 0) for use on `stream`, aligned to 256 (on the
  /// host to `storageAlignment`, or more); asks
  /// nothing of the device where freed bytes fit. Out of memory: the message
  /// has what was asked for and what is free. While `stream` records a graph:
  /// only what fits of freed bytes, which then are the graph's alone; else an
  /// error, and the recording ends.
  virtual Result<void *> allocate(int64_t bytes, Stream stream) = 0;
  /// Gives memory back that was allocated for `stream`. It is not used anew
  /// before what is queued on `stream` and on each of `others` has run.
  virtual void release(void *data, Stream stream,
                       std::span<const Stream> others) = 0;
  /// Sets how many bytes `allocate` may have given out, and kept, at any time;
  /// 0 for as many as there are. What is in use stays.
  virtual Status limitMemory(int64_t bytes);
  /// What was set, or 0.
  virtual int64_t memoryLimit() const { return 0; }
  /// Allocates host memory that the device can copy from and to directly.
  virtual Result<void *> allocatePinned(int64_t bytes) = 0;
  virtual void releasePinned(void *data) = 0;
  /// Lets the device copy from and to host memory of somebody else directly,
  /// without a copy between; read-only memory may be copied from. Memory that
  /// is registered already is refused.
  virtual Status registerHost(void *data, int64_t bytes);
  /// Waits for the copies from and to there of all devices, and ends that.
  virtual void unregisterHost(void *data) { (void)data; }
  /// Says that the host reads or writes pinned memory now: a device that checks
  /// its users finds what the host has not waited for.
  virtual void usePinned(const void *data, int64_t bytes, bool isWrite) {
    (void)data, (void)bytes, (void)isWrite;
  }

  /// True if copies from and to this host memory may run after `copy`.
  virtual bool isPinned(const void *data) const {
    (void)data;
    return false;
  }
  /// Returns when copies from or to this host memory that `stream` was given
  /// have run; what is not pinned was done with at once.
  Status finishCopies(const void *data, Stream stream) {
    return isPinned(data) ? synchronize(stream) : Status::success();
  }
  /// Copies bytes between the device's and the host's memory; both may overlap
  /// on this device. Host memory that is not pinned
  /// was read, or is written, on return.
  virtual Status copy(void *to, const void *from, int64_t bytes,
                      Stream stream) = 0;
  /// Copies bytes of `other`, another device of the same kind, where `from` is,
  /// to this one, in the order of both streams: behind what `otherStream` and
  /// `stream` have been given so far, and before what they are given next.
  /// Neither captures. This one lets the host wait for both.
  virtual Status copyFrom(Backend &other, const void *from, Stream otherStream,
                          void *to, int64_t bytes, Stream stream);
  /// The same of strided elements, both on this device, apart from each other.
  virtual Status copyStrided(const StridedCopy &copy, Stream stream) = 0;
  virtual Status zero(void *to, int64_t bytes, Stream stream) = 0;
  /// to[i] = x[i] + y[i]; of floating-point elements, in f32 at least. `to` may
  /// be x or y.
  virtual Status add(artifact::DType dtype, void *to, const void *x,
                     const void *y, int64_t elements, Stream stream) = 0;
  /// Sets floating-point elements to a number.
  virtual Status fill(artifact::DType dtype, void *to, double value,
                      int64_t elements, Stream stream) = 0;

  /// True if `pointer` is memory that this device's kernels can use; used to
  /// refuse host pointers that are passed as the device's.
  virtual bool owns(const void *pointer) const = 0;

  /// Makes all later work of `waiter` wait for all work of `producer` so far.
  /// Does nothing if they are the same.
  virtual Status wait(Stream waiter, Stream producer) = 0;
  /// Moves `fence` to the point after all work of `stream` so far. A null one
  /// is made.
  virtual Status record(Fence &fence, Stream stream) = 0;
  /// Makes all later work of `waiter` wait for the point. Nothing is before a
  /// null one.
  virtual Status waitFor(Stream waiter, Fence fence) = 0;
  /// Returns when the work before the point has run, or why it failed. Nothing
  /// is before a null one.
  virtual Status await(Fence fence) = 0;
  virtual void releaseFence(Fence fence) = 0;
  /// Returns when all work of `stream` has run, or why it failed.
  virtual Status synchronize(Stream stream) = 0;
  /// True while `stream` records a graph: then nothing may be waited for on the
  /// host, and nothing new allocated.
  virtual bool isCapturing(Stream stream) const = 0;
  /// Ends what `stream` records because something of it was refused: nobody
  /// replays a graph that lacks it. Nothing if the stream records none.
  virtual void breakCapture(Stream stream) = 0;
  /// Returns one of the device's own streams, the same for the same number.
  virtual Result<Stream> side(int number) = 0;

  /// Notes what runs from now on, and when. Graphs are not used meanwhile.
  virtual Status startProfile() {
    return Status::unsupported("device '" + toString(device()) +
                               "' has no profile");
  }
  /// Waits for the device; returns the trace: JSON for chrome://tracing and
  /// Perfetto.
  virtual Result<std::string> stopProfile() { return startProfile(); }
  /// Begins and ends a phase of this thread's work ("forward", "step 3"), for
  /// the trace and for other tools that look on.
  virtual void beginPhase(const char *name) { (void)name; }
  virtual void endPhase() {}

  /// Chooses the artifact's code that runs best here: of several for
  /// processors, `variant` (a name of LLVM's) or, if that is empty, the best.
  /// The reader has chosen the device's kind already.
  virtual Status choose(artifact::ArtifactReader &reader,
                        const std::string &variant) const;
  /// Loads the code of the reader's chosen target.
  virtual Result<std::unique_ptr<DeviceCode>>
  load(const artifact::ArtifactReader &reader,
       const LoadOptions &options = {}) = 0;
};

/// Opens device number `index`; the registry keeps it open.
using BackendFactory = Result<std::shared_ptr<Backend>> (*)(int index);

/// Says how devices of `kind` are opened. Called before any use of them; must
/// not ask for backends itself.
void registerBackend(DeviceKind kind, BackendFactory factory);

/// Returns the device's backend, opened at the first call. NoDevice, with the
/// cause, where this program has no layer for it, or no driver, or no such
/// device. Never null.
Result<Backend *> backendOf(Device device);

} // namespace tandem::runtime

#endif
