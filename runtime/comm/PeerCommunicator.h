//===- PeerCommunicator.h - collectives out of messages -------------------===//
#ifndef TANDEM_RUNTIME_COMM_PEERCOMMUNICATOR_H
#define TANDEM_RUNTIME_COMM_PEERCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Peers.h"

#include <memory>
#include <vector>

namespace tandem::comm {

/// How long a rank is waited for unless somebody says otherwise.
inline constexpr Milliseconds usualLimit = std::chrono::minutes(5);

/// Returns the communicator of all of them. Without `overlaps` it is used by
/// the thread that has it alone, so that nothing is communicated beside
/// computation.
std::unique_ptr<Communicator>
makePeerCommunicator(std::shared_ptr<Peers> peers,
                     Milliseconds limit = usualLimit, bool overlaps = true);

} // namespace tandem::comm

#endif
