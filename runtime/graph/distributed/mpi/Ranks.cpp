//===- Ranks.cpp - messages between ranks over MPI ------------------------===//
//
// libtandem-mpi.so: what tdm_comm_open("mpi", ...) opens. A rank is one of a
// communicator that is duplicated, so that nothing else's messages mix with
// its own.
//
// Waiting. No call of MPI that waits is used, since it would wait for a dead
// rank for ever: requests are begun, and asked until the limit. A rank that
// waits asks without a pause for a moment, lets other threads run then, and
// sleeps longer and longer up to half a millisecond.
//
// Failure. A rank that fails sends a note to all others, who look for one while
// they wait. After an error MPI is not called any more: requests that are not
// done keep the caller's memory, and neither a communicator is freed nor MPI
// ended, which would wait for all. Who started the processes sees them end
// without MPI's end, and ends the job.
//
// Needs nothing of Tandem but its headers, and no symbol of libtandem.so.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm.h"
#include "runtime/graph/distributed/mpi/Start.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using tandem::mpi::give;
using tandem::mpi::textOf;

constexpr size_t mostBytes = size_t(1) << 30; ///< of one message of MPI
constexpr int noteTag = 32'767; ///< the largest that every MPI has
constexpr size_t noteBytes = 512;

/// Paces a loop that asks again and again.
class Pause {
public:
  void rest() {
    auto waited = Clock::now() - began;
    if (waited < std::chrono::microseconds(50))
      return;
    if (waited < std::chrono::milliseconds(1)) {
      ::sched_yield();
      return;
    }
    std::this_thread::sleep_for(length);
    length = std::min(2 * length, std::chrono::microseconds(500));
  }

private:
  Clock::time_point began = Clock::now();
  std::chrono::microseconds length{20};
};

class Ranks {
public:
  MPI_Comm communicator = MPI_COMM_NULL;
  bool isStarted = false; ///< by this library
  int rank = 0, ranks = 0;
  std::string error;
  std::chrono::milliseconds limit{0};

  tdm_status exchange(int tag, const tdm_comm_message *outgoing,
                      size_t outgoingCount, const tdm_comm_message *incoming,
                      size_t incomingCount) {
    if (!error.empty())
      return TDM_FAILED;
    requests.clear();
    others.clear();
    for (size_t i = 0; i < incomingCount; ++i)
      if (!begin(incoming[i], [&](void *data, int size, int peer) {
            return done("MPI_Irecv", MPI_Irecv(data, size, MPI_BYTE, peer, tag,
                                               communicator, next(peer)));
          }))
        return TDM_FAILED;
    for (size_t i = 0; i < outgoingCount; ++i)
      if (!begin(outgoing[i], [&](void *data, int size, int peer) {
            return done("MPI_Isend", MPI_Isend(data, size, MPI_BYTE, peer, tag,
                                               communicator, next(peer)));
          }))
        return TDM_FAILED;
    return await() ? TDM_OK : TDM_FAILED;
  }

  void fail(const char *reason) {
    if (!error.empty())
      return; // MPI is not called any more
    std::snprintf(note.data(), note.size(), "%s", reason);
    requests.clear();
    others.clear();
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank &&
          MPI_Isend(note.data(), int(note.size()), MPI_BYTE, peer, noteTag,
                    communicator, next(peer)) != MPI_SUCCESS)
        return;
    error = "this rank has failed";
    // Small messages need no receiver; what is not on its way soon never is.
    auto end = Clock::now() + std::chrono::seconds(1);
    int isDone = 0;
    for (Pause pause; !isDone && Clock::now() < end; pause.rest())
      if (MPI_Testall(int(requests.size()), requests.data(), &isDone,
                      MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        return;
  }

  void close() {
    if (!error.empty())
      return;
    // MPI's end waits for all: only if all come.
    requests.clear();
    others.clear();
    if (MPI_Ibarrier(communicator, next(-1)) != MPI_SUCCESS || !await())
      return;
    MPI_Comm_free(&communicator);
    if (isStarted)
      MPI_Finalize();
  }

  /// Duplicates what the caller has.
  bool duplicate(MPI_Comm from) {
    if (!done("MPI_Comm_idup", MPI_Comm_idup(from, &communicator, next(-1))) ||
        !await(false))
      return false;
    return done("MPI_Comm_set_errhandler",
                MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN)) &&
           done("MPI_Comm_rank", MPI_Comm_rank(communicator, &rank)) &&
           done("MPI_Comm_size", MPI_Comm_size(communicator, &ranks));
  }

private:
  bool done(const char *what, int code) {
    if (code == MPI_SUCCESS)
      return true;
    error = textOf(what, code);
    return false;
  }

