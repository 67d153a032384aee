//===- MeshCommunicators.cpp - a communicator for each set of axes --------===//
#include "runtime/comm/MeshCommunicators.h"

#include <algorithm>

namespace tandem::comm {

Result<std::shared_ptr<MeshCommunicators>>
MeshCommunicators::make(std::shared_ptr<Communicator> world,
                        const artifact::Manifest &manifest) {
  auto made = std::make_shared<MeshCommunicators>();
  made->mesh_ = manifest.mesh;
  made->world_ = std::move(world);
  const Mesh &mesh = made->mesh_;
  int64_t rank = made->world_->rank();
  if (int64_t wanted = ranksOf(mesh); made->world_->ranks() != wanted)
    return Status::usage("expected " + std::to_string(wanted) +
                         " ranks, for the mesh " + toString(mesh) +
                         ", but got " + std::to_string(made->world_->ranks()));
  for (const artifact::Program &program : manifest.programs)
    for (const artifact::Launch &launch : program.launches) {
      if (!launch.collective || !launch.collective->communicates() ||
          made->groups_.contains(launch.collective->axes))
        continue;
      const Axes &axes = launch.collective->axes;
      // Ranks are of one group if they agree in all other axes.
      Axes others;
      for (const artifact::MeshAxis &axis : mesh)
        if (std::find(axes.begin(), axes.end(), axis.name) == axes.end())
          others.push_back(axis.name);
      auto group = made->world_->split(
          static_cast<int>(comm::placeIn(mesh, others, rank)),
          static_cast<int>(comm::placeIn(mesh, axes, rank)));
      if (!group)
        return std::move(group).status();
      made->groups_.emplace(axes, *std::move(group));
    }
  return std::shared_ptr<MeshCommunicators>(std::move(made));
}

Communicator *MeshCommunicators::find(const Axes &axes) const {
  auto found = groups_.find(axes);
  return found == groups_.end() ? nullptr : found->second.get();
}

} // namespace tandem::comm
