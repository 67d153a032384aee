//===- EntryNccl.cpp - the functions of NCCL, emulated --------------------===//
//
// Ranks are threads of a process, or processes of this machine (RankMemory.h).
// A collective is two commands on its stream: one puts this rank's part into
// shared memory, one takes the parts of all when they are there; a sum is made
// in the order of the ranks. What they read and write is checked for races like
// a kernel's. Collectives of a group are queued at its end. Errors of the
// emulator: ranks that ask for different collectives, or for other groups of
// them; collectives of a group of which one writes what another one touches,
// since a GPU runs them at once; messages of other sizes than expected;
// communicators used after their end, in a capture, or in another context than
// they were made in.
//
//===----------------------------------------------------------------------===//
#include "cuda/NcclApi.h"
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Execution.h"
#include "cuda/emulator/RankMemory.h"
#include "cuda/emulator/RankProgress.h"
#include "runtime/comm/ReduceBlocks.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

namespace tandem::cuda::nccl {

extern "C" {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  __attribute__((visibility("default"))) result symbol parameters;
#include "cuda/NcclFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
}

/// Shared with commands that are queued when it ends.
struct ncclComm {
  struct State {
    std::shared_ptr<emulator::RankMemory> memory;
    emulator::Device *device = nullptr;
    std::atomic<bool> isAborted{false};
    std::atomic<ncclResult_t> error{ncclSuccess};
    uint64_t collectives = 0; ///< that were queued
    uint64_t sent[emulator::RankMemory::mostRanks] = {};
    uint64_t received[emulator::RankMemory::mostRanks] = {};
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace {

using namespace emulator;
using artifact::DType;
using driver::CUDA_SUCCESS;
using driver::CUresult;
using State = ncclComm::State;
using StatePtr = std::shared_ptr<State>;

/// Communicators that are in use. Guarded by the machine's lock.
std::set<ncclComm_t> &live() {
  static auto *all = new std::set<ncclComm_t>;
  return *all;
}

std::optional<DType> elementOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
    return DType::I8;
  case ncclUint8:
    return DType::U8;
  case ncclInt32:
    return DType::I32;
  case ncclUint32:
    return DType::U32;
  case ncclInt64:
    return DType::I64;
  case ncclUint64:
    return DType::U64;
  case ncclFloat16:
    return DType::F16;
  case ncclFloat32:
    return DType::F32;
  case ncclFloat64:
    return DType::F64;
  case ncclBfloat16:
    return DType::BF16;
  case ncclFloat8e4m3:
    return DType::F8E4M3FN;
  case ncclFloat8e5m2:
    return DType::F8E5M2;
  }
  return std::nullopt;
}

std::optional<comm::Reduce> reduceOf(ncclRedOp_t reduce) {
  switch (reduce) {
  case ncclSum:
    return comm::Reduce::Sum;
  case ncclMax:
    return comm::Reduce::Max;
  case ncclMin:
    return comm::Reduce::Min;
  case ncclProd:
    break;
  }
  return std::nullopt;
}

enum Op { AllReduce, ReduceScatter, AllGather, Broadcast };

/// Queues one command of a communicator.
ncclResult_t push(Machine &m, Stream &on, const StatePtr &state,
                  const std::string &what, std::function<bool()> canRun,
                  std::function<void(Execution &)> run) {
  Command command;
  command.kind = Command::Kind::Kernel;
  command.what = "library call '" + what + "'";
  command.duration = 5000;
  command.isHeld = [state, canRun = std::move(canRun)] {
    return !state->isAborted && !canRun();
  };
  command.run = [state, run = std::move(run)](Execution &execution) {
    if (!state->isAborted)
      run(execution);
  };
  if (m.push(on, std::move(command)))
    return ncclUnhandledCudaError;
  keepGoing(on.last);
  return ncclSuccess;
}

/// Runs `body` with the machine's lock, for a communicator that may be used on
/// the stream now.
template <typename Body>
ncclResult_t withComm(ncclComm_t comm, CUstream stream, const char *name,
                      Body &&body) {
  ncclResult_t result = ncclInvalidArgument;
  CUresult entered = withDriver([&](Machine &m) {
    auto refuse = [&](const char *why) {
      m.report.error(std::string(name) + " " + why);
      return CUDA_SUCCESS;
    };
    if (!live().contains(comm))
      return refuse("is given a communicator that has ended, or is none");
    State &state = *comm->state;
    if (!state.memory->isComplete())
      return refuse("is given a communicator that has not all ranks yet");
    if (Machine::current() != state.device)
      return refuse("is called in another context than the communicator's");
    Stream *on = m.stream(stream);
    if (!on || on->device != state.device)
      return refuse("is given a stream of another device, or none");
    if (on->capture)
      return refuse("is captured, which the emulator does not do");
    result = state.error;
    if (result == ncclSuccess)
      result = body(m, *on, comm->state);
    return CUDA_SUCCESS;
  });
  return entered ? ncclUnhandledCudaError : result;
}

/// Compares what all ranks have asked for.
bool isSame(Execution &execution, State &state, uint64_t number) {
  const RankMemory &memory = *state.memory;
  const RankCall &own = memory.call(number, memory.rank());
  for (int rank = 0; rank < memory.ranks(); ++rank)
    if (const RankCall &other = memory.call(number, rank); !(other == own)) {
      execution.error("of rank " + std::to_string(memory.rank()) +
                      " asks for " + own.text() + ", but that of rank " +
                      std::to_string(rank) + " for " + other.text());
      state.error = ncclInvalidUsage;
      return false;
    }
  return true;
}

/// Computes this rank's output, of `bytes`, from the parts of all.
void combine(const RankMemory &memory, uint64_t number, const RankCall &call,
             std::byte *to, size_t bytes) {
  auto ranks = static_cast<size_t>(memory.ranks());
  switch (call.op) {
  case AllGather:
    for (size_t rank = 0; rank < ranks; ++rank)
      std::memcpy(to + rank * (bytes / ranks),
                  memory.part(number, static_cast<int>(rank)), bytes / ranks);
    return;
  case Broadcast:
    std::memcpy(to, memory.part(number, call.root), bytes);
    return;
  default:
    break;
  }
  std::vector<const void *> blocks;
  for (size_t rank = 0; rank < ranks; ++rank)
    blocks.push_back(memory.part(number, static_cast<int>(rank)) +
                     (call.op == ReduceScatter
                          ? static_cast<size_t>(memory.rank()) * bytes
                          : 0));
  DType type = *elementOf(static_cast<ncclDataType_t>(call.type));
  (void)comm::reduceBlocks(
      type, *reduceOf(static_cast<ncclRedOp_t>(call.reduce)), blocks, to,
      static_cast<int64_t>(bytes) / byteSize(type));
}

/// A collective that was asked for.
struct Asked {
  const char *name;
  RankCall call;
  const void *from;
  void *to;
  ncclComm_t comm;
  CUstream stream;
};

struct Bytes {
  size_t in = 0, out = 0;
};

/// Returns what a rank reads and writes; nothing of a call that cannot be.
std::optional<Bytes> bytesOf(const RankCall &call, const RankMemory &memory) {
  auto type = elementOf(static_cast<ncclDataType_t>(call.type));
  auto ranks = static_cast<size_t>(memory.ranks());
  if (!type || call.root < 0 || call.root >= memory.ranks() ||
      (call.op < AllGather && !reduceOf(static_cast<ncclRedOp_t>(call.reduce))))
    return std::nullopt;
  size_t bytes = call.count * static_cast<size_t>(byteSize(*type));
  Bytes all{call.op == ReduceScatter ? bytes * ranks : bytes,
            call.op == AllGather ? bytes * ranks : bytes};
  if (call.op == Broadcast && memory.rank() != call.root)
    all.in = 0;
  return all.in > RankMemory::mostBytes ? std::nullopt : std::optional(all);
}

ncclResult_t queueOne(const Asked &asked) {
  const auto &[name, call, from, to, comm, stream] = asked;
  return withComm(
      comm, stream, name,
      [&, name = name, call = call, from = from,
       to = to](Machine &m, Stream &on, const StatePtr &state) {
        RankMemory &memory = *state->memory;
        std::optional<Bytes> bytes = bytesOf(call, memory);
        if (!bytes)
          return ncclInvalidArgument;
        auto [in, out] = *bytes;
        if (out == 0)
          return ncclSuccess;
        uint64_t number = ++state->collectives;
        ncclResult_t result = push(
            m, on, state, std::string(name) + " (send)",
            [=, &memory] { return memory.canPut(number); },
            [=, in = in, &memory](Execution &execution) {
              if (execution.read(reinterpret_cast<uintptr_t>(from), in))
                std::memcpy(memory.put(number), from, in);
              memory.hasPut(number, call);
            });
        if (result)
          return result;
        return push(
            m, on, state, name, [=, &memory] { return memory.canTake(number); },
            [=, out = out, &memory, s = state.get()](Execution &execution) {
              if (execution.write(reinterpret_cast<uintptr_t>(to), out) &&
                  isSame(execution, *s, number))
                combine(memory, number, call, static_cast<std::byte *>(to),
                        out);
              memory.hasTaken(number);
            });
      });
}

/// A message of a group.
struct Message {
  bool isSent;
  const void *data;
  size_t bytes;
  int peer;
  ncclComm_t comm;
  CUstream stream;
};

/// Of this thread.
struct Group {
  int depth = 0;
  std::vector<Asked> collectives;
  std::vector<Message> messages;
};
Group &group() {
  thread_local Group one;
  return one;
}

void receive(Execution &execution, RankMemory &memory, const Message &message,
             uint64_t number) {
  auto to = reinterpret_cast<uintptr_t>(message.data);
  if (uint64_t bytes = memory.bytesOf(message.peer); bytes != message.bytes)
    execution.error("receives " + std::to_string(message.bytes) +
                    " bytes, but rank " + std::to_string(message.peer) +
                    " sends " + std::to_string(bytes));
  else if (execution.write(to, message.bytes))
    std::memcpy(reinterpret_cast<void *>(to),
                memory.message(message.peer, memory.rank()), message.bytes);
  memory.hasReceived(number, message.peer);
}

ncclResult_t queueOne(const Message &message) {
  const char *name = message.isSent ? "ncclSend" : "ncclRecv";
  return withComm(
      message.comm, message.stream, name,
      [&](Machine &m, Stream &on, const StatePtr &state) {
        RankMemory &memory = *state->memory;
        if (message.peer < 0 || message.peer >= memory.ranks() ||
            message.bytes > RankMemory::mostBytes)
          return ncclInvalidArgument;
        int peer = message.peer;
        if (!message.isSent) {
          uint64_t number = ++state->received[peer];
          return push(
              m, on, state, name,
              [=, &memory] { return memory.canReceive(number, peer); },
              [=, &memory](Execution &execution) {
                receive(execution, memory, message, number);
              });
        }
        uint64_t number = ++state->sent[peer];
        return push(
            m, on, state, name,
            [=, &memory] { return memory.canSend(number, peer); },
            [=, &memory](Execution &execution) {
              if (execution.read(reinterpret_cast<uintptr_t>(message.data),
                                 message.bytes))
                std::memcpy(memory.message(memory.rank(), peer), message.data,
                            message.bytes);
              memory.hasSent(number, peer, message.bytes);
            });
      });
}

/// True if one writes what the other one touches.
bool meet(const Asked &a, const Asked &b) {
  auto touch = [](const void *x, size_t xBytes, const void *y, size_t yBytes) {
    auto first = reinterpret_cast<uintptr_t>(x),
         second = reinterpret_cast<uintptr_t>(y);
    return first < second + yBytes && second < first + xBytes;
  };
  Bytes own = bytesOf(a.call, *a.comm->state->memory).value_or(Bytes()),
        its = bytesOf(b.call, *b.comm->state->memory).value_or(Bytes());
  return touch(a.to, own.out, b.to, its.out) ||
         touch(a.to, own.out, b.from, its.in) ||
         touch(a.from, own.in, b.to, its.out);
}

/// A GPU runs those of a group at once, and ranks must have the same groups.
ncclResult_t queueTogether(std::vector<Asked> asked) {
  Machine &m = machine();
  std::unique_lock<std::recursive_mutex> lock(m.lock);
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i].call.together = static_cast<int>(asked.size());
    for (size_t j = 0; j < i; ++j)
      if (live().contains(asked[i].comm) && live().contains(asked[j].comm) &&
          meet(asked[i], asked[j]))
        m.report.error(std::string(asked[i].name) +
                       " is in a group with one that it shares bytes "
                       "with, which either writes");
  }
  lock.unlock();
  for (const Asked &one : asked)
    if (ncclResult_t result = queueOne(one))
      return result;
  return ncclSuccess;
}

