//===- MeshTest.cpp - pieces of values, and groups of ranks ---------------===//
#include "runtime/comm/MeshCommunicators.h"
#include "tests/runtime/comm/Ranks.h"
#include "tests/runtime/comm/Rows.h"

#include <cstring>
#include <numeric>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::comm::testing;

namespace {

const Mesh mesh = {{"data", 2}, {"tensor", 3}};

TEST(Shard, RanksAreRowMajor) {
  EXPECT_EQ(ranksOf(mesh), 6);
  EXPECT_EQ(ranksOf({}), 1);
  EXPECT_EQ(toString(mesh), "data=2, tensor=3");
  for (int64_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(placeIn(mesh, std::vector<std::string>{"data"}, rank), rank / 3);
    EXPECT_EQ(placeIn(mesh, std::vector<std::string>{"tensor"}, rank),
              rank % 3);
    EXPECT_EQ(placeIn(mesh, std::vector<std::string>{"tensor", "data"}, rank),
              rank % 3 * 2 + rank / 3);
    EXPECT_EQ(placeIn(mesh, {}, rank), 0);
  }
}

artifact::Value valueOf(artifact::Sharding sharding, std::vector<int64_t> sizes,
                        std::vector<int64_t> whole = {}) {
  artifact::Value value;
  value.sharding = std::move(sharding);
  value.shape = std::move(sizes);
  value.whole = std::move(whole);
  return value;
}

/// The pieces of all ranks are the whole, each place as often as ranks have it.
/// What is behind the end of the value is neither read nor written.
void expectPieces(const artifact::Sharding &sharding,
                  const std::vector<int64_t> &sizes, int64_t times,
                  const std::vector<int64_t> &all = {}) {
  Shard first = shardOf(mesh, valueOf(sharding, sizes, all), 0);
  auto count = [](const std::vector<int64_t> &of) {
    return std::accumulate(of.begin(), of.end(), int64_t(1),
                           std::multiplies<>());
  };
  std::vector<int32_t> whole(size_t(count(first.whole))),
      again(whole.size(), -1), seen(whole.size());
  std::iota(whole.begin(), whole.end(), 0);
  for (int64_t rank = 0; rank < 6; ++rank) {
    Shard shard = shardOf(mesh, valueOf(sharding, sizes, all), rank);
    ASSERT_EQ(shard.whole, first.whole);
    std::vector<int32_t> piece(size_t(count(shard.sizes)), -1);
    takePiece(shard, reinterpret_cast<std::byte *>(whole.data()),
              reinterpret_cast<std::byte *>(piece.data()), 4);
    putPiece(shard, reinterpret_cast<std::byte *>(piece.data()),
             reinterpret_cast<std::byte *>(again.data()), 4);
    Places places(shard);
    for (int32_t place : piece) {
      ASSERT_EQ(places.next(), place);
      if (place >= 0)
        ++seen[size_t(place)];
    }
  }
  EXPECT_EQ(again, whole);
  EXPECT_EQ(seen, std::vector<int32_t>(whole.size(), int32_t(times)));
}

TEST(Shard, PiecesAreTheWhole) {
  expectPieces({}, {4, 5}, 6);
  expectPieces({{"data"}, {}}, {4, 5}, 3);
  expectPieces({{}, {"tensor"}}, {4, 5}, 2);
  expectPieces({{"tensor"}, {"data"}}, {2, 3}, 1);
  expectPieces({{}, {"data", "tensor"}, {}}, {2, 1, 3}, 1);
  expectPieces({{"tensor", "data"}}, {1}, 1);
  expectPieces({{"data"}, {}, {}}, {1, 0, 2}, 3);
  expectPieces({}, {}, 6);
  // 5 over 2 and over 3; 7 over 6, of which two have nothing; a dimension whose
  // outer one has padding.
  expectPieces({{"data"}, {}}, {3, 2}, 3, {5, 2});
  expectPieces({{}, {"tensor"}}, {2, 2}, 2, {2, 5});
  expectPieces({{"tensor", "data"}, {}}, {2, 3}, 1, {7, 3});
  expectPieces({{"data"}, {"tensor"}, {}}, {2, 2, 2}, 1, {3, 4, 2});
  expectPieces({{"tensor"}}, {1}, 2, {1});
  // The first axis is the outermost.
  EXPECT_EQ(shardOf(mesh, valueOf({{"data", "tensor"}}, {2}), 4).begins,
            std::vector<int64_t>{8});
  EXPECT_EQ(shardOf(mesh, valueOf({{"tensor", "data"}}, {2}), 4).begins,
            std::vector<int64_t>{6});
}

artifact::Manifest withCollectives() {
  artifact::Manifest manifest;
  manifest.mesh = mesh;
  artifact::Program &program = manifest.programs.emplace_back();
  for (const std::vector<std::string> &axes : {std::vector<std::string>{"data"},
                                               {"tensor"},
                                               {"tensor", "data"},
                                               {"data"}}) {
    artifact::Collective collective;
    collective.axes = axes;
    program.launches.push_back(artifact::Launch::over(collective, {0, 1}));
  }
  return manifest;
}

TEST(Mesh, GroupsAreRanksThatDifferInTheirAxes) {
  artifact::Manifest manifest = withCollectives();
  auto peers = makeThreadPeers(6);
  std::vector<std::thread> threads;
  for (auto &mine : peers)
    threads.emplace_back([&manifest, mine = std::move(mine)]() mutable {
      std::shared_ptr<Communicator> world =
          makePeerCommunicator(std::move(mine), std::chrono::seconds(60));
      auto groups = MeshCommunicators::make(world, manifest);
      ASSERT_TRUE(groups.ok()) << groups.status().message();
      int own = world->rank();
      auto membersOf = [&](const std::vector<std::string> &axes) {
        Communicator *group = (*groups)->find(axes);
        EXPECT_EQ((*groups)->placeIn(axes), group->rank());
        std::vector<int> members(size_t(group->ranks()));
        expectOk(group->allGather(&own, members.data(), 4));
        return members;
      };
      EXPECT_EQ(membersOf({"data"}), (std::vector<int>{own % 3, own % 3 + 3}));
      int row = own / 3 * 3;
      EXPECT_EQ(membersOf({"tensor"}),
                (std::vector<int>{row, row + 1, row + 2}));
      EXPECT_EQ(membersOf({"tensor", "data"}),
                (std::vector<int>{0, 3, 1, 4, 2, 5}));
      EXPECT_EQ((*groups)->find({"data", "tensor"}), nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Mesh, WantsItsNumberOfRanks) {
  artifact::Manifest manifest = withCollectives();
  withRanks(2, [&](Communicator &world) {
    std::shared_ptr<Communicator> shared(&world, [](Communicator *) {});
    auto groups = MeshCommunicators::make(shared, manifest);
    EXPECT_EQ(groups.status().message(),
              "expected 6 ranks, for the mesh data=2, tensor=3, but got 2");
  });
}

} // namespace
