//===- Mpi.cpp - messages between workers over MPI ------------------------===//
//
// libtandem-mpi.so: a transport for tdm_dist_open("mpi", ...). A worker is a
// rank of a communicator that is duplicated, so that nothing else's messages
// mix with its own.
//
// Threads. One thread of a transport receives, and it alone sends, too: `send`
// only queues. One transport in a process that calls MPI nowhere else needs
// MPI_THREAD_SERIALIZED; beside others, and beside a program that calls MPI
// itself, MPI_THREAD_MULTIPLE.
//
// Waiting. MPI cannot wait for a message and for a queue: the thread looks for
// both, and sleeps in between, longer and longer up to a millisecond. What is
// queued wakes it.
//
// Needs nothing of Tandem but this header, and no symbol of libtandem.so.
//
//===----------------------------------------------------------------------===//
#include "runtime/dist.h"
#include "runtime/graph/distributed/mpi/Start.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using tandem::mpi::give;
using Bytes = std::vector<unsigned char>;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::microseconds;

struct Outgoing {
  int to = 0;
  Bytes bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

class Mpi {
public:
  MPI_Comm communicator = MPI_COMM_NULL;
  bool isStarted = false; ///< by this library
  std::string error;

  tdm_status send(uint32_t to, const void *bytes, size_t size) {
    const auto *from = static_cast<const unsigned char *>(bytes);
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(
        {static_cast<int>(to), Bytes(from, from + size), MPI_REQUEST_NULL});
    queued.notify_one();
    return TDM_OK;
  }

  tdm_status receive(int64_t wait, uint32_t *from, const void **bytes,
                     size_t *size) {
    *bytes = nullptr;
    auto end = Clock::now() + std::chrono::milliseconds(wait);
    Microseconds pause(20);
    while (true) {
      if (!progress())
        return TDM_FAILED;
      int isThere = 0;
      MPI_Message message;
      MPI_Status status;
      if (!done("MPI_Improbe", MPI_Improbe(MPI_ANY_SOURCE, 0, communicator,
                                           &isThere, &message, &status)))
        return TDM_FAILED;
      if (isThere) {
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        last.resize(static_cast<size_t>(std::max(count, 0)) + 1);
        if (!done("MPI_Mrecv",
                  MPI_Mrecv(last.data(), count, MPI_BYTE, &message, &status)))
          return TDM_FAILED;
        *from = static_cast<uint32_t>(status.MPI_SOURCE);
        *bytes = last.data();
        *size = static_cast<size_t>(count);
        return TDM_OK;
      }
      auto now = Clock::now();
      if (now >= end)
        return TDM_OK;
      std::unique_lock<std::mutex> lock(mutex);
      auto until = std::min<Clock::time_point>(now + pause, end);
      queued.wait_until(lock, until, [&] { return !queue.empty(); });
      pause = std::min(2 * pause, Microseconds(1000));
    }
  }

  /// Sends what is queued, for some time at most, and ends MPI.
  void close() {
    auto end = Clock::now() + std::chrono::seconds(5);
    while (progress() && !sending.empty() && Clock::now() < end)
      std::this_thread::sleep_for(Microseconds(100));
    if (!isStarted) {
      if (sending.empty())
        MPI_Comm_free(&communicator);
      return;
    }
    MPI_Finalize();
  }

private:
  bool done(const char *what, int code) {
    if (code == MPI_SUCCESS)
      return true;
    error = tandem::mpi::textOf(what, code);
    return false;
  }

  /// Begins to send what is queued, and drops what was sent.
  bool progress() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      while (!queue.empty()) {
        sending.push_back(std::move(queue.front()));
        queue.pop_front();
        Outgoing &one = sending.back();
        if (!done("MPI_Isend",
                  MPI_Isend(one.bytes.data(),
                            static_cast<int>(one.bytes.size()), MPI_BYTE,
                            one.to, 0, communicator, &one.request)))
          return false;
      }
    }
    for (auto one = sending.begin(); one != sending.end();) {
      int isDone = 0;
      if (!done("MPI_Test",
                MPI_Test(&one->request, &isDone, MPI_STATUS_IGNORE)))
        return false;
      one = isDone ? sending.erase(one) : std::next(one);
    }
    return true;
  }

  std::mutex mutex; ///< guards `queue`
  std::condition_variable queued;
  std::deque<Outgoing> queue;
  std::list<Outgoing> sending; ///< of the thread that receives
  Bytes last;
};

} // namespace

extern "C" TDM_EXPORT tdm_status tandem_dist_open(void *argument,
                                                  tdm_dist_transport *transport,
                                                  char *message, size_t size) {
  if (!transport || transport->struct_size < sizeof(tdm_dist_transport))
    return give(TDM_UNSUPPORTED,
                "expected a tdm_dist_transport of at least " +
                    std::to_string(sizeof(tdm_dist_transport)) +
                    " bytes: libtandem.so is older",
                message, size);
  auto mpi = std::make_unique<Mpi>();
  std::string text;
  if (!tandem::mpi::start(MPI_THREAD_MULTIPLE, mpi->isStarted, text))
    return give(TDM_UNSUPPORTED, text, message, size);
  MPI_Comm from =
      argument ? *static_cast<MPI_Comm *>(argument) : MPI_COMM_WORLD;
  int rank = 0, ranks = 0;
  if (MPI_Comm_dup(from, &mpi->communicator) != MPI_SUCCESS ||
      MPI_Comm_rank(mpi->communicator, &rank) != MPI_SUCCESS ||
      MPI_Comm_size(mpi->communicator, &ranks) != MPI_SUCCESS)
    return give(TDM_FAILED, "MPI_Comm_dup failed", message, size);
  MPI_Comm_set_errhandler(mpi->communicator, MPI_ERRORS_RETURN);
  transport->worker = static_cast<uint32_t>(rank);
  transport->workers = static_cast<uint32_t>(ranks);
  transport->loses_messages = 0;
  transport->most_bytes = INT_MAX;
  transport->user = mpi.release();
  transport->send = [](void *user, uint32_t to, const void *bytes,
                       size_t count) {
    return static_cast<Mpi *>(user)->send(to, bytes, count);
  };
  transport->receive = [](void *user, int64_t wait, uint32_t *sender,
                          const void **bytes, size_t *count) {
    return static_cast<Mpi *>(user)->receive(wait, sender, bytes, count);
  };
  transport->error = [](void *user) {
    return static_cast<Mpi *>(user)->error.c_str();
  };
  transport->close = [](void *user) {
    std::unique_ptr<Mpi> owned(static_cast<Mpi *>(user));
    owned->close();
  };
  return TDM_OK;
}
