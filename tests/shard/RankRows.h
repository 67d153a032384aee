//===- RankRows.h - rows of group X, whatever connects the ranks ----------===//
//
// Functions that all ranks run, of threads or of processes. Each compiles its
// models for as many ranks as there are; the expectations are gtest's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SHARD_RANKROWS_H
#define TANDEM_TESTS_SHARD_RANKROWS_H

#include "runtime/comm/PeerCommunicator.h"

#include <span>

namespace tandem::test {

/// What connects the ranks. All of one name are used one after the other.
struct Connection {
  std::shared_ptr<comm::Communicator> world;
  /// The same ranks, which never communicate beside computation.
  std::shared_ptr<comm::Communicator> inTurn;

  Connection(const std::shared_ptr<comm::Peers> &peers,
             comm::Milliseconds limit)
      : world(comm::makePeerCommunicator(peers, limit)),
        inTurn(comm::makePeerCommunicator(peers, limit, /*overlaps=*/false)) {}
  int ranks() const { return world->ranks(); }
  int rank() const { return world->rank(); }
};

struct RankRow {
  const char *name;
  void (*run)(const Connection &connection);
};

std::span<const RankRow> rankRows();

} // namespace tandem::test

#endif