  MPI_Request *next(int peer) {
    others.push_back(peer);
    requests.push_back(MPI_REQUEST_NULL);
    return &requests.back();
  }

  /// Calls `one` for each piece of a message that MPI can count.
  template <typename Fn> bool begin(const tdm_comm_message &message, Fn one) {
    auto *data = static_cast<unsigned char *>(message.data);
    for (size_t first = 0; first < message.size; first += mostBytes)
      if (!one(data + first,
               static_cast<int>(std::min(mostBytes, message.size - first)),
               static_cast<int>(message.rank)))
        return false;
    return true;
  }

  bool await(bool mayHaveNotes = true) {
    auto end = Clock::now() + limit;
    Pause pause;
    while (true) {
      // One after the other: which is not done tells who is late.
      bool isDone = true;
      for (MPI_Request &request : requests) {
        int one = 0;
        if (!done("MPI_Test", MPI_Test(&request, &one, MPI_STATUS_IGNORE)))
          return false;
        isDone &= one != 0;
      }
      if (isDone)
        return true;
      if (mayHaveNotes && !look())
        return false;
      if (Clock::now() >= end)
        return late();
      pause.rest();
    }
  }

  bool late() {
    std::string text = std::to_string(limit.count()) + " ms";
    for (size_t i = 0; i < requests.size(); ++i)
      if (requests[i] != MPI_REQUEST_NULL && others[i] >= 0) {
        error = "rank " + std::to_string(others[i]) + " did not come within " +
                text;
        return false;
      }
    error = "not all ranks came within " + text;
    return false;
  }

  /// Looks for a note of a rank that failed.
  bool look() {
    int isThere = 0;
    MPI_Status status;
    if (!done("MPI_Iprobe", MPI_Iprobe(MPI_ANY_SOURCE, noteTag, communicator,
                                       &isThere, &status)))
      return false;
    if (!isThere)
      return true;
    if (!done("MPI_Recv",
              MPI_Recv(note.data(), int(note.size()), MPI_BYTE,
                       status.MPI_SOURCE, noteTag, communicator, &status)))
      return false;
    note.back() = 0;
    error =
        "rank " + std::to_string(status.MPI_SOURCE) + " failed: " + note.data();
    return false;
  }

  std::vector<MPI_Request> requests;
  std::vector<int> others; ///< whose request it is; -1: of all
  std::array<char, noteBytes> note{};
};

} // namespace

extern "C" TDM_EXPORT tdm_status tandem_comm_open(void *argument, int64_t limit,
                                                  tdm_comm_peers *peers,
                                                  char *message, size_t size) {
  if (!peers || peers->struct_size < sizeof(tdm_comm_peers))
    return give(TDM_UNSUPPORTED,
                "expected a tdm_comm_peers of at least " +
                    std::to_string(sizeof(tdm_comm_peers)) +
                    " bytes: libtandem.so is older",
                message, size);
  auto made = std::make_unique<Ranks>();
  std::string text;
  if (!tandem::mpi::start(MPI_THREAD_SINGLE, made->isStarted, text))
    return give(TDM_UNSUPPORTED, text, message, size);
  made->limit = std::chrono::milliseconds(limit);
  if (!made->duplicate(argument ? *static_cast<MPI_Comm *>(argument)
                                : MPI_COMM_WORLD)) {
    text = made->error;
    (void)made.release(); // what has begun may still write to it
    return give(TDM_FAILED, text, message, size);
  }
  peers->rank = static_cast<size_t>(made->rank);
  peers->ranks = static_cast<size_t>(made->ranks);
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  peers->serves_any_thread = level >= MPI_THREAD_SERIALIZED;
  peers->user = made.release();
  peers->exchange = [](void *user, uint32_t tag,
                       const tdm_comm_message *outgoing, size_t outgoingCount,
                       const tdm_comm_message *incoming, size_t incomingCount,
                       int64_t milliseconds) {
    auto *ranks = static_cast<Ranks *>(user);
    ranks->limit = std::chrono::milliseconds(milliseconds);
    return ranks->exchange(static_cast<int>(tag), outgoing, outgoingCount,
                           incoming, incomingCount);
  };
  peers->fail = [](void *user, const char *reason) {
    static_cast<Ranks *>(user)->fail(reason);
  };
  peers->error = [](void *user) {
    return static_cast<Ranks *>(user)->error.c_str();
  };
  peers->close = [](void *user) {
    auto *ranks = static_cast<Ranks *>(user);
    ranks->close();
    if (ranks->error.empty())
      delete ranks; // else requests may refer to it
  };
  return TDM_OK;
}
