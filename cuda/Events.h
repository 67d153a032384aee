//===- Events.h - events and streams that are used again ------------------===//
//
// A pool of events without times: to make one asks the driver, so those that
// are done with are kept. An event may be given back as soon as the waits for
// it are queued: a wait is for what was recorded before it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EVENTS_H
#define TANDEM_CUDA_EVENTS_H

#include "cuda/Context.h"

#include <vector>

namespace tandem::cuda {

/// Safe to use from several threads. Its functions need a Scope around them.
class EventPool {
public:
  explicit EventPool(const Context &context) : context(context) {}
  ~EventPool();

  Result<driver::CUevent> take();
  void give(driver::CUevent event);
  /// Makes the pool hold this many.
  Status reserve(size_t count);

  /// Returns an event recorded on `stream`.
  Result<driver::CUevent> record(driver::CUstream stream);
  /// Makes `waiter` wait for all work of `producer` so far.
  Status wait(driver::CUstream waiter, driver::CUstream producer);
  /// Returns when all work of `stream` so far is done, which disturbs nobody's
  /// capture.
  Status await(driver::CUstream stream);

private:
  Result<driver::CUevent> make();

  const Context &context;
  std::mutex mutex;
  std::vector<driver::CUevent> free;
};

/// The device's own streams, made when they are first asked for. They do not
/// wait for the default stream, nor it for them.
class SideStreams {
public:
  explicit SideStreams(const Context &context) : context(context) {}
  ~SideStreams();

  Result<driver::CUstream> at(int number);

private:
  const Context &context;
  std::mutex mutex;
  std::vector<driver::CUstream> streams;
};

} // namespace tandem::cuda

#endif
