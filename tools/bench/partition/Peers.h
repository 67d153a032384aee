//===- Peers.h - what other systems keep and take -------------------------===//
//
// Scripts of another folder measure them (torch_train.py and torch_partition.py
// of the peers' benchmark); what cannot be measured here is left out.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_PARTITION_PEERS_H
#define TANDEM_TOOLS_BENCH_PARTITION_PEERS_H

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::bench {

/// A training step of PyTorch, eager.
struct PeerStep {
  double milliseconds = 0;
  int64_t peakBytes = 0; ///< resident, over the process before the model
};
std::optional<PeerStep> torchEager(const std::string &python,
                                   const std::string &folder,
                                   const std::string &workload);

/// What PyTorch saves for the backward: the least that any of its partitions
/// does, and eager. `file` is the output of torch_partition.py.
struct PeerSaved {
  int64_t eager = 0, best = 0;
  std::string bestName;
};
std::optional<PeerSaved> torchSaved(const std::string &file,
                                    const std::string &workload);

} // namespace tandem::bench

#endif
