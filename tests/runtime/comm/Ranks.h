//===- Ranks.h - tests that several ranks run -----------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_COMM_RANKS_H
#define TANDEM_TESTS_RUNTIME_COMM_RANKS_H

#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/ThreadPeers.h"

#include <functional>
#include <thread>
#include <vector>

namespace tandem::comm::testing {

/// Runs `body` on a thread for each rank, with a communicator of all.
inline void withRanks(int ranks,
                      const std::function<void(Communicator &)> &body,
                      Milliseconds limit = std::chrono::seconds(60)) {
  auto peers = makeThreadPeers(ranks);
  std::vector<std::thread> threads;
  for (auto &mine : peers)
    threads.emplace_back([&body, limit, mine = std::move(mine)]() mutable {
      auto world = makePeerCommunicator(std::move(mine), limit);
      body(*world);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace tandem::comm::testing

#endif
