// The bytes of groups that were being read did not count: with N threads N
// groups were read at once beside those that were kept.
#include "tools/commands/GroupCache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace tandem::commands {
namespace {

using Bytes = GroupCache::Bytes;

TEST(GroupCache, countsGroupsThatAreBeingRead) {
  for (int64_t size : {40, 100, 300}) {
    GroupCache cache(100);
    std::atomic<int> reading = 0, most = 0;
    auto read = [&](size_t) -> Result<Bytes> {
      int now = ++reading;
      for (int seen = most;
           now > seen && !most.compare_exchange_weak(seen, now);)
        ;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --reading;
      return std::make_shared<const std::vector<std::byte>>(size_t(size));
    };
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t)
      all.emplace_back([&, t] {
        for (size_t i = 0; i < 20; ++i)
          EXPECT_TRUE(
              bool(cache.get((size_t(t) * 5 + i * 3) % 17, size, read)));
      });
    for (std::thread &thread : all)
      thread.join();
    EXPECT_EQ(most, std::max<int64_t>(100 / size, 1)) << size;
  }
}

TEST(GroupCache, readsAGroupOnceAndKeepsWhyItCannotBeRead) {
  GroupCache cache(100);
  std::atomic<int> reads = 0;
  auto fail = [&](size_t) -> Result<Bytes> {
    ++reads;
    return Status::failed("broken");
  };
  auto read = [&](size_t group) -> Result<Bytes> {
    ++reads;
    return std::make_shared<const std::vector<std::byte>>(50, std::byte(group));
  };
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&] {
      EXPECT_EQ((**cache.get(3, 50, read))[0], std::byte(3));
      EXPECT_EQ(cache.get(4, 50, fail).status().message(), "broken");
    });
  for (std::thread &thread : all)
    thread.join();
  EXPECT_EQ(reads, 2);
}

} // namespace
} // namespace tandem::commands
