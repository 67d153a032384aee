//===- Processors.cpp - which processors threads run on -------------------===//
#include "runtime/device/Processors.h"

#include <algorithm>
#include <thread>

namespace tandem::runtime {

int availableThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int currentProcessor() { return sched_getcpu(); }

bool leaveProcessors(const cpu_set_t &taken) {
  cpu_set_t allowed, shared, others;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return false;
  CPU_AND(&shared, &allowed, &taken);
  CPU_XOR(&others, &allowed, &shared);
  if (CPU_COUNT(&others) == 0 ||
      sched_setaffinity(0, sizeof(others), &others) != 0)
    return false;
  sched_setaffinity(0, sizeof(allowed), &allowed);
  return true;
}

} // namespace tandem::runtime
