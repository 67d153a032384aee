//===- ThreadPeers.h - ranks that are threads of one process --------------===//
//
// For tests, and for programs that have a model on each of some threads.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_THREADPEERS_H
#define TANDEM_RUNTIME_COMM_THREADPEERS_H

#include "runtime/comm/Peers.h"

#include <memory>
#include <vector>

namespace tandem::comm {

/// Returns those of each rank. They end in any order; a rank whose peers have
/// ended is gone for those that wait for it.
std::vector<std::shared_ptr<Peers>> makeThreadPeers(int ranks);

} // namespace tandem::comm

#endif