ncclResult_t collective(const Asked &asked) {
  if (group().depth == 0)
    return queueOne(asked);
  group().collectives.push_back(asked);
  return ncclSuccess;
}

/// Those that are sent first: what one rank receives, another has sent then.
ncclResult_t queueAll(std::vector<Message> messages) {
  for (bool isSent : {true, false})
    for (const Message &message : messages)
      if (message.isSent == isSent)
        if (ncclResult_t result = queueOne(message))
          return result;
  return ncclSuccess;
}

ncclResult_t add(const Message &message, ncclDataType_t type) {
  std::optional<DType> element = elementOf(type);
  if (!element)
    return ncclInvalidArgument;
  Message sized = message;
  sized.bytes *= static_cast<size_t>(byteSize(*element));
  if (sized.bytes == 0)
    return ncclSuccess;
  group().messages.push_back(sized);
  return group().depth ? ncclSuccess
                       : queueAll(std::exchange(group().messages, {}));
}

ncclResult_t end(ncclComm_t comm, bool isAborted) {
  // Without the machine's lock: another thread may hold it while it waits.
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  if (!live().erase(comm)) {
    m.report.error("a communicator is ended that has ended, or is none");
    return ncclInvalidArgument;
  }
  if (isAborted) {
    comm->state->isAborted = true;
    comm->state->memory->giveUp();
  }
  delete comm;
  return ncclSuccess;
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  int set = machine().failures.ncclVersion;
  *version = set ? set : 23007;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<unsigned> count{0};
  std::random_device random;
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "/tandem-nccl-%d-%u-%08x",
                static_cast<int>(::getpid()), ++count, random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (!comm || ranks < 1 || ranks > RankMemory::mostRanks || rank < 0 ||
      rank >= ranks || (config && config->magic != ncclConfig_t().magic))
    return ncclInvalidArgument;
  auto made = std::make_unique<ncclComm>();
  made->state->device = Machine::current();
  made->state->memory = RankMemory::open(id.internal, ranks, rank);
  if (!made->state->device || !made->state->memory)
    return ncclInvalidUsage;
  StatePtr state = made->state;
  {
    std::lock_guard<std::recursive_mutex> guard(machine().lock);
    live().insert(*comm = made.release());
  }
  if (state->memory->isComplete())
    return ncclSuccess;
  if (config && config->blocking == 0)
    return ncclInProgress;
  while (!state->memory->isComplete())
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  std::lock_guard<std::recursive_mutex> guard(machine().lock);
  if (!live().contains(comm) || !error)
    return ncclInvalidArgument;
  State &state = *comm->state;
  if (state.memory->hasLost() && state.error == ncclSuccess)
    state.error = ncclRemoteError;
  *error = state.error;
  if (*error == ncclSuccess && !state.memory->isComplete())
    *error = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return end(comm, true); }
ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return end(comm, false); }

ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
  *count = comm->state->memory->ranks();
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device) {
  *device = comm->state->device->ordinal;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
  *rank = comm->state->memory->rank();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group().depth == 0)
    return ncclInvalidUsage;
  if (--group().depth > 0)
    return ncclSuccess;
  if (ncclResult_t result =
          queueTogether(std::exchange(group().collectives, {})))
    return result;
  return queueAll(std::exchange(group().messages, {}));
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t reduce,
                           ncclComm_t comm, CUstream stream) {
  return collective({"ncclAllReduce",
                     {AllReduce, type, reduce, 0, 1, count},
                     from,
                     to,
                     comm,
                     stream});
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t countOfOut,
                               ncclDataType_t type, ncclRedOp_t reduce,
                               ncclComm_t comm, CUstream stream) {
  return collective({"ncclReduceScatter",
                     {ReduceScatter, type, reduce, 0, 1, countOfOut},
                     from,
                     to,
                     comm,
                     stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t countOfIn,
                           ncclDataType_t type, ncclComm_t comm,
                           CUstream stream) {
  return collective({"ncclAllGather",
                     {AllGather, type, 0, 0, 1, countOfIn},
                     from,
                     to,
                     comm,
                     stream});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           CUstream stream) {
  return collective({"ncclBroadcast",
                     {Broadcast, type, 0, root, 1, count},
                     from,
                     to,
                     comm,
                     stream});
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, CUstream stream) {
  return add({true, from, count, peer, comm, stream}, type);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, CUstream stream) {
  return add({false, to, count, peer, comm, stream}, type);
}

} // namespace tandem::cuda::nccl
