//===- CountAllocations.cpp - how many allocations a program makes --------===//
#include "tests/runtime/CountAllocations.h"

#include <cstdlib>
#include <new>

std::atomic<int64_t> tandem::test::allocations{0};
bool (*tandem::test::isAllocationCounted)() = nullptr;

static void count() {
  using namespace tandem::test;
  allocations += !isAllocationCounted || isAllocationCounted();
}

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
  count();
  return __real_malloc(size);
}
void *__wrap_calloc(size_t number, size_t size) {
  count();
  return __real_calloc(number, size);
}
void *__wrap_realloc(void *memory, size_t size) {
  count();
  return __real_realloc(memory, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  count();
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
