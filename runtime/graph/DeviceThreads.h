//===- DeviceThreads.h - the threads that run nodes of devices ------------===//
//
// Internal to the graph. Each thread that has a part in a backward of several
// lanes has a mailbox: lanes come there when they have something to run. A
// thread that waits for a task of its own serves its mailbox meanwhile, so that
// of threads whose nodes ask for backwards, each of which needs the other
// thread, none waits for ever.
//
// A device's thread is made when it is first needed and sleeps while nothing is
// to be done. All end with the process, or when the library is unloaded.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DEVICETHREADS_H
#define TANDEM_RUNTIME_GRAPH_DEVICETHREADS_H

#include "runtime/device/Device.h"

#include <condition_variable>
#include <mutex>

namespace tandem::graph {

class Task;
struct Lane;

class Mailbox {
public:
  Mailbox() = default;
  Mailbox(const Mailbox &) = delete;
  Mailbox &operator=(const Mailbox &) = delete;

  /// Gives the thread a lane of its own to serve, if something is ready there.
  void activate(Lane &lane);
  /// Gives it a lane with a slot that was filled for it.
  void post(Lane &lane, int slot);
  /// Says that no lane of a task of this mailbox's thread is active.
  void finish(Task &task);
  /// Says that nothing more will come.
  void close();
  /// Serves lanes until `task` is finished, or, if it is null, until the
  /// mailbox is closed. Only its own thread calls this.
  void serve(const Task *task);

private:
  void start(Lane &lane);
  void put(Lane &lane);
  Lane *take(const Task *task);

  std::mutex mutex; ///< guards the rest, and what is said so of lanes and tasks
  std::condition_variable wake;
  Lane *first = nullptr, *last = nullptr;
  bool isClosed = false;
};

/// The mailbox of this thread.
Mailbox &threadMailbox();
/// The device whose thread this is; the host if it is none.
runtime::Device threadDevice();

/// Returns the mailbox of the device's thread, which is made if there is none.
/// Null if there can be none: the system gives no thread, the process ends, or
/// was forked from the one that made the threads.
Mailbox *deviceMailbox(runtime::Device device);

} // namespace tandem::graph

#endif
