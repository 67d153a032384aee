//===- Context.h - one device, as the driver knows it ---------------------===//
//
// A device's primary context (the one that other libraries of the process use,
// too), with the driver's functions and what never changes about the device.
// Every call of the driver goes through a `Scope`, which makes the context
// current on this thread and puts back what was current; and its result through
// `check`, which remembers the error after which the device is lost.
//
// Safe to use from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_CONTEXT_H
#define TANDEM_CUDA_CONTEXT_H

#include "cuda/Driver.h"
#include "runtime/device/Backend.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace tandem::cuda {

class Context {
public:
  /// Opens device number `device.index`. NoDevice, with the cause, if there is
  /// no such device or it cannot be used.
  static Result<std::unique_ptr<Context>>
  open(std::shared_ptr<const Driver> driver, runtime::Device device);
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context();

  /// Makes the context current until it ends.
  class Scope {
  public:
    explicit Scope(const Context &context);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    /// Why nothing can be done on the device, or success.
    Status status() const;

  private:
    const Context &context;
    driver::CUcontext before = nullptr;
    driver::CUresult result = driver::CUDA_SUCCESS;
    bool isChanged = false;
  };

  /// Allows what could disturb another thread's capture of a graph (to
  /// allocate, to ask for events) until it ends: nothing here touches what is
  /// captured.
  class Relaxed {
  public:
    explicit Relaxed(const Context &context);
    ~Relaxed();
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;

  private:
    const Context &context;
    driver::CUstreamCaptureMode mode = driver::CU_STREAM_CAPTURE_MODE_RELAXED;
  };

  /// Says that this thread looks on until it ends: what it learns of the
  /// device's work it tells nobody (the emulator would take it for a wait).
  class Background {
  public:
    explicit Background(const Context &context) : context(context) {
      context.driver().lookOn(true);
    }
    ~Background() { context.driver().lookOn(false); }
    Background(const Background &) = delete;
    Background &operator=(const Background &) = delete;

  private:
    const Context &context;
  };

  const Driver &driver() const { return *driver_; }
  const Driver *operator->() const { return driver_.get(); }
  /// The driver's functions.
  const driver::Functions &call() const { return *driver_->operator->(); }
  driver::CUcontext handle() const { return context; }
  driver::CUdevice ordinal() const { return number; }
  runtime::Device device() const { return device_; }

  const std::string &name() const { return name_; }
  /// Returns the compute capability as 10 * major + minor.
  int capability() const { return major * 10 + minor; }
  /// Returns "sm_90".
  std::string arch() const { return "sm_" + std::to_string(capability()); }
  int multiprocessors() const { return multiprocessors_; }
  /// Of a slice of a GPU (MIG) they are, as the multiprocessors, the slice's.
  size_t totalBytes() const { return totalBytes_; }
  int maxSharedBytes() const { return maxSharedBytes_; }
  bool hasPools() const { return hasPools_; }
  /// TANDEM_CUDA_DEBUG=sync: the host waits for each command of a program, so
  /// that a fault is known by the launch that made it.
  bool waitsForEach() const { return waitsForEach_; }

  /// Notes a program that was queued: a fatal error names the last ones, since
  /// it comes from any of them.
  void noteQueued(const std::string &program) const;

  /// Returns the status of `call`; a fatal error makes the device lost. After
  /// `lose`, success is that error, too: what was waited for is no result.
  Status check(driver::CUresult result, const char *call) const;
  bool isLost() const { return lost.load(std::memory_order_acquire); }
  /// Returns "device 'cuda:0' is lost: ...", or what `lose` was given.
  Status lostStatus() const;
  /// Makes the device lost for a reason that the driver knows nothing of: work
  /// that is queued on it will end without its results. The first one counts.
  void lose(Status why) const;
  /// Held while a library's call is recorded on a stream of ours, and while
  /// anybody waits for the whole device, which ends that.
  std::mutex &recording() const { return recordingMutex; }
  /// True while `stream` records a graph, or another does and nothing may be
  /// done on this one.
  bool isCapturing(driver::CUstream stream) const;
  /// Returns the number of `stream`, which never comes again as its handle may
  /// when it is destroyed; 0 where the driver does not say.
  uint64_t numberOf(driver::CUstream stream) const;
  /// Returns the number of the capture that `stream` takes part in, or 0.
  uint64_t captureOf(driver::CUstream stream) const;

private:
  Context() = default;

  std::shared_ptr<const Driver> driver_;
  runtime::Device device_;
  driver::CUdevice number = 0;
  driver::CUcontext context = nullptr;
  std::string name_;
  int major = 0, minor = 0, multiprocessors_ = 0, maxSharedBytes_ = 0;
  size_t totalBytes_ = 0;
  bool hasPools_ = false, waitsForEach_ = false;
  mutable std::atomic<bool> lost{false}, wasGivenUp{false};
  mutable std::mutex recordingMutex;
  mutable std::mutex mutex; ///< of those below
  mutable std::string cause;
  mutable std::string lastQueued[2]; ///< programs, the last one first
  mutable Status given;              ///< to `lose`
};

} // namespace tandem::cuda

#endif
