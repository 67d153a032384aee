//===- CountAllocations.h - how many allocations a program makes ----------===//
//
// With CountAllocations.cpp operator new is replaced, and the linker sends
// malloc and its relatives through it (tandem_count_allocations in CMake).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_COUNTALLOCATIONS_H
#define TANDEM_TESTS_RUNTIME_COUNTALLOCATIONS_H

#include <atomic>
#include <cstdint>

namespace tandem::test {

/// Of all threads.
extern std::atomic<int64_t> allocations;
/// Whether one that comes now counts; null: all do.
extern bool (*isAllocationCounted)();

} // namespace tandem::test

#endif
