//===- Loopback.h - workers that are threads of one process ---------------===//
//
// For tests: messages lie in queues in memory. With a seed, some are lost, come
// twice or overtake others, always the same ones for the same calls of one
// thread.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_LOOPBACK_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_LOOPBACK_H

#include "runtime/graph/distributed/Transport.h"

#include <memory>

namespace tandem::graph::distributed {

struct LoopbackOptions {
  uint64_t seed = 0;
  double loss = 0;    ///< part of the messages that never comes
  double repeat = 0;  ///< part that comes twice
  double reorder = 0; ///< part that overtakes what was sent before
};

/// Returns a transport for each worker. They may end in any order.
std::vector<std::unique_ptr<Transport>>
makeLoopback(uint32_t workers, const LoopbackOptions &options = {});

} // namespace tandem::graph::distributed

#endif
