//===- CollectiveThread.h - what ranks do together, beside the launches ---===//
//
// Internal to the runtime. A thread runs the collectives of a program in their
// order while the launches that need none of them go on. A launch that reads
// what a collective writes, or writes what one reads or writes, waits for it
// and for those before it. Which memory that is, is found from the addresses of
// the run, whatever they lie in. Small all-reduces that follow each other go in
// one exchange.
//
// Used by one thread, that which runs the program. Allocates nothing after
// `start`, and nobody spins.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_COLLECTIVETHREAD_H
#define TANDEM_RUNTIME_DEVICE_COLLECTIVETHREAD_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/HostCollectives.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tandem::runtime {

/// Memory that a launch reads, or writes and perhaps reads.
struct Touched {
  const void *data = nullptr;
  int64_t bytes = 0;
  bool isWritten = false;
};

/// True if a launch that touches this waits for the collective.
bool isInTheWay(const BoundCollective &one, const Touched &touched);

class CollectiveThread {
public:
  CollectiveThread() = default;
  ~CollectiveThread();
  CollectiveThread(const CollectiveThread &) = delete;
  CollectiveThread &operator=(const CollectiveThread &) = delete;

  /// Prepares for up to `most` collectives between two calls of `finish`. False
  /// if there can be no thread: then nothing may be queued.
  bool start(size_t most);
  /// Adds one to those that go in one exchange.
  void add(const BoundCollective &one) { entries.push_back(one); }
  /// Lets the thread have what was added since the last call.
  void submit(comm::MeshCommunicators &communicators);
  /// True if anything was submitted that is not known to be done.
  bool isBusy() const { return known < entries.size(); }
  /// Waits until nothing that was submitted is in the way of `touched`. After
  /// an error nothing is.
  Status waitFor(const Touched &touched);
  /// Waits for all, and forgets them.
  Status finish();

private:
  void serve();
  Status waitUntil(size_t count);

  std::vector<BoundCollective> entries; ///< of the run, in order
  std::vector<size_t> ends;             ///< of each exchange in `entries`
  size_t known = 0;                     ///< entries that were seen to be done
  std::vector<comm::ReducedPart> parts; ///< of the thread

  std::mutex mutex; ///< guards the rest
  std::condition_variable filled, advanced;
  comm::MeshCommunicators *communicators = nullptr;
  size_t submitted = 0, exchanged = 0; ///< in `ends`
  size_t done = 0;                     ///< in `entries`
  Status status; ///< the first error: nothing runs after it
  bool isEnding = false;
  std::thread thread;
};

} // namespace tandem::runtime

#endif
