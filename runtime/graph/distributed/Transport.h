//===- Transport.h - messages between workers -----------------------------===//
//
// The one interface over which workers talk. A worker is a process, or a thread
// of a test; workers are numbered from 0. A message is some bytes for one
// worker, perhaps the sender itself.
//
// Threads. `send` comes from any thread and does not wait for the receiver.
// `receive` comes from one thread at a time, always the same one. The transport
// ends when no thread is in a call.
//
// Ownership. `send` takes the bytes over, `receive` gives them.
//
// Order and loss. Messages may overtake each other. Where `losesMessages`, they
// may be lost or come twice, too: the Messenger repeats and counts them then.
// A worker that is gone is no error of `send`; the Messenger finds out by its
// silence.
//
// Errors. An error of `send` or `receive` says that this transport is of no use
// any more, for any worker.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_TRANSPORT_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_TRANSPORT_H

#include "runtime/artifact/Status.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::graph::distributed {

using Bytes = std::vector<unsigned char>;
using Milliseconds = std::chrono::milliseconds;

/// What came, and from whom.
struct Envelope {
  uint32_t from = 0;
  Bytes bytes;
};

class Transport {
public:
  virtual ~Transport() = default;
  /// The number of this worker.
  virtual uint32_t worker() const = 0;
  /// How many there are.
  virtual uint32_t workers() const = 0;
  virtual bool losesMessages() const { return false; }
  /// Of a message; larger ones are not sent.
  virtual size_t mostBytes() const { return SIZE_MAX; }
  virtual Status send(uint32_t to, Bytes message) = 0;
  /// Waits for a message at most as long as it is said.
  virtual Result<std::optional<Envelope>> receive(Milliseconds wait) = 0;
};

} // namespace tandem::graph::distributed

#endif
