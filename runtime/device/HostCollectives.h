//===- HostCollectives.h - what ranks do together, on the host ------------===//
//
// A collective of a program runs in its place among the launches: it waits for
// the other ranks, whose programs have the same collectives in the same order.
// Internal to the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_HOSTCOLLECTIVES_H
#define TANDEM_RUNTIME_DEVICE_HOSTCOLLECTIVES_H

#include "runtime/artifact/Manifest.h"

#include <vector>

namespace tandem::comm {
class MeshCommunicators;
} // namespace tandem::comm

namespace tandem::runtime {

class HostCollective {
public:
  /// Of a validated manifest.
  HostCollective(const artifact::Collective &says,
                 const std::vector<artifact::MeshAxis> &mesh);

  /// True if other ranks take part.
  bool needsOthers() const { return ranks > 1; }
  /// Reads `from` and writes `to`; of a barrier both are null. `communicators`
  /// may be null where no others take part. The message of an error begins with
  /// what the collective is and where it stands in the model.
  Status run(comm::MeshCommunicators *communicators, const void *from,
             void *to) const;

private:
  Status runTogether(comm::MeshCommunicators &communicators, const void *from,
                     void *to) const;

  artifact::Collective says;
  int64_t ranks; ///< of the group
  int64_t bytesIn, bytesOut;
};

} // namespace tandem::runtime

#endif
