//===- HostCollectives.h - what ranks do together, on the host ------------===//
//
// A collective waits for the other ranks, whose programs have the same
// collectives in the same order. Internal to the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_HOSTCOLLECTIVES_H
#define TANDEM_RUNTIME_DEVICE_HOSTCOLLECTIVES_H

#include "runtime/artifact/Manifest.h"

#include <span>
#include <vector>

namespace tandem::comm {
class MeshCommunicators;
struct ReducedPart;
} // namespace tandem::comm

namespace tandem::runtime {

class HostCollective {
public:
  /// Of a validated manifest.
  HostCollective(const artifact::Collective &says,
                 const std::vector<artifact::MeshAxis> &mesh);

  /// True if the group has other ranks.
  bool isOfSeveral() const { return ranks > 1; }
  /// True if it waits for them.
  bool needsOthers() const { return isOfSeveral() && says.communicates(); }
  /// Of a rank; of a barrier 0.
  int64_t bytesRead() const { return bytesIn; }
  int64_t bytesWritten() const { return bytesOut; }
  /// Reads `from` and writes `to`; of a barrier both are null. `communicators`
  /// may be null where no others take part. The message of an error begins with
  /// what the collective is and where it stands in the model.
  Status run(comm::MeshCommunicators *communicators, const void *from,
             void *to) const;

private:
  friend struct JoinedCollectives;
  Status runTogether(comm::MeshCommunicators &communicators, const void *from,
                     void *to) const;
  std::string place() const;

  artifact::Collective says;
  int64_t ranks; ///< of the group
  int64_t bytesIn, bytesOut;
};

/// Collectives with the addresses of a run.
struct BoundCollective {
  const HostCollective *what = nullptr;
  const void *from = nullptr;
  void *to = nullptr;
};

/// All-reduces that go in one exchange (artifact/Exchanges.h).
struct JoinedCollectives {
  /// `parts` is memory for what it gives the communicator.
  static Status run(comm::MeshCommunicators &communicators,
                    std::span<const BoundCollective> collectives,
                    std::vector<comm::ReducedPart> &parts);
};

} // namespace tandem::runtime

#endif
