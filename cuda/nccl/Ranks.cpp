//===- Ranks.cpp - messages between ranks over NCCL -----------------------===//
//
// libtandem-nccl.so: what tdm_comm_open("nccl", ...) opens, for programs that
// have no MPI. Ranks are processes that a launcher as torchrun started, or
// those of a communicator of NCCL that the program has. It moves what the host
// has to say: what ranks compare before the first step, pieces of checkpoints,
// ids. What a step communicates on GPUs goes another way (cuda/RankGroups.h).
//
// A message goes over pinned memory and memory of the device, in pieces. Each
// rank has its device: of a communicator that it was given the one that is
// current, else LOCAL_RANK. Waiting ends at the limit: then, and after any
// error, the communicator is aborted, unless it is the program's own.
//
//===----------------------------------------------------------------------===//
#include "cuda/Context.h"
#include "cuda/Libraries.h"
#include "cuda/RankWatch.h"
#include "cuda/Register.h"
#include "cuda/nccl/Bootstrap.h"
#include "runtime/comm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using namespace tandem;
using namespace tandem::cuda;
using namespace tandem::cuda::nccl;
using Clock = std::chrono::steady_clock;

/// Of a message, at a time.
constexpr size_t pieceBytes = size_t(8) << 20;

class Ranks {
public:
  ~Ranks() {
    if (!context)
      return;
    Context::Scope scope(*context);
    if (stream)
      context->call().streamDestroy(stream);
    if (onDevice)
      context->call().memFree(onDevice);
    if (pinned)
      context->call().memFreeHost(pinned);
  }

  Status open(ncclComm_t given, std::chrono::milliseconds most);
  Status exchange(const tdm_comm_message *outgoing, size_t outgoingCount,
                  const tdm_comm_message *incoming, size_t incomingCount);
  void end(bool isLost);

  int rank = 0, ranks = 0;
  std::string error;
  std::chrono::milliseconds limit{0};

private:
  Status connect(const Launched &own);
  Status reserve(size_t bytes);
  Status round(const tdm_comm_message *outgoing, size_t outgoingCount,
               const tdm_comm_message *incoming, size_t incomingCount,
               size_t first);
  Status check(ncclResult_t result, const char *name);
  Status await(const std::string &whom);
  void abort();

  std::unique_ptr<Context> context;
  Functions call;
  ncclComm_t comm = nullptr;
  bool isOwn = false; ///< made here
  driver::CUstream stream = nullptr;
  driver::CUdeviceptr onDevice = 0;
  void *pinned = nullptr;
  size_t reserved = 0;
};

