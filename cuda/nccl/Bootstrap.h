//===- Bootstrap.h - processes that torchrun started find each other ------===//
//
// What they need is one id of NCCL, which rank 0 makes and gives to all others
// over TCP; nothing else goes that way. A launcher says who is who by
// environment variables, as torchrun does.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_NCCL_BOOTSTRAP_H
#define TANDEM_CUDA_NCCL_BOOTSTRAP_H

#include "cuda/NcclApi.h"
#include "runtime/artifact/Status.h"

#include <chrono>
#include <string>

namespace tandem::cuda::nccl {

/// What the environment says of this process.
struct Launched {
  int rank = 0, ranks = 1;
  int local = 0; ///< LOCAL_RANK: the number of its device
  std::string host, port;

  /// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and LOCAL_RANK. Where
  /// torchrun's agent has the port itself (TORCHELASTIC_USE_AGENT_STORE), it is
  /// the next one. Unsupported, with all that is missing or no number.
  static Result<Launched> fromEnvironment();
};

/// Gives rank 0's `id` to all, within the limit. Ranks compare the number of
/// ranks and NCCL's version; one that differs, or comes twice, is an error on
/// rank 0 and on itself.
Status shareId(const Launched &own, int version,
               std::chrono::milliseconds limit, ncclUniqueId &id);

} // namespace tandem::cuda::nccl

#endif
