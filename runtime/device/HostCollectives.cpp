//===- HostCollectives.cpp - what ranks do together, on the host ----------===//
#include "runtime/device/HostCollectives.h"
#include "runtime/comm/MeshCommunicators.h"

#include <cstring>

namespace tandem::runtime {

using artifact::Collective;

HostCollective::HostCollective(const Collective &says,
                               const std::vector<artifact::MeshAxis> &mesh)
    : says(says), ranks(artifact::groupSize(mesh, says.axes)),
      bytesIn(says.elements * byteSize(says.dtype)),
      bytesOut(says.elementsOfOutput(ranks).value_or(0) *
               byteSize(says.dtype)) {}

Status HostCollective::run(comm::MeshCommunicators *communicators,
                           const void *from, void *to) const {
  // What has no elements, no rank waits for.
  if (bytesIn == 0 && says.op != Collective::Op::Barrier)
    return Status::success();
  if (!isOfSeveral()) {
    if (from != to)
      std::memmove(to, from, static_cast<size_t>(bytesOut));
    return Status::success();
  }
  if (!communicators)
    return Status::usage("a program over ranks has no communicator");
  Status status = runTogether(*communicators, from, to);
  if (status.ok())
    return status;
  return std::move(status).in(place());
}

std::string HostCollective::place() const {
  return says.where.empty() ? "'" + std::string(spelling(says.op)) + "'"
                            : says.where;
}

Status JoinedCollectives::run(comm::MeshCommunicators &communicators,
                              std::span<const BoundCollective> collectives,
                              std::vector<comm::ReducedPart> &parts) {
  const HostCollective &first = *collectives.front().what;
  comm::Communicator *group = communicators.find(first.says.axes);
  if (!group)
    return Status::usage("the communicators are of another artifact");
  parts.clear();
  for (const BoundCollective &one : collectives)
    parts.push_back({one.from, one.to, one.what->says.elements});
  Status status =
      group->allReduceParts(first.says.dtype, first.says.reduce, parts);
  return status.ok() ? status : std::move(status).in(first.place());
}

Status HostCollective::runTogether(comm::MeshCommunicators &communicators,
                                   const void *from, void *to) const {
  using enum Collective::Op;
  if (says.op == RankSlice) {
    std::memcpy(to,
                static_cast<const char *>(from) +
                    bytesOut * communicators.placeIn(says.axes),
                static_cast<size_t>(bytesOut));
    return Status::success();
  }
  comm::Communicator *group = communicators.find(says.axes);
  if (!group)
    return Status::usage("the communicators are of another artifact");
  switch (says.op) {
  case AllReduce:
    return group->allReduce(says.dtype, says.reduce, from, to, says.elements);
  case ReduceScatter:
    return group->reduceScatter(says.dtype, says.reduce, from, to,
                                says.elements / ranks);
  case AllGather:
    return group->allGather(from, to, bytesIn);
  case AllToAll:
    return group->allToAll(from, to, bytesIn / ranks);
  case BroadcastFrom:
    if (from != to)
      std::memmove(to, from, static_cast<size_t>(bytesIn));
    return group->broadcast(to, bytesIn, static_cast<int>(says.root));
  case Barrier:
    return group->barrier();
  case RankSlice:
    break;
  }
  return Status::success();
}

} // namespace tandem::runtime
