//===- ThreadPeers.cpp - ranks that are threads of one process ------------===//
//
// Messages lie in queues in memory, one for each pair of ranks and each tag. A
// sender copies and does not wait.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/ThreadPeers.h"

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace tandem::comm {

namespace {

/// What the ranks share. `mutex` guards all of it.
struct Room {
  explicit Room(int ranks) : isGone(size_t(ranks)) {}

  using Key = std::tuple<int, int, int>; ///< from, to, tag
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::deque<std::vector<std::byte>>> queues;
  std::vector<char> isGone;
  Status failure; ///< of the rank that failed first
};

class ThreadPeers : public Peers {
public:
  ThreadPeers(std::shared_ptr<Room> room, int own)
      : room(std::move(room)), own(own) {}
  ~ThreadPeers() override {
    std::lock_guard<std::mutex> lock(room->mutex);
    room->isGone[size_t(own)] = 1;
    room->changed.notify_all();
  }

  int rank() const override { return own; }
  int ranks() const override { return static_cast<int>(room->isGone.size()); }

  Status exchange(int tag, std::span<const Outgoing> outgoing,
                  std::span<const Incoming> incoming,
                  Milliseconds limit) override {
    if (broken.ok())
      broken = exchangeAll(tag, outgoing, incoming, limit);
    return broken;
  }

  void fail(const std::string &reason) override {
    std::lock_guard<std::mutex> lock(room->mutex);
    if (room->failure.ok())
      room->failure = Status::failed(nameOf(own) + " failed: " + reason);
    room->changed.notify_all();
  }

private:
  static std::string nameOf(int rank) { return "rank " + std::to_string(rank); }

  Status exchangeAll(int tag, std::span<const Outgoing> outgoing,
                     std::span<const Incoming> incoming, Milliseconds limit) {
    auto end = std::chrono::steady_clock::now() + limit;
    std::unique_lock<std::mutex> lock(room->mutex);
    for (const Outgoing &message : outgoing) {
      const auto *from = static_cast<const std::byte *>(message.data);
      room->queues[{own, message.peer, tag}].emplace_back(from,
                                                          from + message.bytes);
    }
    room->changed.notify_all();
    for (const Incoming &message : incoming) {
      auto &queue = room->queues[{message.peer, own, tag}];
      auto isOver = [&] {
        return !queue.empty() || !room->failure.ok() ||
               room->isGone[size_t(message.peer)];
      };
      if (!room->changed.wait_until(lock, end, isOver))
        return Status::failed(nameOf(message.peer) + " did not come within " +
                              std::to_string(limit.count()) + " ms");
      if (!room->failure.ok())
        return room->failure;
      if (queue.empty())
        return Status::failed(nameOf(message.peer) + " is gone");
      std::vector<std::byte> came = std::move(queue.front());
      queue.pop_front();
      if (int64_t(came.size()) != message.bytes)
        return Status::failed("expected " + std::to_string(message.bytes) +
                              " bytes of " + nameOf(message.peer) +
                              " but got " + std::to_string(came.size()));
      std::memcpy(message.data, came.data(), came.size());
    }
    return Status::success();
  }

  std::shared_ptr<Room> room;
  int own = 0;
  Status broken;
};

} // namespace

std::vector<std::shared_ptr<Peers>> makeThreadPeers(int ranks) {
  auto room = std::make_shared<Room>(ranks);
  std::vector<std::shared_ptr<Peers>> result;
  for (int i = 0; i < ranks; ++i)
    result.push_back(std::make_shared<ThreadPeers>(room, i));
  return result;
}

} // namespace tandem::comm
