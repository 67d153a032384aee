//===- RankGroups.h - what ranks do together on a GPU, by NCCL ------------===//
//
// A communicator of NCCL for each set of axes that the collectives of an
// artifact name. They are made before its first collective, by all ranks at the
// same time: the first rank of a group makes an id, which goes to the others
// over the communicator that the model was given (MPI, threads of a test).
//
// Collectives are queued on one stream, in the order of the launches, which all
// ranks have alike, and nothing waits on the host. Small sums of one exchange
// are one group of calls, for which NCCL starts one kernel. A thread looks on
// (RankWatch.h): where the others do not come within the communicator's limit,
// or NCCL reports an error, it aborts all communicators and the device is lost,
// so that whoever waits for a result gets the error and never a wrong number.
//
// Numbers. NCCL adds in an order of its own, the same in each run on the same
// machines, and rounds floats of 16 and 8 bits at each addition. The maximum of
// floats may leave out a NaN.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_RANKGROUPS_H
#define TANDEM_CUDA_RANKGROUPS_H

#include "cuda/Events.h"
#include "cuda/Libraries.h"
#include "cuda/RankWatch.h"
#include "runtime/comm/MeshCommunicators.h"

#include <map>
#include <span>

namespace tandem::cuda {

class RankGroups {
public:
  /// All ranks call it. `word` is device memory for a barrier. Errors: no NCCL,
  /// on any rank; ranks with other versions; elements that NCCL cannot add.
  /// Needs a Scope around it.
  static Result<std::unique_ptr<RankGroups>>
  make(const Context &context, EventPool &events, Libraries &libraries,
       const comm::MeshCommunicators &ranks, const artifact::Manifest &manifest,
       void *word);
  RankGroups(const RankGroups &) = delete;
  RankGroups &operator=(const RankGroups &) = delete;
  /// The device has done all that was queued. Needs a Scope around it.
  ~RankGroups();

  const comm::MeshCommunicators &ranks() const { return its; }

  /// A collective of the manifest and its addresses; of a barrier both are
  /// null.
  struct Part {
    const artifact::Collective *what;
    const void *from;
    void *to;
  };
  /// Queues an exchange (artifact/Exchanges.h): several are all-reduces of one
  /// set of axes, and one group of calls. Needs a Scope around it.
  Status queue(std::span<const Part> exchange, driver::CUstream stream);

private:
  RankGroups(const Context &context, EventPool &events, Libraries &libraries,
             const comm::MeshCommunicators &ranks, void *word);
  Status agree(const Status &own);
  Status connect(const artifact::Collective &first);
  Status submit(const Part &part, nccl::ncclComm_t comm,
                driver::CUstream stream);
  Status submitTogether(std::span<const Part> exchange, nccl::ncclComm_t comm,
                        driver::CUstream stream);
  Status check(nccl::ncclResult_t result, const char *call,
               nccl::ncclComm_t comm);

  const Context &context;
  EventPool &events;
  Libraries &libraries;
  const nccl::Functions *call = nullptr;
  const comm::MeshCommunicators &its;
  void *word;
  std::map<std::vector<std::string>, nccl::ncclComm_t> groups;
  RankWatch watch;
};

} // namespace tandem::cuda

#endif
