//===- Comm.cpp - the C API: ranks ----------------------------------------===//
#include "runtime/c_api/CApi.h"
#include "runtime/c_api/CommCApi.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/PluginPeers.h"
#include "runtime/comm/ThreadPeers.h"

#include <cstddef>

using namespace tandem;
using namespace tandem::capi;

static_assert(sizeof(tdm_comm_options) ==
              offsetof(tdm_comm_options, no_overlap) + sizeof(size_t));
static_assert(sizeof(tdm_comm_peers) ==
              offsetof(tdm_comm_peers, serves_any_thread) + sizeof(size_t));

namespace {

constexpr uint32_t mostThreads = 1024;

struct CommOptions {
  comm::Milliseconds limit = comm::usualLimit;
  bool overlaps = true;

  std::unique_ptr<comm::Communicator>
  make(std::shared_ptr<comm::Peers> peers) const {
    return comm::makePeerCommunicator(std::move(peers), limit, overlaps);
  }
};

Result<CommOptions> takeOptions(const tdm_comm_options *options) {
  if (!options)
    return CommOptions();
  tdm_comm_options known = TDM_COMM_OPTIONS_INIT;
  if (Status status = takeStruct("tdm_comm_options", *options, known); !status)
    return status;
  // As tdm_dist_options: what is added to the time of now overflows nowhere.
  constexpr int64_t most = 1'000'000'000;
  if (known.limit_ms < 0 || known.limit_ms > most)
    return Status::usage("expected 'limit_ms' of 0 to " + std::to_string(most) +
                         " but got " + std::to_string(known.limit_ms));
  CommOptions made;
  if (known.limit_ms)
    made.limit = comm::Milliseconds(known.limit_ms);
  made.overlaps = !known.no_overlap;
  return made;
}

} // namespace

tdm_status tdm_comm_loopback(uint32_t ranks, const tdm_comm_options *options,
                             tdm_comm **comms) {
  return call([&]() -> Status {
    if (!comms)
      return null("place for the communicators");
    if (ranks == 0 || ranks > mostThreads)
      return Status::usage("expected 1 to " + std::to_string(mostThreads) +
                           " ranks but got " + std::to_string(ranks));
    Result<CommOptions> taken = takeOptions(options);
    if (!taken)
      return std::move(taken).status();
    auto peers = comm::makeThreadPeers(static_cast<int>(ranks));
    for (uint32_t i = 0; i < ranks; ++i)
      comms[i] = new tdm_comm{taken->make(std::move(peers[i]))};
    return Status::success();
  });
}

tdm_status tdm_comm_open(const char *name, void *argument,
                         const tdm_comm_options *options, tdm_comm **comm) {
  return call([&]() -> Status {
    if (!name || !comm)
      return null(name ? "place for the communicator" : "name");
    Result<CommOptions> taken = takeOptions(options);
    if (!taken)
      return std::move(taken).status();
    auto peers = comm::openPeers(name, argument, taken->limit);
    if (!peers)
      return std::move(peers).status();
    *comm = new tdm_comm{taken->make(*std::move(peers))};
    return Status::success();
  });
}

void tdm_comm_free(tdm_comm *comm) { delete comm; }

uint32_t tdm_comm_rank(const tdm_comm *comm) {
  return comm ? static_cast<uint32_t>(comm->world->rank()) : 0;
}

uint32_t tdm_comm_ranks(const tdm_comm *comm) {
  return comm ? static_cast<uint32_t>(comm->world->ranks()) : 0;
}

tdm_status tdm_comm_barrier(tdm_comm *comm) {
  return call([&]() -> Status {
    return comm ? comm->world->barrier() : null("communicator");
  });
}

tdm_status tdm_comm_fail(tdm_comm *comm, const char *reason) {
  return call([&]() -> Status {
    if (!comm || !reason)
      return null(comm ? "reason" : "communicator");
    comm->world->fail(reason);
    return Status::success();
  });
}

tdm_status tdm_model_set_communicator(tdm_model *model, tdm_comm *comm) {
  return call([&]() -> Status {
    if (!model || !comm)
      return null(model ? "communicator" : "model");
    return model->model.setCommunicator(comm->world);
  });
}
