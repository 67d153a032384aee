//===- Peers.h - messages between ranks -----------------------------------===//
//
// What a communicator is built on: an exchange of messages of known sizes.
// Messages between two ranks with one tag arrive in the order in which they
// were sent; each communicator of the connection has a tag of its own.
//
// An error is for good: no later exchange is tried.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_PEERS_H
#define TANDEM_RUNTIME_COMM_PEERS_H

#include "runtime/artifact/Status.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace tandem::comm {

using Milliseconds = std::chrono::milliseconds;

/// Memory for one message, with the rank that it goes to or comes from.
template <typename Pointer> struct Message {
  int peer = 0;
  Pointer data = nullptr;
  int64_t bytes = 0;
};
using Outgoing = Message<const void *>;
using Incoming = Message<void *>;

class Peers {
public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// Sends and receives all of these, at most one of each to and from a rank
  /// and none to this one, and returns when the memory is free again. Fails
  /// with the number of a rank that did not come within `limit`, or is gone.
  virtual Status exchange(int tag, std::span<const Outgoing> outgoing,
                          std::span<const Incoming> incoming,
                          Milliseconds limit) = 0;
  /// True if any thread may call, one at a time; else that which opened it.
  virtual bool servesAnyThread() const { return true; }
  /// Tells all others that this rank has failed.
  virtual void fail(const std::string &reason) = 0;

  /// The last tag that a communicator of this rank was given.
  int lastTag = 0;
};

} // namespace tandem::comm

#endif
