//===- CollectiveRunTest.cpp - programs that are collectives --------------===//
//
// On 4 ranks of threads.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/comm/RandomCollectives.h"
#include "tests/runtime/comm/Ranks.h"

#include <atomic>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::artifact;
using comm::Communicator;
using comm::MeshCommunicators;
using namespace tandem::comm::testing;

namespace {

constexpr int ranks = 4;

TEST(CollectiveRun, X20_RandomProgramsOverSeveralCommunicators) {
  withRanks(
      ranks,
      [](Communicator &borrowed) {
        std::shared_ptr<Communicator> world(&borrowed, [](Communicator *) {});
        expectRandomPrograms(world, /*programs=*/1000);
      },
      std::chrono::seconds(20));
}

Collective sumOver(std::vector<std::string> axes, int64_t elements) {
  Collective made;
  made.axes = std::move(axes);
  made.dtype = DType::F64;
  made.elements = elements;
  made.where = "'tandem.all_reduce' at m.mlir:3:5";
  return made;
}

TEST(CollectiveRun, WithoutACommunicatorNothingRuns) {
  ArtifactReader reader = readerOf(chainOf({sumOver({"a"}, 2)}, 2, ranks));
  Elements x = {1, 2}, y = {-1, -1};
  Status status = runOn(reader, nullptr, x, y);
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_EQ(status.message(),
            "the program runs on several ranks together, but the model has no "
            "communicator");
  EXPECT_EQ(y, (Elements{-1, -1}));
}

TEST(CollectiveRun, AGroupOfOneNeedsNone) {
  Manifest m = chainOf({sumOver({"a"}, 2)}, 2, ranks);
  m.mesh[0].size = 1;
  Elements x = {1, 2}, y(2);
  Status status = runOn(readerOf(m), nullptr, x, y);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(y, x);
}

TEST(CollectiveRun, ARankThatIsGoneIsSaidWithThePlaceInTheModel) {
  withRanks(
      ranks,
      [](Communicator &borrowed) {
        std::shared_ptr<Communicator> world(&borrowed, [](Communicator *) {});
        ArtifactReader reader =
            readerOf(chainOf({sumOver({"a", "b"}, 2)}, 2, ranks));
        auto groups = MeshCommunicators::make(world, reader.manifest());
        ASSERT_TRUE(groups) << groups.status().message();
        if (world->rank() == 2)
          return;
        Elements x = {1, 2}, y(2);
        Status status = runOn(reader, groups->get(), x, y);
        EXPECT_FALSE(status.ok());
        EXPECT_EQ(status.message().find("'tandem.all_reduce' at m.mlir:3:5: "),
                  0u)
            << status.message();
        EXPECT_NE(status.message().find("2"), std::string::npos);
      },
      std::chrono::seconds(5));
}

/// A sum from "x" to "y", and behind it what a rank does by itself meanwhile.
Manifest sumBesideSlice() {
  Manifest m = chainOf({sumOver({"a", "b"}, 4)}, 4, ranks);
  Program &p = m.programs[0];
  Collective slice = sumOver({"a"}, 4);
  slice.op = Collective::Op::RankSlice;
  p.buffers.push_back(Buffer::arena(0, 16));
  p.arenaBytes = p.peakBytes = 64;
  p.launches.push_back(Launch::over(slice, {0, 2}));
  return m;
}

/// Comes late to each exchange.
class LatePeers : public comm::Peers {
public:
  explicit LatePeers(std::shared_ptr<comm::Peers> peers)
      : peers(std::move(peers)) {}
  int rank() const override { return peers->rank(); }
  int ranks() const override { return peers->ranks(); }
  Status exchange(int tag, std::span<const comm::Outgoing> outgoing,
                  std::span<const comm::Incoming> incoming,
                  comm::Milliseconds limit) override {
    if (std::this_thread::get_id() != opener)
      isBeside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return peers->exchange(tag, outgoing, incoming, limit);
  }
  void fail(const std::string &reason) override { peers->fail(reason); }
  std::atomic<bool> isBeside{false};

private:
  std::shared_ptr<comm::Peers> peers;
  std::thread::id opener = std::this_thread::get_id();
};

/// Runs the program on all ranks but those from `present` on.
void runBeside(int present, bool overlaps,
               const std::function<void(const Status &, const Elements &,
                                        bool isBeside)> &check) {
  ArtifactReader reader = readerOf(sumBesideSlice());
  auto peers = comm::makeThreadPeers(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto late = std::make_shared<LatePeers>(std::move(peers[size_t(rank)]));
      std::shared_ptr<Communicator> world =
          comm::makePeerCommunicator(late, std::chrono::seconds(5), overlaps);
      auto groups = MeshCommunicators::make(world, reader.manifest());
      ASSERT_TRUE(groups) << groups.status().message();
      if (rank >= present)
        return;
      Elements x(4, rank + 1), y(4, -1);
      Status status = runOn(reader, groups->get(), x, y);
      check(status, y, late->isBeside);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CollectiveRun, X14_TheEndOfACallWaits) {
  for (bool overlaps : {false, true})
    runBeside(ranks, overlaps,
              [&](const Status &status, const Elements &y, bool isBeside) {
                EXPECT_TRUE(status.ok()) << status.message();
                EXPECT_EQ(y, Elements(4, 1 + 2 + 3 + 4));
                EXPECT_EQ(isBeside, overlaps);
              });
}

TEST(CollectiveRun, X14_AnErrorBesideIsThatOfTheCall) {
  runBeside(ranks - 1, true, [](const Status &status, const Elements &, bool) {
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_EQ(status.message().find("'tandem.all_reduce' at m.mlir:3:5: "), 0u)
        << status.message();
  });
}

} // namespace
