//===- CoreStorageTest.cpp - storage that is resized, shared or written ---===//
//
// What handles of one storage see when it is freed or grows, what grad mode's
// marks allow, and whether two strided tensors share memory, compared with the
// addresses of all their elements.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Overlap.h"
#include "runtime/tensor/Tensor.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace tandem;
using namespace tandem::runtime;

namespace {

using Sizes = std::vector<int64_t>;

Tensor counted(int64_t count) {
  Tensor tensor = *Tensor::empty(DType::F32, Sizes{count});
  for (int64_t i = 0; i < count; ++i)
    tensor.mutableData<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(Storage, PartsKeepTheWholeAndCountTheirOwnWrites) {
  auto account = std::make_shared<MemoryAccount>();
  auto whole = *Storage::allocate(256, account);
  auto *begin = static_cast<char *>(whole->data());
  Tensor x = *Tensor::in(Storage::partOf(whole, 0, 64), DType::F32, Sizes{16});
  Tensor y =
      *Tensor::in(Storage::partOf(whole, 64, 192), DType::F32, Sizes{4, 12});
  EXPECT_EQ(x.data(), begin);
  EXPECT_EQ(y.data(), begin + 64);
  EXPECT_EQ(account->current, 256) << "parts are charged with the whole";
  uint64_t version = y.version();
  ASSERT_TRUE(x.fill(2).ok());
  ASSERT_TRUE(y.fill(3).ok());
  EXPECT_EQ(y.version(), version + 1);
  EXPECT_EQ(x.at(15), 2);
  EXPECT_EQ(x.resizeStorage(0).message(),
            "expected storage that nobody else relies on but got that of a "
            "model or of an exported tensor");
  whole.reset();
  x = {};
  EXPECT_EQ(account->current, 256);
  EXPECT_EQ(y.at(47), 3);
  y = {};
  EXPECT_EQ(account->current, 0);
}

TEST(Storage, TensorsAreInsideOfIt) {
  auto storage = *Storage::allocate(64);
  EXPECT_TRUE(Tensor::in(storage, DType::F32, Sizes{2, 8}).ok());
  EXPECT_EQ(Tensor::in(storage, DType::F64, Sizes{9}).status().message(),
            "expected a storage of at least 72 bytes but got 64");
  EXPECT_FALSE(Tensor::in(storage, DType::F32, Sizes{-1}).ok());
}

TEST(Storage, M14_AllHandlesSeeAResize) {
  auto account = std::make_shared<MemoryAccount>();
  Tensor x = *Tensor::zeros(DType::F32, Sizes{32}, account);
  Tensor tail = *x.view(Sizes{8}, Sizes{1}, 24);
  ASSERT_TRUE(x.fill(3).ok());
  uint64_t version = x.version();
  ASSERT_TRUE(x.resizeStorage(0).ok());
  EXPECT_GT(x.version(), version) << "the values are gone";
  EXPECT_EQ(account->current, 0);
  EXPECT_FALSE(x.isBacked());
  EXPECT_FALSE(tail.isBacked());
  EXPECT_EQ(tail.data(), nullptr);
  EXPECT_TRUE(std::isnan(tail.at(0)));
  EXPECT_EQ(tail.fill(1).message(),
            "expected a tensor with elements but its storage has 0 bytes");
  EXPECT_FALSE(counted(8).copyFrom(tail).ok());
  EXPECT_FALSE(tail.dense().ok() && tail.to(DType::F64).ok());
  EXPECT_FALSE(tail.toDLPack().ok());
  ASSERT_TRUE(tail.resizeStorage(16).ok());
  EXPECT_FALSE(tail.isBacked()) << "it begins at element 24";
  EXPECT_FALSE(x.isBacked());
  EXPECT_TRUE(x.slice(0, 16)->isBacked());
  EXPECT_EQ(tail.storageElements(), 32);
  ASSERT_TRUE(tail.resizeStorage(32).ok());
  ASSERT_TRUE(tail.fill(5).ok());
  EXPECT_EQ(x.at(24), 5);
  EXPECT_EQ(static_cast<const char *>(tail.data()),
            static_cast<const char *>(x.data()) + 96);
  ASSERT_TRUE(x.resizeStorage(1024).ok());
  EXPECT_EQ(x.at(31), 5) << "what fits is kept";
  EXPECT_EQ(account->current, 4096);
}

TEST(Storage, M14_ForeignMemoryIsNotResized) {
  float memory[4] = {};
  Tensor wrapped = *Tensor::wrap(memory, DType::F32, Sizes{4});
  EXPECT_EQ(wrapped.resizeStorage(0).message(),
            "expected storage that the runtime allocated but got memory of "
            "somebody else");
  EXPECT_FALSE(counted(4).resizeStorage(-1).ok());
  EXPECT_FALSE(counted(4).resizeStorage(INT64_MAX / 2).ok());
  EXPECT_FALSE(Tensor().resizeStorage(0).ok());
  Tensor fixed = counted(4);
  fixed.storage()->fix();
  EXPECT_FALSE(fixed.resizeStorage(0).ok());
  EXPECT_EQ(fixed.at(3), 3);
}

TEST(Storage, ViewsOfFreedStorageAreCheckedWhenUsed) {
  Tensor x = counted(4);
  ASSERT_TRUE(x.resizeStorage(0).ok());
  Result<Tensor> view = x.view(Sizes{2}, Sizes{1}, 6);
  ASSERT_TRUE(view);
  ASSERT_TRUE(x.resizeStorage(8).ok());
  EXPECT_TRUE(view->isBacked());
  EXPECT_FALSE(x.view(Sizes{2}, Sizes{1}, 7).ok());
}

// The bounds were those of the allocation, which ends with a line of the cache:
// what was never written could be read.
TEST(Storage, HoldsTheElementsThatItWasAskedFor) {
  Tensor x = counted(4);
  EXPECT_EQ(x.view(Sizes{2}, Sizes{1}, 3).status().message(),
            "expected a view within the storage (16 bytes) but got shape [2] "
            "with strides [1] at byte 12");
  ASSERT_TRUE(x.resizeStorage(3).ok());
  EXPECT_FALSE(x.isBacked());
  EXPECT_TRUE(x.view(Sizes{3}, Sizes{1}, 0)->isBacked());
  ASSERT_TRUE(x.resizeStorage(4).ok());
  EXPECT_TRUE(x.isBacked());
}

TEST(GradMode, HandlesCarryTheMarks) {
  Tensor x = counted(4);
  EXPECT_FALSE(x.requiresGrad());
  EXPECT_TRUE(x.isLeaf());
  ASSERT_TRUE(x.setRequiresGrad(true).ok());
  Tensor copy = x;
  EXPECT_TRUE(copy.requiresGrad() && copy.isLeaf());
  EXPECT_FALSE(x.detach().requiresGrad());
  EXPECT_EQ(x.detach().data(), x.data());
  EXPECT_FALSE(x.slice(0, 2)->requiresGrad()) << "views are made without grad";
  copy.setMade(true, "split");
  EXPECT_TRUE(copy.requiresGrad() && !copy.isLeaf());
  EXPECT_STREQ(copy.partOf(), "split");
  EXPECT_FALSE(copy.setRequiresGrad(false).ok());
  EXPECT_TRUE(x.isLeaf()) << "marks belong to the handle";
  copy = copy.detach();
  EXPECT_TRUE(copy.isLeaf() && !copy.partOf());
  Tensor n = *Tensor::zeros(DType::I32, Sizes{2});
  EXPECT_EQ(n.setRequiresGrad(true).message(),
            "expected a floating point type for a tensor that requires grad "
            "but got 'i32'");
  EXPECT_FALSE(Tensor().setRequiresGrad(true).ok());
}

TEST(Overlap, A09_HalvesAndColumnsShareNothing) {
  Tensor x = counted(64);
  Tensor low = *x.slice(0, 32), high = *x.slice(32, 64);
  EXPECT_FALSE(shareMemory(low, high));
  EXPECT_TRUE(shareMemory(low, *x.slice(31, 40)));
  Tensor even = *x.view(Sizes{32}, Sizes{2}, 0);
  Tensor odd = *x.view(Sizes{32}, Sizes{2}, 1);
  EXPECT_FALSE(shareMemory(even, odd));
  EXPECT_TRUE(shareMemory(even, *x.view(Sizes{21}, Sizes{3}, 1)));
  Tensor left = *x.view(Sizes{8, 4}, Sizes{8, 1}, 0);
  Tensor right = *x.view(Sizes{8, 4}, Sizes{8, 1}, 4);
  EXPECT_FALSE(shareMemory(left, right));
  EXPECT_TRUE(shareMemory(left, *x.view(Sizes{8, 4}, Sizes{8, 1}, 3)));
  // The bytes of one element as elements of another type.
  Tensor bytes = *x.viewAs(DType::I16, Sizes{32}, Sizes{4}, 4);
  EXPECT_FALSE(shareMemory(even, bytes)) << "halves of the odd elements";
  EXPECT_TRUE(shareMemory(odd, bytes));
  EXPECT_FALSE(shareMemory(x, counted(64)));
  EXPECT_FALSE(shareMemory(*x.slice(3, 3), x)) << "no elements";
}

/// The bytes of all elements; `twice` if one is met again.
std::set<int64_t> bytesOf(const Tensor &base, const Tensor &tensor,
                          bool &twice) {
  std::set<int64_t> bytes;
  int64_t size = byteSize(tensor.dtype());
  std::vector<int64_t> places = {static_cast<const char *>(tensor.data()) -
                                 static_cast<const char *>(base.data())};
  for (int d = 0; d < tensor.rank(); ++d) {
    std::vector<int64_t> next;
    for (int64_t place : places)
      for (int64_t i = 0; i < tensor.shape()[d]; ++i)
        next.push_back(place + i * tensor.strides()[d] * size);
    places = next;
  }
  for (int64_t place : places)
    for (int64_t b = 0; b < size; ++b)
      twice |= !bytes.insert(place + b).second;
  return bytes;
}

TEST(Overlap, A09_AgreesWithTheAddressesOfAllElements) {
  std::mt19937 random(7);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Tensor base = counted(512);
  int shared = 0, apart = 0;
  for (int round = 0; round < 4000; ++round) {
    Tensor made[2];
    bool itself[2] = {};
    std::set<int64_t> bytes[2];
    for (int t = 0; t < 2; ++t) {
      DType type = draw(0, 3) ? DType::F32 : DType::I16;
      Sizes shape, strides;
      for (int64_t d = draw(0, 3); d > 0; --d) {
        shape.push_back(draw(1, 4));
        strides.push_back(draw(-9, 12));
      }
      Result<Tensor> view = base.viewAs(type, shape, strides, draw(300, 420));
      ASSERT_TRUE(view) << view.status().message();
      made[t] = *view;
      bytes[t] = bytesOf(base, made[t], itself[t]);
      EXPECT_EQ(overlapsItself(made[t]), itself[t])
          << toString(shape) << " " << toString(strides);
    }
    bool expected = false;
    for (int64_t byte : bytes[0])
      expected |= bytes[1].count(byte) != 0;
    (expected ? shared : apart) += 1;
    ASSERT_EQ(shareMemory(made[0], made[1]), expected)
        << describe(made[0].dtype(), made[0].shape()) << " "
        << toString(made[0].strides()) << " and "
        << describe(made[1].dtype(), made[1].shape()) << " "
        << toString(made[1].strides());
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(apart, 500);
}

TEST(Overlap, ALongSearchCountsAsShared) {
  // A subset-sum problem: no two elements meet, but showing it takes long.
  std::vector<char> memory(1 << 20);
  Sizes shape(16, 2), strides;
  for (int i = 0; i < 16; ++i)
    strides.push_back(30001 + 2 * i * i * 7);
  Tensor a = *Tensor::wrap(memory.data(), DType::I8, shape, strides);
  Sizes even;
  for (int64_t stride : strides)
    even.push_back(stride + 1);
  Tensor b = *Tensor::wrap(memory.data() + 7, DType::I8, shape, even);
  EXPECT_TRUE(shareMemory(a, b));
}

} // namespace
