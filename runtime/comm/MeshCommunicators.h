//===- MeshCommunicators.h - a communicator for each set of axes ----------===//
//
// The ranks that differ in some axes of the mesh alone are a group, ordered
// row-major over the axes as they are listed. Programs name sets of axes; the
// communicators are made before the first program runs, by all ranks in the
// same order.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_MESHCOMMUNICATORS_H
#define TANDEM_RUNTIME_COMM_MESHCOMMUNICATORS_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Shard.h"

#include <map>

namespace tandem::comm {

class MeshCommunicators {
public:
  using Axes = std::vector<std::string>;

  /// All ranks of `world` call it. Fails with Usage unless it has as many ranks
  /// as the manifest's mesh.
  static Result<std::shared_ptr<MeshCommunicators>>
  make(std::shared_ptr<Communicator> world, const artifact::Manifest &manifest);

  Communicator &world() const { return *world_; }
  const Mesh &mesh() const { return mesh_; }
  /// Returns that of this rank's group over `axes`, which a collective of the
  /// manifest has; null for others.
  Communicator *find(const Axes &axes) const;
  /// Returns this rank's number in its group over any axes.
  int64_t placeIn(const Axes &axes) const {
    return comm::placeIn(mesh_, axes, world_->rank());
  }

private:
  std::shared_ptr<Communicator> world_;
  Mesh mesh_;
  std::map<Axes, std::unique_ptr<Communicator>> groups_;
};

} // namespace tandem::comm

#endif
