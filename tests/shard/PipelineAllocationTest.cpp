//===- PipelineAllocationTest.cpp - a step of stages allocates nothing ----===//
//
// Row C04: after the first update, further ones of as many batches make no
// allocation on any rank, whatever the stages exchange.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/CountAllocations.h"
#include "tests/shard/StageRuns.h"

#include "runtime/comm/PeerCommunicator.h"

#include <gtest/gtest.h>

#include <barrier>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Ranks of one process. Who sends waits until the other one has copied, so
/// that how many messages there are at a time does not depend on the machine.
struct Meeting {
  struct Message {
    int from, to, tag;
    comm::Outgoing out;
    bool isTaken;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Message *> open;
};

class MeetingPeers : public comm::Peers {
public:
  MeetingPeers(Meeting &meeting, int own, int count)
      : meeting(meeting), own(own), count(count) {}
  int rank() const override { return own; }
  int ranks() const override { return count; }
  void fail(const std::string &) override {}

  Status exchange(int tag, std::span<const comm::Outgoing> outgoing,
                  std::span<const comm::Incoming> incoming,
                  comm::Milliseconds limit) override {
    std::unique_lock lock(meeting.mutex);
    Meeting::Message sent[8];
    for (size_t i = 0; i < outgoing.size(); ++i) {
      sent[i] = {own, outgoing[i].peer, tag, outgoing[i], false};
      meeting.open.push_back(&sent[i]);
    }
    meeting.changed.notify_all();
    bool isThere = true;
    auto await = [&](auto isOver) {
      isThere = isThere && meeting.changed.wait_for(lock, limit, isOver);
    };
    for (const comm::Incoming &in : incoming) {
      auto found = meeting.open.end();
      await([&] {
        found = std::ranges::find_if(meeting.open, [&](auto *one) {
          return one->from == in.peer && one->to == own && one->tag == tag;
        });
        return found != meeting.open.end();
      });
      if (!isThere)
        break;
      EXPECT_EQ((*found)->out.bytes, in.bytes);
      std::memcpy(in.data, (*found)->out.data, size_t(in.bytes));
      (*found)->isTaken = true;
      meeting.open.erase(found);
      meeting.changed.notify_all();
    }
    for (size_t i = 0; i < outgoing.size(); ++i)
      await([&] { return sent[i].isTaken; });
    return isThere ? Status::success() : Status::failed("a rank is late");
  }

private:
  Meeting &meeting;
  int own, count;
};

/// Returns the allocations of 20 updates after a first one, of all ranks.
int64_t allocationsOf(const Way &way) {
  Compilation made = compiled(mlp, way);
  EXPECT_TRUE(made.status.ok()) << made.status.message() << made.diagnostics;
  auto ranks = int(pipeline::ranksOf(made.readers[0].manifest()));
  Meeting meeting;
  meeting.open.reserve(64);
  int64_t counted = 0;
  std::barrier together(ranks);
  auto train = [&](int rank) {
    std::shared_ptr<comm::Communicator> world = comm::makePeerCommunicator(
        std::make_shared<MeetingPeers>(meeting, rank, ranks),
        std::chrono::seconds(60));
    auto stages = pipelineOf(made.readers, world);
    ASSERT_TRUE(stages) << stages.status().message();
    Batch batch(made.readers[0].manifest().pipeline->inputs, 0);
    pipeline::Pipeline::GiveBatch give =
        [&](int64_t) -> Result<std::span<const runtime::Argument>> {
      return std::span<const runtime::Argument>(batch.arguments);
    };
    std::vector<double> losses;
    bool ok = true;
    auto update = [&] { ok &= stages->train(4, true, give, losses).ok(); };
    update();
    together.arrive_and_wait();
    int64_t before = allocations;
    together.arrive_and_wait();
    for (int i = 0; i < 20; ++i)
      update();
    together.arrive_and_wait();
    if (rank == 0)
      counted = allocations - before;
    together.arrive_and_wait();
    EXPECT_TRUE(ok);
  };
  int64_t before = allocations;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(train, rank);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GT(allocations, before) << "the first update has to allocate";
  return counted;
}

TEST(PipelineAllocation, C04_StagesOfOneRankAllocateNothing) {
  EXPECT_EQ(allocationsOf({.ranks = 2, .virtualStages = 2}), 0);
}

TEST(PipelineAllocation, C04_ShardedStagesAllocateNothing) {
  EXPECT_EQ(allocationsOf({.ranks = 2, .axes = "data=2", .parallel = "zero1"}),
            0);
}

TEST(PipelineAllocation, C04_ClippedAndScaledStagesAllocateNothing) {
  EXPECT_EQ(
      allocationsOf({.ranks = 2, .clip = "norm:0.5", .lossScale = "dynamic"}),
      0);
}

} // namespace
