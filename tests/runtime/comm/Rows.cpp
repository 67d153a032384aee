//===- Rows.cpp - what holds of any communicator --------------------------===//
#include "tests/runtime/comm/Rows.h"

#include "runtime/tensor/Half.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::comm::testing;
using artifact::DType;

namespace {

/// Of rank and place, such that the order of additions shows in a sum.
float numberOf(int rank, int64_t i) {
  return 0.1f * float(rank + 1) + 1e-3f * float(i % 1013) * float(rank + 1);
}

std::vector<float> numbersOf(int rank, int64_t count) {
  std::vector<float> result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    result[size_t(i)] = numberOf(rank, i);
  return result;
}

float sumOf(int ranks, int64_t i) {
  float sum = numberOf(0, i);
  for (int r = 1; r < ranks; ++r)
    sum += numberOf(r, i);
  return sum;
}

void allReduceAddsInTheOrderOfRanks(Communicator &world) {
  int ranks = world.ranks();
  // Nothing, one, little that is gathered, pieces of it, several pieces.
  for (int64_t count : {0, 1, 5, 1024, 1025, 4099, 2'500'001}) {
    std::vector<float> own = numbersOf(world.rank(), count);
    std::vector<float> sum(own.size());
    expectOk(world.allReduce(DType::F32, Reduce::Sum, own.data(), sum.data(),
                             count));
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(sum[size_t(i)], sumOf(ranks, i)) << i << " of " << count;
    expectOk(world.allReduce(DType::F32, Reduce::Sum, own.data(), own.data(),
                             count));
    EXPECT_EQ(own, sum);
  }
}

void allReduceTakesOtherTypes(Communicator &world) {
  int ranks = world.ranks();
  {
    for (int64_t count : {1, 5000}) {
      std::vector<int64_t> integers(size_t(count), world.rank());
      expectOk(world.allReduce(DType::I64, Reduce::Max, integers.data(),
                               integers.data(), count));
      EXPECT_EQ(integers, std::vector<int64_t>(size_t(count), ranks - 1));
      std::vector<double> doubles(size_t(count), world.rank() + 1);
      expectOk(world.allReduce(DType::F64, Reduce::Min, doubles.data(),
                               doubles.data(), count));
      EXPECT_EQ(doubles, std::vector<double>(size_t(count), 1));
      float sum = 0;
      for (int r = 0; r < ranks; ++r)
        sum += 1 + float(r) / 1024;
      float own = 1 + float(world.rank()) / 1024;
      std::vector<uint16_t> halves(size_t(count), runtime::f16FromFloat(own));
      expectOk(world.allReduce(DType::F16, Reduce::Sum, halves.data(),
                               halves.data(), count));
      EXPECT_EQ(halves, std::vector<uint16_t>(size_t(count),
                                              runtime::f16FromFloat(sum)));
      std::vector<uint16_t> brains(size_t(count), runtime::bf16FromFloat(1.5f));
      expectOk(world.allReduce(DType::BF16, Reduce::Sum, brains.data(),
                               brains.data(), count));
      EXPECT_EQ(brains[size_t(count) - 1],
                runtime::bf16FromFloat(1.5f * float(ranks)));
    }
    uint8_t flag = 1;
    EXPECT_EQ(
        world.allReduce(DType::Bool, Reduce::Sum, &flag, &flag, 1).message(),
        "bools have no sum over ranks");
  }
}

void reduceScatterGivesEachItsPiece(Communicator &world) {
  int ranks = world.ranks();
  for (int64_t count : {0, 1, 777, 300'001}) {
    std::vector<float> all = numbersOf(world.rank(), count * ranks);
    std::vector<float> piece(static_cast<size_t>(count));
    expectOk(world.reduceScatter(DType::F32, Reduce::Sum, all.data(),
                                 piece.data(), count));
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(piece[size_t(i)], sumOf(ranks, world.rank() * count + i));
  }
}

void allGatherAndAllToAllKeepTheOrder(Communicator &world) {
  int ranks = world.ranks();
  for (int64_t count : {0, 1, 1000}) {
    std::vector<float> own = numbersOf(world.rank(), count);
    std::vector<float> all(size_t(count * ranks));
    expectOk(world.allGather(own.data(), all.data(), count * 4));
    for (int r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(all[size_t(r * count + i)], numberOf(r, i));
    // In place.
    std::fill(all.begin(), all.end(), 0);
    if (count > 0)
      std::memcpy(&all[size_t(world.rank() * count)], own.data(),
                  own.size() * 4);
    expectOk(world.allGather(all.data() + world.rank() * count, all.data(),
                             count * 4));
    for (int r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(all[size_t(r * count + i)], numberOf(r, i));
    std::vector<float> sent = numbersOf(world.rank(), count * ranks);
    expectOk(world.allToAll(sent.data(), all.data(), count * 4));
    for (int r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(all[size_t(r * count + i)],
                  numberOf(r, world.rank() * count + i));
  }
}

void broadcastComesFromEveryRoot(Communicator &world) {
  int ranks = world.ranks();
  {
    for (int root = 0; root < ranks; ++root) {
      std::vector<float> data = numbersOf(world.rank(), 100);
      expectOk(world.broadcast(data.data(), 400, root));
      EXPECT_EQ(data, numbersOf(root, 100)) << root;
    }
    EXPECT_EQ(world.broadcast(nullptr, 0, ranks).message(),
              "cannot broadcast from rank " + std::to_string(ranks) +
                  ": there are " + std::to_string(ranks));
  }
}

void sendGoesAroundARing(Communicator &world) {
  int ranks = world.ranks();
  {
    int value = 1, next = (world.rank() + 1) % ranks;
    int before = (world.rank() + ranks - 1) % ranks;
    if (ranks == 1) {
      EXPECT_EQ(world.send(&value, 4, 0).message(),
                "cannot send to itself: rank 0");
      return;
    }
    if (world.rank() > 0)
      expectOk(world.recv(&value, 4, before));
    ++value;
    expectOk(world.send(&value, 4, next));
    if (world.rank() == 0) {
      expectOk(world.recv(&value, 4, before));
      EXPECT_EQ(value, ranks + 1);
    }
  }
}

void splitGroupsByColorAndOrdersByKey(Communicator &world) {
  int ranks = world.ranks();
  {
    // Odd and even, from the last to the first.
    auto half = world.split(world.rank() % 2, -world.rank());
    ASSERT_TRUE(half.ok()) << half.status().message();
    std::vector<int> members;
    for (int r = ranks - 1; r >= 0; --r)
      if (r % 2 == world.rank() % 2)
        members.push_back(r);
    ASSERT_EQ((*half)->ranks(), int(members.size()));
    int own = world.rank();
    EXPECT_EQ(members[size_t((*half)->rank())], own);
    std::vector<int> all(members.size());
    expectOk((*half)->allGather(&own, all.data(), 4));
    EXPECT_EQ(all, members);
    // A group of a group, and the first ones still work.
    auto alone = (*half)->split((*half)->rank(), 0);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ((*alone)->ranks(), 1);
    int sum = 1;
    expectOk((*alone)->allReduce(DType::I32, Reduce::Sum, &sum, &sum, 1));
    EXPECT_EQ(sum, 1);
    expectOk(world.allReduce(DType::I32, Reduce::Sum, &sum, &sum, 1));
    EXPECT_EQ(sum, ranks);
  }
}

void messagesOfTwoCommunicatorsDoNotMix(Communicator &world) {
  int ranks = world.ranks();
  {
    auto other = world.split(0, 0);
    ASSERT_TRUE(other.ok());
    // The first rank sends in one order, and others receive in another.
    for (int i = 0; i < 50; ++i) {
      int a = world.rank() == 0 ? 1 : 0, b = world.rank() == 0 ? 2 : 0;
      if (world.rank() == 0) {
        expectOk(world.broadcast(&a, 4, 0));
        expectOk((*other)->broadcast(&b, 4, 0));
      } else if (ranks == 2) {
        expectOk((*other)->broadcast(&b, 4, 0));
        expectOk(world.broadcast(&a, 4, 0));
      } else {
        expectOk(world.broadcast(&a, 4, 0));
        expectOk((*other)->broadcast(&b, 4, 0));
      }
      EXPECT_EQ(a, 1);
      EXPECT_EQ(b, 2);
    }
  }
}

} // namespace

std::span<const Row> tandem::comm::testing::rows() {
  static constexpr Row all[] = {
      {"AllReduceAddsInTheOrderOfRanks", allReduceAddsInTheOrderOfRanks},
      {"AllReduceTakesOtherTypes", allReduceTakesOtherTypes},
      {"ReduceScatterGivesEachItsPiece", reduceScatterGivesEachItsPiece},
      {"AllGatherAndAllToAllKeepTheOrder", allGatherAndAllToAllKeepTheOrder},
      {"BroadcastComesFromEveryRoot", broadcastComesFromEveryRoot},
      {"SendGoesAroundARing", sendGoesAroundARing},
      {"SplitGroupsByColorAndOrdersByKey", splitGroupsByColorAndOrdersByKey},
      {"MessagesOfTwoCommunicatorsDoNotMix",
       messagesOfTwoCommunicatorsDoNotMix},
  };
  return all;
}
