//===- KernelCacheTest.cpp - what is kept of kernels, and what can be wrong
//===//
#include "compiler/emit/KernelCache.h"
#include "compiler/emit/BuildIdentity.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace tandem::test {
namespace {

namespace files = std::filesystem;

std::string keyOf(char c) { return std::string(64, c); }

CompiledKernel kernelOf(std::string object, int64_t items = 8) {
  CompiledKernel kernel;
  kernel.facts = {items, 64, 2};
  kernel.usesTiles = items > 8;
  kernel.object = std::move(object);
  return kernel;
}

class KernelCacheTest : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "kernels-" + std::to_string(getpid());
    files::remove_all(folder);
  }
  void TearDown() override { files::remove_all(folder); }

  std::string pathOf(char key) const {
    return folder + "/" + keyOf(key) + ".kernel";
  }
  /// What a new compilation finds.
  bool has(char key) const {
    return KernelCache(folder, 1 << 20).find(keyOf(key));
  }
  void change(char key, size_t at) const {
    std::fstream file(pathOf(key), std::ios::in | std::ios::out);
    file.seekg(std::streamoff(at));
    char was = char(file.get());
    file.seekp(std::streamoff(at));
    file.put(char(was ^ 1));
  }
  std::string folder;
};

} // namespace

TEST_F(KernelCacheTest, AnEntryIsFoundByTheNextCompilation) {
  KernelCache first(folder + "/below", 1 << 20);
  EXPECT_EQ(first.find(keyOf('a')), nullptr);
  first.store(keyOf('a'), kernelOf(std::string("code\0of", 7), 9));
  EXPECT_EQ(first.problem(), "");
  // What the first call said counts.
  EXPECT_EQ(first.find(keyOf('a')), nullptr);
  KernelCache second(folder + "/below", 1 << 20);
  const CompiledKernel *found = second.find(keyOf('a'));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->object, std::string("code\0of", 7));
  EXPECT_EQ(found->facts.items, 9);
  EXPECT_EQ(found->facts.scratchBytes, 64);
  EXPECT_EQ(found->facts.grain, 2);
  EXPECT_TRUE(found->usesTiles);
  auto mode = files::status(folder + "/below").permissions();
  EXPECT_EQ(mode & files::perms::mask, files::perms::owner_all);
}

TEST_F(KernelCacheTest, AGpusKernelHasThreeTexts) {
  CompiledKernel kernel = kernelOf(".version 8.0");
  kernel.launch = "#tandem.kernel_facts<...>";
  kernel.bitcode = std::string("BC\0\xde", 4);
  KernelCache(folder, 1 << 20).store(keyOf('a'), kernel);
  KernelCache cache(folder, 1 << 20);
  const CompiledKernel *found = cache.find(keyOf('a'));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->object, kernel.object);
  EXPECT_EQ(found->launch, kernel.launch);
  EXPECT_EQ(found->bitcode, kernel.bitcode);
}

TEST_F(KernelCacheTest, EveryByteCounts) {
  KernelCache(folder, 1 << 20).store(keyOf('a'), kernelOf("code"));
  auto bytes = files::file_size(pathOf('a'));
  for (size_t at = 0; at < bytes; ++at) {
    KernelCache(folder, 1 << 20).store(keyOf('a'), kernelOf("code"));
    ASSERT_TRUE(has('a'));
    change('a', at);
    EXPECT_FALSE(has('a')) << "byte " << at;
    EXPECT_FALSE(files::exists(pathOf('a'))) << "it is removed";
  }
}

TEST_F(KernelCacheTest, AnEntryThatWasCutShortIsNone) {
  KernelCache cache(folder, 1 << 20);
  cache.store(keyOf('a'), kernelOf("code"));
  auto bytes = files::file_size(pathOf('a'));
  for (size_t left = 0; left < bytes; ++left) {
    cache.store(keyOf('a'), kernelOf("code"));
    files::resize_file(pathOf('a'), left);
    EXPECT_FALSE(has('a')) << left << " bytes";
  }
}

TEST_F(KernelCacheTest, AnotherKernelsEntryIsNone) {
  KernelCache cache(folder, 1 << 20);
  cache.store(keyOf('a'), kernelOf("code"));
  files::rename(pathOf('a'), pathOf('b'));
  EXPECT_FALSE(has('b'));
}

