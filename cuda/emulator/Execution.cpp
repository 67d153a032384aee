//===- Execution.cpp - one operation while it runs ------------------------===//
#include "cuda/emulator/Execution.h"

#include "cuda/emulator/Machine.h"

using namespace tandem::emulator;

void Ranges::add(uintptr_t begin, uintptr_t end) {
  if (begin >= end)
    return;
  if (!ranges.empty() && begin <= ranges.back().second &&
      end >= ranges.back().first) {
    ranges.back().first = std::min(ranges.back().first, begin);
    ranges.back().second = std::max(ranges.back().second, end);
    return;
  }
  if (ranges.size() >= limit) {
    compact();
    limit = std::max(limit, 2 * ranges.size());
  }
  ranges.emplace_back(begin, end);
}

void Ranges::compact() {
  std::sort(ranges.begin(), ranges.end());
  size_t kept = 0;
  for (const Range &range : ranges) {
    if (kept && range.first <= ranges[kept - 1].second)
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, range.second);
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

const std::vector<Ranges::Range> &Ranges::sorted() {
  compact();
  return ranges;
}

/// Who freed the memory that was at `at`, for messages.
static std::string freedText(const Memory &memory, uintptr_t at) {
  const Allocation *dead = memory.findDead(at);
  return dead && dead->freedBy ? ", freed by " + dead->freedBy->text() : "";
}

bool tandem::emulator::hasAccess(const Device &device, const Allocation &to) {
  if (to.device == &device)
    return true;
  // A pool says itself who has access; the context's peers do not count.
  if (to.pool)
    return std::ranges::find(to.pool->users, &device) != to.pool->users.end();
  return std::ranges::find(device.peers, to.device) != device.peers.end();
}

/// Returns the live allocation at `at`, or null, with an error, if there is
/// none or a kernel may not use it.
const Allocation *Execution::find(uintptr_t at, const std::string &does) {
  const Allocation *in = machine.memory.find(at);
  if (!in) {
    error(does + machine.memory.describe(at) + freedText(machine.memory, at));
    return nullptr;
  }
  if (operation.kind != Command::Kind::Kernel ||
      in->kind != MemoryKind::Device || hasAccess(*operation.device, *in))
    return in;
  error(does + machine.memory.describe(at) + " of device " +
        std::to_string(in->device->ordinal) + " without access to it");
  return nullptr;
}

bool Execution::use(uintptr_t begin, size_t bytes, bool isWrite) {
  if (!bytes)
    return true;
  const std::string does = std::string(isWrite ? "writes " : "reads ") +
                           std::to_string(bytes) + " bytes of ";
  const Allocation *in = find(begin, does);
  if (!in || (machine.isClosing && in->kind == MemoryKind::Registered))
    return false;
  if (!in->contains(begin, bytes)) {
    error(does + machine.memory.describe(begin) + ", past its end (" +
          std::to_string(in->bytes) + " bytes)");
    return false;
  }
  (isWrite ? writes : reads).add(begin, begin + bytes);
  return true;
}

void Execution::claim(uintptr_t begin, size_t bytes) {
  writes.add(begin, begin + bytes);
}

MemoryRange Execution::allocation(const void *p) {
  const Allocation *in = find(reinterpret_cast<uintptr_t>(p), "uses ");
  if (!in)
    return {};
  return {reinterpret_cast<const void *>(in->begin),
          reinterpret_cast<const void *>(in->end())};
}

void Execution::access(const void *p, size_t bytes, bool isWrite,
                       bool isAtomic) {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  (isWrite || isAtomic ? writes : reads).add(begin, begin + bytes);
}

void Execution::error(const std::string &text) {
  machine.report.error(operation.origin->text() + " " + text);
}

void Execution::finish() {
  const Shadow::Actor actor{operation.clock, operation.lane, operation.tick,
                            operation.origin};
  auto race = [&](bool isWrite) {
    return [this, isWrite](const Origin &earlier, uintptr_t at, bool wrote) {
      machine.report.race(*operation.origin, isWrite, earlier, wrote,
                          machine.memory.describe(at));
    };
  };
  for (auto [begin, end] : reads.sorted())
    machine.shadow.read(begin, end, actor, race(false));
  for (auto [begin, end] : writes.sorted())
    machine.shadow.write(begin, end, actor, race(true));
}
