//===- Messenger.h - requests that are answered or fail -------------------===//
//
// Over a transport that may lose messages: each request is handled once by the
// worker it goes to, and gets one answer, or an error within a time limit.
//
// A request is an error when the other worker is silent for `silence`. Whoever
// is waited for is asked for a sign of life, so that work may take as long as
// it does. On a transport that loses messages each message is repeated until
// its arrival is confirmed, and is taken once. A worker that was silent counts
// as gone until it is heard again: requests to it fail at once.
//
// Threads. One thread of the messenger's receives; `handle`, `gone` and what
// waits for answers are called there, or on the thread of the request, and wait
// for nothing. All calls may come from any thread, also from these. No lock is
// held during a call of others.
//
// Errors of others begin with "worker N: ", the one that failed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_MESSENGER_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_MESSENGER_H

#include "runtime/graph/distributed/Transport.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace tandem::graph::distributed {

/// Who is to get an answer.
struct Asker {
  uint32_t worker = 0;
  uint64_t request = 0;
};

class Messenger {
public:
  using Answered = std::function<void(Result<Bytes> answer)>;
  struct Calls {
    std::function<void(Asker from, Bytes request)> handle;
    /// A worker that was waited for is silent.
    std::function<void(uint32_t worker)> gone;
  };

  Messenger(std::unique_ptr<Transport> transport, Milliseconds silence,
            Calls calls);
  ~Messenger();
  Messenger(const Messenger &) = delete;
  Messenger &operator=(const Messenger &) = delete;

  /// Receives nothing more; what waits for answers fails.
  void close();

  uint32_t worker() const { return transport->worker(); }
  uint32_t workers() const { return transport->workers(); }

  /// Returns the number of the request; 0: it has failed already.
  uint64_t request(uint32_t to, Bytes request, Answered answered);
  /// Waits for the answer, at most `limit` (0: as long as the worker lives).
  Result<Bytes> ask(uint32_t to, Bytes request, Milliseconds limit,
                    const std::string &what);
  void answer(const Asker &to, Result<Bytes> answer);
  /// Asks a worker for signs of life until `forget`; counted.
  void watch(uint32_t worker);
  void forget(uint32_t worker);
  bool isGone(uint32_t worker) const;
  /// Waits until all that was sent has arrived, at most `limit`.
  void flush(Milliseconds limit);
  /// Requests that have no answer yet.
  size_t pending() const;
  /// An error of worker `number`, unless it is one of another worker already.
  static Status errorOf(uint32_t number, Status status);

private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class Kind : uint8_t { Request, Answer, Arrived, AreYouThere, Here };

  /// A message whose arrival is not confirmed.
  struct Sent {
    Bytes bytes;
    Time next;
    Milliseconds interval;
  };
  struct Peer {
    Time heard = {};
    Time asked = {};
    bool isGone = false;
    int watches = 0; ///< requests without answers, too
    uint64_t sentCount = 0;
    std::map<uint64_t, Sent> sent;
    uint64_t takenBelow = 0; ///< all numbers below were taken
    std::set<uint64_t> taken;
  };
  struct Pending {
    uint32_t to;
    Answered answered;
  };

  void serve();
  void take(Envelope envelope);
  void tick(bool hasSlept);
  void send(uint32_t to, Kind kind, uint64_t number, const Bytes &content);
  void addWatch(Peer &peer);
  void abandon(uint64_t request);
  bool isNew(Peer &peer, uint64_t number);
  Status goneError(uint32_t worker) const;
  Status checkSize(const Bytes &content) const;
  void failAll(const Status &status);

  std::unique_ptr<Transport> transport;
  Milliseconds silence;
  Calls calls;
  mutable std::mutex mutex; ///< guards the rest
  std::vector<Peer> peers;
  std::map<uint64_t, Pending> requests;
  uint64_t requestCount = 0;
  Status broken; ///< the transport
  std::atomic<bool> isEnding{false};
  std::thread thread;
};

} // namespace tandem::graph::distributed

#endif