TEST_F(KernelCacheTest, ALinkIsNoEntry) {
  KernelCache cache(folder, 1 << 20);
  cache.store(keyOf('a'), kernelOf("code"));
  files::rename(pathOf('a'), folder + "/elsewhere");
  files::create_symlink(folder + "/elsewhere", pathOf('a'));
  EXPECT_FALSE(has('a'));
}

TEST_F(KernelCacheTest, AFolderInWhichOthersMayWriteIsNotUsed) {
  files::create_directories(folder);
  files::permissions(folder, files::perms::all);
  KernelCache cache(folder, 1 << 20);
  EXPECT_NE(cache.problem().find("others may write in it"), std::string::npos)
      << cache.problem();
  cache.store(keyOf('a'), kernelOf("code"));
  EXPECT_FALSE(files::exists(pathOf('a')));
  files::permissions(folder, files::perms::owner_all);
  cache.store(keyOf('a'), kernelOf("code"));
  EXPECT_FALSE(files::exists(pathOf('a')));
}

TEST_F(KernelCacheTest, AFolderThatCannotBeMadeIsSaid) {
  std::ofstream(folder) << "a file";
  KernelCache cache(folder + "/below", 1 << 20);
  EXPECT_NE(cache.problem(), "");
  cache.store(keyOf('a'), kernelOf("code"));
  EXPECT_EQ(cache.find(keyOf('a')), nullptr);
  cache.trim();
}

TEST_F(KernelCacheTest, WhereNothingCanBeWrittenWhatIsThereIsRead) {
  KernelCache(folder, 1 << 20).store(keyOf('a'), kernelOf("code"));
  KernelCache cache(folder, 1 << 20);
  // The superuser writes in folders that are only read, but in no name that is
  // too long.
  cache.store(std::string(400, 'b'), kernelOf("code"));
  EXPECT_NE(cache.problem().find("cannot write in '" + folder + "'"),
            std::string::npos)
      << cache.problem();
  EXPECT_NE(cache.find(keyOf('a')), nullptr);
}

TEST_F(KernelCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  std::string object(1000, 'x');
  KernelCache cache(folder, 3000);
  for (char key : {'a', 'b', 'c'})
    cache.store(keyOf(key), kernelOf(object));
  // Files that are read within one tick of the clock are in no order.
  for (char key : {'a', 'b', 'c'}) {
    timespec times[2] = {{key == 'a' ? 1 : key, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, pathOf(key).c_str(), times, 0), 0);
  }
  EXPECT_TRUE(has('a'));
  std::ofstream(folder + "/notes") << "not a kernel";
  cache.trim();
  EXPECT_TRUE(has('a')) << "it was used";
  EXPECT_FALSE(has('b'));
  EXPECT_TRUE(has('c'));
  EXPECT_TRUE(files::exists(folder + "/notes"));
}

TEST_F(KernelCacheTest, ThreadsWriteTheSameEntries) {
  auto work = [&] {
    KernelCache cache(folder, 20000);
    for (int round = 0; round < 50; ++round) {
      char key = char('a' + round % 10);
      cache.store(keyOf(key), kernelOf(std::string(1000, key)));
      KernelCache reader(folder, 20000);
      if (const CompiledKernel *found = reader.find(keyOf(key)))
        EXPECT_EQ(found->object, std::string(1000, key));
      cache.trim();
    }
    EXPECT_EQ(cache.problem(), "");
  };
  std::thread others[] = {std::thread(work), std::thread(work)};
  work();
  for (std::thread &other : others)
    other.join();
  for (char key = 'a'; key <= 'j'; ++key)
    EXPECT_TRUE(has(key));
  for (const auto &entry : files::directory_iterator(folder))
    EXPECT_EQ(entry.path().extension(), ".kernel") << entry.path();
}

TEST(KernelCacheSizeTest, BytesAreReadWithTheirUnit) {
  EXPECT_EQ(cacheBytes("2GiB"), uint64_t(2) << 30);
  EXPECT_EQ(cacheBytes("500MB"), 500000000u);
  for (const char *wrong : {"", "0.5", "1", "-3MiB", "big"})
    EXPECT_EQ(cacheBytes(wrong), std::nullopt) << wrong;
}

TEST(BuildIdentityTest, ItStaysTheSame) {
  auto first = buildIdentity(), second = buildIdentity();
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ(first->size(), 64u);
  EXPECT_EQ(*first, *second);
}

} // namespace tandem::test
