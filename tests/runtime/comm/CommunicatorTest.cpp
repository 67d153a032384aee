//===- CommunicatorTest.cpp - collectives over threads --------------------===//
//
// Every row with 1, 2, 3, 4 and 7 ranks; then ranks that are late, gone, or
// fail.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/PluginPeers.h"
#include "tests/runtime/comm/Ranks.h"
#include "tests/runtime/comm/Rows.h"

#include <atomic>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::comm::testing;
using artifact::DType;

namespace {

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, Rows) {
  for (const Row &row : rows()) {
    SCOPED_TRACE(row.name);
    withRanks(GetParam(), row.run);
  }
}

TEST_P(Collectives, BarrierWaitsForAll) {
  int ranks = GetParam();
  std::atomic<int> came = 0;
  withRanks(ranks, [&](Communicator &world) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      expectOk(world.barrier());
      EXPECT_GE(came.load(), round * ranks);
      expectOk(world.barrier());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4, 7));

TEST(Failure, LateRankIsNamedWithinTheLimit) {
  std::atomic<int> failed = 0;
  withRanks(
      4,
      [&](Communicator &world) {
        if (world.rank() == 2) {
          while (failed.load() < 3)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return;
        }
        auto began = std::chrono::steady_clock::now();
        float x = 1;
        Status status = world.allReduce(DType::F32, Reduce::Sum, &x, &x, 1);
        EXPECT_EQ(status.message(),
                  "all_reduce: rank 2 did not come within 2000 ms");
        EXPECT_LT(std::chrono::steady_clock::now() - began,
                  std::chrono::seconds(20));
        // It is of no use any more, at once.
        EXPECT_EQ(world.barrier().message(),
                  "barrier: rank 2 did not come within 2000 ms");
        ++failed;
      },
      Milliseconds(2000));
}

TEST(Failure, RankThatEndedIsNamedAtOnce) {
  withRanks(3, [&](Communicator &world) {
    if (world.rank() == 1)
      return;
    EXPECT_EQ(world.barrier().message(), "barrier: rank 1 is gone");
  });
}

TEST(Failure, RanksOfAGroupAreNamedAsInTheWorld) {
  withRanks(4, [&](Communicator &world) {
    auto group = world.split(world.rank() / 2, 0);
    ASSERT_TRUE(group.ok());
    if (world.rank() == 3)
      return;
    Status status = (*group)->barrier();
    EXPECT_EQ(status.message(),
              world.rank() == 2 ? "barrier: rank 3 is gone" : "");
  });
}

TEST(Failure, ReasonReachesThoseThatWait) {
  withRanks(3, [&](Communicator &world) {
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      world.fail("no space is left");
      return;
    }
    EXPECT_EQ(world.barrier().message(),
              "barrier: rank 1 failed: no space is left");
  });
}

TEST(Failure, LibraryThatIsMissingIsNamed) {
  auto peers = openPeers("telegraph", nullptr, Milliseconds(1000));
  ASSERT_FALSE(peers.ok());
  EXPECT_EQ(peers.status().code(), Code::Unsupported);
  std::string text = peers.status().message();
  EXPECT_EQ(text.find("the communicator 'telegraph' cannot be opened: "), 0u)
      << text;
  EXPECT_NE(text.find("libtandem-telegraph.so"), std::string::npos) << text;
  peers = openPeers("/none/libother.so", nullptr, Milliseconds(1000));
  EXPECT_NE(peers.status().message().find("/none/libother.so"),
            std::string::npos);
}

TEST(Failure, SizesThatDifferAreAnError) {
  withRanks(2, [&](Communicator &world) {
    std::vector<float> data(8);
    Status status = world.allGather(data.data(), data.data() + 4,
                                    world.rank() == 0 ? 4 : 8);
    EXPECT_EQ(status.message(),
              world.rank() == 0
                  ? "all_gather: expected 4 bytes of rank 1 but got 8"
                  : "all_gather: expected 8 bytes of rank 0 but got 4");
  });
}

} // namespace
