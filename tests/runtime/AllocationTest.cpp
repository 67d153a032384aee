//===- AllocationTest.cpp - a step allocates nothing ----------------------===//
//
// Counts every allocation of the program: operator new is replaced here, and
// the linker sends malloc and its relatives through the wrappers below. After
// the first call, training by steps, training by forward, backward and update,
// and evaluation with strided inputs make none.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
} // namespace

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
  ++allocations;
  return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
  ++allocations;
  return __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size) {
  ++allocations;
  return __real_realloc(memory, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __real_aligned_alloc(alignment, size);
}
}

void *operator new(size_t size) {
  void *memory = std::malloc(size ? size : 1);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

class Allocation : public ::testing::Test {
protected:
  Model model = modelFor(regression());
  Tensor x = sampleX(), y = sampleY(), one = tensorOf({1}, {});
  Tensor loss, pred, gw, gb;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Destination> outputs = {{"loss", &loss}, {"pred", &pred}};
  std::vector<Argument> cotangents = {{"loss", &one}};
  std::vector<Destination> grads = {{"w", &gw}, {"b", &gb}};
  std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};

  /// Returns the allocations of 100 calls of `fn` after a first one.
  template <typename Fn> int64_t countAfterFirst(Fn fn) {
    int64_t before = allocations;
    EXPECT_TRUE(fn());
    EXPECT_GT(allocations, before) << "the first call has to allocate";
    before = allocations;
    bool ok = true;
    for (int i = 0; i < 100; ++i)
      ok &= fn();
    int64_t count = allocations - before;
    EXPECT_TRUE(ok);
    return count;
  }
};

TEST_F(Allocation, StepsAllocateNothing) {
  std::vector<Destination> lossOnly = {{"loss", &loss}};
  EXPECT_EQ(countAfterFirst([&] { return model.step(inputs, lossOnly).ok(); }),
            0);
}

TEST_F(Allocation, C04_ForwardBackwardUpdateAllocateNothing) {
  EXPECT_EQ(countAfterFirst([&] {
              Result<Context> context = model.forward(inputs, outputs);
              return context && model.backward(*context, cotangents, grads) &&
                     model.update(given);
            }),
            0);
}

TEST_F(Allocation, DroppedContextsAndStridedInputsAllocateNothing) {
  Tensor columns = *Tensor::zeros(DType::F32, std::vector<int64_t>{3, 8});
  x = *columns.view(std::vector<int64_t>{8, 3}, std::vector<int64_t>{1, 8});
  Tensor strided = *Tensor::zeros(DType::F32, std::vector<int64_t>{16});
  pred = *strided.view(std::vector<int64_t>{8}, std::vector<int64_t>{2});
  EXPECT_EQ(
      countAfterFirst([&] { return model.forward(inputs, outputs).ok(); }), 0);
}

} // namespace
