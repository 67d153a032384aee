//===- PluginPeers.h - ranks that a library connects ----------------------===//
#ifndef TANDEM_RUNTIME_COMM_PLUGINPEERS_H
#define TANDEM_RUNTIME_COMM_PLUGINPEERS_H

#include "runtime/comm/Peers.h"

#include <memory>

namespace tandem::comm {

/// Opens those of the library `name` (Plugin.h), for which all ranks call this.
/// `argument` is the library's: of "mpi" an MPI_Comm *, or null for all
/// processes of the job.
Result<std::shared_ptr<Peers>> openPeers(const std::string &name,
                                         void *argument, Milliseconds limit);

} // namespace tandem::comm

#endif
