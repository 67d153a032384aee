//===- RankGroups.cpp - what ranks do together on a GPU, by NCCL ----------===//
#include "cuda/RankGroups.h"

#include <thread>

namespace tandem::cuda {

using namespace driver;
using namespace nccl;
using artifact::Collective;
using artifact::DType;

namespace {

/// What NCCL calls elements that it reduces, or nothing.
std::optional<ncclDataType_t> typeOf(DType type, int version) {
  switch (type) {
  case DType::Bool: // 0 and 1
  case DType::U8:
    return ncclUint8;
  case DType::I8:
    return ncclInt8;
  case DType::I32:
    return ncclInt32;
  case DType::U32:
    return ncclUint32;
  case DType::I64:
    return ncclInt64;
  case DType::U64:
    return ncclUint64;
  case DType::F16:
    return ncclFloat16;
  case DType::BF16:
    return ncclBfloat16;
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::F8E4M3FN:
    return version >= floats8 ? std::optional(ncclFloat8e4m3) : std::nullopt;
  case DType::F8E5M2:
    return version >= floats8 ? std::optional(ncclFloat8e5m2) : std::nullopt;
  case DType::I16:
  case DType::U16:
    break;
  }
  return std::nullopt;
}

ncclRedOp_t reduceOf(Collective::Reduce reduce) {
  switch (reduce) {
  case Collective::Reduce::Sum:
    return ncclSum;
  case Collective::Reduce::Max:
    return ncclMax;
  case Collective::Reduce::Min:
    return ncclMin;
  }
  return ncclSum;
}

bool reduces(const Collective &what) {
  return what.op == Collective::Op::AllReduce ||
         what.op == Collective::Op::ReduceScatter;
}

/// The artifact's collectives that other ranks take part in.
std::vector<const Collective *>
collectivesOf(const artifact::Manifest &manifest) {
  std::vector<const Collective *> all;
  for (const artifact::Program &program : manifest.programs)
    for (const artifact::Launch &launch : program.launches)
      if (launch.collective && launch.collective->communicates() &&
          artifact::groupSize(manifest.mesh, launch.collective->axes) > 1)
        all.push_back(&*launch.collective);
  return all;
}

} // namespace

RankGroups::RankGroups(const Context &context, EventPool &events,
                       Libraries &libraries,
                       const comm::MeshCommunicators &ranks, void *word)
    : context(context), events(events), libraries(libraries), its(ranks),
      word(word), watch(context, events) {}

Result<std::unique_ptr<RankGroups>>
RankGroups::make(const Context &context, EventPool &events,
                 Libraries &libraries, const comm::MeshCommunicators &ranks,
                 const artifact::Manifest &manifest, void *word) {
  std::unique_ptr<RankGroups> made(
      new RankGroups(context, events, libraries, ranks, word));
  std::vector<const Collective *> all = collectivesOf(manifest);
  Status own = libraries.openNccl();
  if (own.ok())
    for (const Collective *what : all)
      if (reduces(*what) && !typeOf(what->dtype, libraries.ncclVersion()))
        own = Status::unsupported(placeOf(*what) + ": NCCL of version " +
                                  std::to_string(libraries.ncclVersion()) +
                                  " does not reduce " +
                                  std::string(artifact::spelling(what->dtype)));
  if (Status status = made->agree(own); !status)
    return status;
  made->call = &libraries.nccl();
  made->watch.open(*made->call, ranks.world().rank(), ranks.world().limit());
  for (const Collective *what : all)
    if (!made->groups.contains(what->axes))
      if (Status status = made->connect(*what); !status)
        return status;
  return Result<std::unique_ptr<RankGroups>>(std::move(made));
}

/// Fails on all ranks where one cannot use NCCL, so that none waits for it.
Status RankGroups::agree(const Status &own) {
  comm::Communicator &world = its.world();
  int64_t version = own.ok() ? libraries.ncclVersion() : 0;
  std::vector<int64_t> all(size_t(world.ranks()));
  if (Status status = world.allGather(&version, all.data(), sizeof(version));
      !status)
    return status;
  if (!own)
    return own;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != version)
      return Status::unsupported(
          all[rank] ? "expected the same NCCL on all ranks, but rank " +
                          std::to_string(rank) + " has version " +
                          std::to_string(all[rank]) + " and rank " +
                          std::to_string(world.rank()) + " has " +
                          std::to_string(version)
                    : "rank " + std::to_string(rank) + " cannot use NCCL");
  return Status::success();
}

Status RankGroups::connect(const Collective &first) {
  comm::Communicator *group = its.find(first.axes);
  if (!group)
    return Status::usage("the communicators are of another artifact");
  // What the others get of one that cannot make an id.
  ncclUniqueId id = {}, none = {};
  Status made;
  if (group->rank() == 0)
    made = check(call->getUniqueId(&id), "ncclGetUniqueId", nullptr);
  if (!made)
    id = none;
  if (Status status = group->broadcast(&id, sizeof(id), 0); !status)
    return status;
  if (!made)
    return made;
  if (std::equal(std::begin(id.internal), std::end(id.internal),
                 std::begin(none.internal)))
    return Status::failed("the first rank of the group cannot use NCCL");
  ncclConfig_t config;
  config.blocking = 0; // a rank that does not come is found below
  ncclComm_t comm = nullptr;
  Status status = check(
      call->initRankConfig(&comm, group->ranks(), id, group->rank(), &config),
      "ncclCommInitRankConfig", comm);
  if (!status) {
    if (comm)
      (void)call->abort(comm);
    return std::move(status).in("rank " + std::to_string(its.world().rank()) +
                                " cannot connect to the others");
  }
  groups.emplace(first.axes, comm);
  watch.add(comm);
  return Status::success();
}

