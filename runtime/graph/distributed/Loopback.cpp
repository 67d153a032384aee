//===- Loopback.cpp - workers that are threads of one process -------------===//
#include "runtime/graph/distributed/Loopback.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>

namespace tandem::graph::distributed {

namespace {

/// The queue of one worker.
struct Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<Envelope> waiting;
};

class Loopback : public Transport {
public:
  Loopback(uint32_t worker, std::shared_ptr<std::vector<Queue>> queues,
           const LoopbackOptions &options)
      : own(worker), queues(std::move(queues)), options(options),
        random(options.seed * 65537 + worker) {}

  uint32_t worker() const override { return own; }
  uint32_t workers() const override {
    return static_cast<uint32_t>(queues->size());
  }
  bool losesMessages() const override {
    return options.loss > 0 || options.repeat > 0;
  }

  Status send(uint32_t to, Bytes message) override {
    int copies = 1;
    bool isFirst = false;
    if (to != own) {
      std::lock_guard lock(mutex);
      copies = happens(options.loss) ? 0 : happens(options.repeat) ? 2 : 1;
      isFirst = happens(options.reorder);
    }
    Queue &queue = (*queues)[to];
    std::lock_guard lock(queue.mutex);
    for (int i = 0; i < copies; ++i) {
      Envelope envelope{own, i + 1 < copies ? message : std::move(message)};
      if (isFirst)
        queue.waiting.push_front(std::move(envelope));
      else
        queue.waiting.push_back(std::move(envelope));
    }
    queue.filled.notify_one();
    return Status::success();
  }

  Result<std::optional<Envelope>> receive(Milliseconds wait) override {
    Queue &queue = (*queues)[own];
    std::unique_lock lock(queue.mutex);
    std::optional<Envelope> first;
    if (!queue.filled.wait_for(lock, wait,
                               [&] { return !queue.waiting.empty(); }))
      return first;
    first = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    return first;
  }

private:
  bool happens(double part) {
    return part > 0 && std::uniform_real_distribution<>()(random) < part;
  }

  uint32_t own;
  std::shared_ptr<std::vector<Queue>> queues;
  LoopbackOptions options;
  std::mutex mutex; ///< guards `random`
  std::mt19937_64 random;
};

} // namespace

std::vector<std::unique_ptr<Transport>>
makeLoopback(uint32_t workers, const LoopbackOptions &options) {
  auto queues = std::make_shared<std::vector<Queue>>(workers);
  std::vector<std::unique_ptr<Transport>> made;
  for (uint32_t i = 0; i < workers; ++i)
    made.push_back(std::make_unique<Loopback>(i, queues, options));
  return made;
}

} // namespace tandem::graph::distributed