Status Ranks::open(ncclComm_t given, std::chrono::milliseconds most) {
  limit = most;
  Launched own;
  if (!given) {
    auto found = Launched::fromEnvironment();
    if (!found)
      return std::move(found).status();
    own = *found;
  }
  // Tests run on the emulator.
  const char *emulated = std::getenv("TANDEM_NCCL_DEVICE");
  bool isEmulated = emulated && std::strcmp(emulated, "cuda-emu") == 0;
  auto library = openNcclLibrary(filesOf(isEmulated).nccl);
  if (!library)
    return std::move(library).status();
  call = library->functions;
  auto opened = Driver::open(driverOf(isEmulated));
  if (!opened)
    return std::move(opened).status();
  auto shared = std::make_shared<const Driver>(*opened);
  int number = own.local;
  if (given)
    if (Status status =
            check(call.cuDevice(given, &number), "ncclCommCuDevice");
        !status)
      return status;
  auto made = Context::open(
      std::move(shared),
      {isEmulated ? runtime::DeviceKind::CudaEmu : runtime::DeviceKind::Cuda,
       number});
  if (!made)
    return std::move(made).status();
  context = *std::move(made);
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  if (Status status = context->check(
          context->call().streamCreate(&stream, driver::CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
      !status)
    return status;
  if (!given) {
    rank = own.rank;
    ranks = own.ranks;
    ncclUniqueId id = {};
    if (rank == 0)
      if (Status status = check(call.getUniqueId(&id), "ncclGetUniqueId");
          !status)
        return status;
    if (Status status = shareId(own, library->version, limit, id); !status)
      return status;
    isOwn = true;
    ncclConfig_t config;
    config.blocking = 0;
    return check(call.initRankConfig(&comm, ranks, id, rank, &config),
                 "ncclCommInitRankConfig");
  }
  comm = given;
  if (Status status = check(call.count(comm, &ranks), "ncclCommCount"); !status)
    return status;
  return check(call.userRank(comm, &rank), "ncclCommUserRank");
}

Status Ranks::check(ncclResult_t result, const char *name) {
  auto end = Clock::now() + limit;
  while (result == ncclInProgress && comm) {
    if (ncclResult_t asked = call.getAsyncError(comm, &result))
      result = asked;
    if (result != ncclInProgress)
      break;
    if (Clock::now() > end)
      return Status::failed(std::string(name) +
                            ": the other ranks did not come within " +
                            std::to_string(limit.count()) + " ms");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (result == ncclSuccess)
    return Status::success();
  const char *words = call.getErrorString(result);
  return Status::failed(std::string(name) +
                        " failed: " + (words ? words : std::to_string(result)));
}

Status Ranks::reserve(size_t bytes) {
  if (bytes <= reserved)
    return Status::success();
  const driver::Functions &its = context->call();
  if (onDevice)
    its.memFree(onDevice);
  if (pinned)
    its.memFreeHost(pinned);
  onDevice = 0;
  pinned = nullptr;
  reserved = 0;
  if (Status status =
          context->check(its.memAlloc(&onDevice, bytes), "cuMemAlloc");
      !status)
    return status;
  if (Status status = context->check(
          its.memHostAlloc(&pinned, bytes, driver::CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
      !status)
    return status;
  reserved = bytes;
  return Status::success();
}

/// Waits for the stream; names who is waited for.
Status Ranks::await(const std::string &whom) {
  auto end = Clock::now() + limit;
  auto pause = std::chrono::microseconds(20);
  for (;;) {
    driver::CUresult result = context->call().streamQuery(stream);
    if (result == driver::CUDA_SUCCESS)
      return Status::success();
    if (result != driver::CUDA_ERROR_NOT_READY)
      return context->check(result, "cuStreamQuery");
    ncclResult_t error = ncclSuccess;
    if (ncclResult_t asked = call.getAsyncError(comm, &error))
      error = asked;
    if (error != ncclSuccess && error != ncclInProgress)
      return check(error, "NCCL").in(whom + " is gone");
    if (Clock::now() > end)
      return Status::failed(whom + " did not come within " +
                            std::to_string(limit.count()) + " ms");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(500));
  }
}

/// Sends and receives of each message what is `first` bytes behind its begin,
/// a piece at most.
Status Ranks::round(const tdm_comm_message *outgoing, size_t outgoingCount,
                    const tdm_comm_message *incoming, size_t incomingCount,
                    size_t first) {
  auto sizeOf = [&](const tdm_comm_message &message) {
    return message.size > first ? std::min(message.size - first, pieceBytes)
                                : 0;
  };
  size_t sent = 0, all = 0;
  std::string whom;
  for (size_t i = 0; i < outgoingCount; ++i)
    sent += sizeOf(outgoing[i]);
  all = sent;
  for (size_t i = 0; i < incomingCount; ++i) {
    all += sizeOf(incoming[i]);
    whom += (whom.empty() ? "rank " : ", ") + std::to_string(incoming[i].rank);
  }
  if (whom.empty() && outgoingCount)
    whom = "rank " + std::to_string(outgoing[0].rank);
  if (Status status = reserve(all); !status)
    return status;
  const driver::Functions &its = context->call();
  auto *host = static_cast<char *>(pinned);
  size_t place = 0;
  context->driver().noteHostAccess(host, static_cast<int64_t>(sent), true);
  for (size_t i = 0; i < outgoingCount; ++i) {
    std::memcpy(host + place,
                static_cast<const char *>(outgoing[i].data) + first,
                sizeOf(outgoing[i]));
    place += sizeOf(outgoing[i]);
  }
  if (sent)
    if (Status status =
            context->check(its.memcpyHtoDAsync(onDevice, host, sent, stream),
                           "cuMemcpyHtoDAsync");
        !status)
      return status;
  place = 0;
  ncclResult_t result = call.groupStart();
  auto one = [&](const tdm_comm_message &message, bool isSent) {
    size_t size = sizeOf(message);
    auto peer = static_cast<int>(message.rank);
    auto *at = reinterpret_cast<void *>(onDevice + place);
    place += size;
    if (!size || (result != ncclSuccess && result != ncclInProgress))
      return;
    result = isSent ? call.send(at, size, ncclUint8, peer, comm, stream)
                    : call.recv(at, size, ncclUint8, peer, comm, stream);
  };
  for (size_t i = 0; i < outgoingCount; ++i)
    one(outgoing[i], true);
  for (size_t i = 0; i < incomingCount; ++i)
    one(incoming[i], false);
  ncclResult_t ended = call.groupEnd();
  if (result == ncclSuccess || result == ncclInProgress)
    result = ended;
  if (Status status = check(result, "ncclGroupEnd"); !status)
    return status;
  if (all > sent)
    if (Status status =
            context->check(its.memcpyDtoHAsync(host + sent, onDevice + sent,
                                               all - sent, stream),
                           "cuMemcpyDtoHAsync");
        !status)
      return status;
  if (Status status = await(whom); !status)
    return status;
  context->driver().noteHostAccess(host + sent,
                                   static_cast<int64_t>(all - sent), false);
  place = sent;
  for (size_t i = 0; i < incomingCount; ++i) {
    std::memcpy(static_cast<char *>(incoming[i].data) + first, host + place,
                sizeOf(incoming[i]));
    place += sizeOf(incoming[i]);
  }
  return Status::success();
}

Status Ranks::exchange(const tdm_comm_message *outgoing, size_t outgoingCount,
                       const tdm_comm_message *incoming, size_t incomingCount) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  size_t longest = 0;
  for (size_t i = 0; i < outgoingCount; ++i)
    longest = std::max(longest, outgoing[i].size);
  for (size_t i = 0; i < incomingCount; ++i)
    longest = std::max(longest, incoming[i].size);
  for (size_t first = 0; first < longest; first += pieceBytes)
    if (Status status =
            round(outgoing, outgoingCount, incoming, incomingCount, first);
        !status) {
      end(/*isLost=*/true);
      return status;
    }
  return Status::success();
}

/// One that was made here ends; where something went wrong, what waits on the
/// device ends with it.
void Ranks::end(bool isLost) {
  if (comm && isOwn) {
    Context::Scope scope(*context);
    if (isLost)
      (void)call.abort(comm);
    else
      endTogether(call, comm);
  }
  comm = nullptr;
}

tdm_status give(const Status &status, char *message, size_t size) {
  if (message && size)
    std::snprintf(message, size, "%s", status.message().c_str());
  return static_cast<tdm_status>(status.code());
}

} // namespace

extern "C" TDM_EXPORT tdm_status tandem_comm_open(void *argument, int64_t limit,
                                                  tdm_comm_peers *peers,
                                                  char *message, size_t size) {
  if (!peers || peers->struct_size < sizeof(tdm_comm_peers))
    return give(Status::unsupported("expected a tdm_comm_peers of at least " +
                                    std::to_string(sizeof(tdm_comm_peers)) +
                                    " bytes: libtandem.so is older"),
                message, size);
  auto made = std::make_unique<Ranks>();
  Status status =
      made->open(argument ? *static_cast<ncclComm_t *>(argument) : nullptr,
                 std::chrono::milliseconds(limit));
  if (!status) {
    made->end(/*isLost=*/true);
    return give(status, message, size);
  }
  peers->rank = static_cast<size_t>(made->rank);
  peers->ranks = static_cast<size_t>(made->ranks);
  peers->serves_any_thread = 1;
  peers->user = made.release();
  peers->exchange = [](void *user, uint32_t /*tag*/,
                       const tdm_comm_message *outgoing, size_t outgoingCount,
                       const tdm_comm_message *incoming, size_t incomingCount,
                       int64_t milliseconds) {
    auto *ranks = static_cast<Ranks *>(user);
    if (!ranks->error.empty())
      return TDM_FAILED;
    ranks->limit = std::chrono::milliseconds(milliseconds);
    // Between two ranks messages arrive in the order of their sending, and all
    // ranks have the same: a tag is not needed.
    Status done =
        ranks->exchange(outgoing, outgoingCount, incoming, incomingCount);
    if (!done)
      ranks->error = done.message();
    return static_cast<tdm_status>(done.code());
  };
  peers->fail = [](void *user, const char * /*reason*/) {
    auto *ranks = static_cast<Ranks *>(user);
    ranks->error = "this rank has failed";
    ranks->end(/*isLost=*/true); // the others see it
  };
  peers->error = [](void *user) {
    return static_cast<Ranks *>(user)->error.c_str();
  };
  peers->close = [](void *user) {
    auto *ranks = static_cast<Ranks *>(user);
    ranks->end(/*isLost=*/false);
    delete ranks;
  };
  return TDM_OK;
}