/// Returns how a call ended, which goes on by itself for a while.
Status RankGroups::check(ncclResult_t result, const char *name,
                         ncclComm_t comm) {
  auto end = std::chrono::steady_clock::now() + its.world().limit();
  while (result == ncclInProgress && comm) {
    if (ncclResult_t asked = call->getAsyncError(comm, &result))
      result = asked;
    if (result != ncclInProgress)
      break;
    if (std::chrono::steady_clock::now() > end)
      return Status::failed(
          std::string(name) + ": the other ranks did not come within " +
          std::to_string(its.world().limit().count()) + " ms");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (result == ncclSuccess)
    return Status::success();
  const char *words = call->getErrorString(result);
  const char *more = call->getLastError(comm);
  return Status::failed(std::string(name) +
                        " failed: " + (words ? words : "error ") +
                        (words ? "" : std::to_string(result)) +
                        (more && *more ? std::string(" (") + more + ")" : ""));
}

RankGroups::~RankGroups() {
  watch.stop();
  if (watch.isAborted())
    return;
  for (auto &[axes, comm] : groups)
    endTogether(*call, comm);
}

Status RankGroups::queue(std::span<const Part> exchange, CUstream stream) {
  const Collective &what = *exchange.front().what;
  auto group = groups.find(what.axes);
  if (group == groups.end())
    return Status::usage("the communicators are of another artifact");
  // The code of a library may be loaded now, which disturbs nobody's capture.
  Context::Relaxed relaxed(context);
  auto lock = watch.lock();
  if (!watch.failure())
    return watch.failure();
  Result<CUevent> begin = events.record(stream);
  if (!begin)
    return std::move(begin).status();
  Status status = exchange.size() > 1
                      ? submitTogether(exchange, group->second, stream)
                      : submit(exchange.front(), group->second, stream);
  Result<CUevent> end = events.record(stream);
  if (status.ok() && !end)
    status = std::move(end).status();
  if (!status) {
    // The others wait for what this rank did not queue.
    watch.giveUp(std::move(status).in(placeOf(what)));
    return watch.failure();
  }
  watch.expect(what, *begin, *end);
  return status;
}

Status RankGroups::submitTogether(std::span<const Part> exchange,
                                  ncclComm_t comm, CUstream stream) {
  ncclResult_t result = call->groupStart();
  for (size_t i = 0; i < exchange.size() && result == ncclSuccess; ++i) {
    const auto &[what, from, to] = exchange[i];
    ncclDataType_t type =
        typeOf(what->dtype, libraries.ncclVersion()).value_or(ncclUint8);
    result = call->allReduce(from, to, static_cast<size_t>(what->elements),
                             type, reduceOf(what->reduce), comm, stream);
    if (result == ncclInProgress)
      result = ncclSuccess;
  }
  ncclResult_t ended = call->groupEnd();
  return check(result == ncclSuccess ? ended : result, "ncclGroupEnd", comm);
}

Status RankGroups::submit(const Part &part, ncclComm_t comm, CUstream stream) {
  const auto &[says, from, to] = part;
  const Collective &what = *says;
  auto elements = static_cast<size_t>(what.elements);
  size_t bytes = elements * static_cast<size_t>(byteSize(what.dtype));
  auto ranks = static_cast<size_t>(its.find(what.axes)->ranks());
  ncclDataType_t type = ncclUint8;
  if (reduces(what))
    type = typeOf(what.dtype, libraries.ncclVersion()).value_or(ncclUint8);
  ncclRedOp_t reduce = reduceOf(what.reduce);
  using enum Collective::Op;
  switch (what.op) {
  case AllReduce:
    return check(
        call->allReduce(from, to, elements, type, reduce, comm, stream),
        "ncclAllReduce", comm);
  case ReduceScatter:
    return check(call->reduceScatter(from, to, elements / ranks, type, reduce,
                                     comm, stream),
                 "ncclReduceScatter", comm);
  case AllGather:
    return check(call->allGather(from, to, bytes, type, comm, stream),
                 "ncclAllGather", comm);
  case BroadcastFrom:
    return check(call->broadcast(from, to, bytes, type,
                                 static_cast<int>(what.root), comm, stream),
                 "ncclBroadcast", comm);
  case Barrier:
    return check(
        call->allReduce(word, word, 1, ncclInt32, ncclSum, comm, stream),
        "ncclAllReduce", comm);
  case AllToAll: {
    ncclResult_t result = call->groupStart();
    size_t piece = bytes / ranks;
    for (size_t i = 0; i < ranks && result == ncclSuccess; ++i) {
      auto peer = static_cast<int>(i);
      result = call->send(static_cast<const char *>(from) + i * piece, piece,
                          type, peer, comm, stream);
      if (result == ncclSuccess || result == ncclInProgress)
        result = call->recv(static_cast<char *>(to) + i * piece, piece, type,
                            peer, comm, stream);
      if (result == ncclInProgress)
        result = ncclSuccess;
    }
    ncclResult_t ended = call->groupEnd();
    return check(result == ncclSuccess ? ended : result, "ncclGroupEnd", comm);
  }
  case RankSlice: // copied, without NCCL
    break;
  }
  return Status::success();
}

} // namespace tandem::cuda
