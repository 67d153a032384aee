//===- Communicator.h - what ranks do together ----------------------------===//
//
// A rank is a process, or a thread of a test; the ranks of a communicator are
// numbered from 0. All of them call the same functions in the same order with
// sizes that agree.
//
// Numbers. A sum is made in the order of the ranks, whatever comes first, so
// that two runs with as many ranks give the same bits. Floats of 16 and 8 bits
// are added in f32 and rounded once.
//
// Failure. Each call ends within the communicator's limit. A rank that is gone
// or late is an error that names it by its number in the first communicator,
// and then this communicator and all that share its ranks' connection are of
// no use any more: each later call returns the same error.
//
// Threads. One thread at a time calls communicators of one connection: any, or
// that which opened it (`servesAnyThread`).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_COMMUNICATOR_H
#define TANDEM_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/Status.h"
#include "runtime/comm/Peers.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

namespace tandem::comm {

/// How elements of several ranks become one. A NaN makes a NaN of any of them.
using Reduce = artifact::Collective::Reduce;

/// One of several values that are reduced together. `to` may be `from`.
struct ReducedPart {
  const void *from = nullptr;
  void *to = nullptr;
  int64_t elements = 0;
};

class Communicator {
public:
  virtual ~Communicator() = default;

  virtual bool servesAnyThread() const = 0;

  /// How long each call waits for another rank.
  virtual Milliseconds limit() const = 0;

  /// The number of this rank.
  virtual int rank() const = 0;
  /// How many there are.
  virtual int ranks() const = 0;

  /// Writes the reduction of all ranks' `from`, of `elements` each, to `to`,
  /// which may be `from`. Bools have no sum.
  virtual Status allReduce(artifact::DType type, Reduce reduce,
                           const void *from, void *to, int64_t elements) = 0;
  /// The same of several values, in one exchange. All ranks give as many, of
  /// the same sizes.
  virtual Status allReduceParts(artifact::DType type, Reduce reduce,
                                std::span<const ReducedPart> parts) = 0;
  /// Reduces the ranks' `from`, of ranks() * `elementsOfOut` each, and writes
  /// this rank's piece of the result to `to`, which shares no memory with it.
  virtual Status reduceScatter(artifact::DType type, Reduce reduce,
                               const void *from, void *to,
                               int64_t elementsOfOut) = 0;
  /// Writes all ranks' `from`, in their order, to `to`, of ranks() *
  /// `bytesOfIn`. `from` may be this rank's piece of `to`.
  virtual Status allGather(const void *from, void *to, int64_t bytesOfIn) = 0;
  /// Sends piece i of `from` to rank i; piece i of `to` comes from rank i. They
  /// share no memory.
  virtual Status allToAll(const void *from, void *to, int64_t bytesPerPeer) = 0;
  /// Overwrites `data` by that of rank `root`.
  virtual Status broadcast(void *data, int64_t bytes, int root) = 0;
  /// Sends to another rank, which receives as many bytes.
  virtual Status send(const void *data, int64_t bytes, int to) = 0;
  virtual Status recv(void *data, int64_t bytes, int from) = 0;
  /// Sends and receives all of these at the same time, at most one of each to
  /// and from another rank, where the others do the same.
  virtual Status exchange(std::span<const Outgoing> outgoing,
                          std::span<const Incoming> incoming) = 0;
  /// Returns when all ranks have called it.
  virtual Status barrier() = 0;

  /// Returns the communicator of the ranks that gave the same `color`, in the
  /// order of their keys, and of their numbers where these are equal. All ranks
  /// call it.
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key) = 0;

  /// Tells all ranks of the connection that this one cannot go on: their calls
  /// fail with `reason`, those that wait already, too.
  virtual void fail(const std::string &reason) = 0;
};

} // namespace tandem::comm

#endif
