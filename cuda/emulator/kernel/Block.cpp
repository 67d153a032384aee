//===- Block.cpp - the threads of one block and how they take turns -------===//
#include "cuda/emulator/kernel/Block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tandem::emulator::kernel {

/// Rounds in which threads only polled before they are taken for stuck.
static constexpr uint32_t kMostIdleRounds = 1u << 18;
/// Atomic accesses of a thread that nobody can answer.
static constexpr uint32_t kMostPolls = 1u << 27;

Block::Block(const LaunchRequest &request, const artifact::EmulatedChunk &chunk,
             GlobalMemory &global, LaunchErrors &errors, FiberStacks &stacks,
             std::byte *arena, bool isWeak)
    : shared(arena),
      sharedBytes(request.kernel->sharedBytes + request.dynamicShared),
      races(request.block.x * request.block.y * request.block.z, sharedBytes,
            static_cast<const artifact::EmulatedKernel *>(request.kernel->code)
                    ->flags &
                artifact::kEmulatedPartialSync,
            isWeak),
      global(global), request(request), chunk(chunk),
      code(
          *static_cast<const artifact::EmulatedKernel *>(request.kernel->code)),
      errors(errors), stacks(stacks),
      threads(request.block.x * request.block.y * request.block.z),
      synchronizes(code.flags & artifact::kEmulatedSynchronizes) {
  if (isWeak)
    weak.emplace(static_cast<uint32_t>(threads.size()), races);
  fibers = std::make_unique<Fiber[]>(synchronizes ? threads.size() : 1);
  warps.resize((threads.size() + 31) / 32);
  for (uint32_t w = 0; w < warps.size(); ++w) {
    warps[w].first = w * 32;
    auto lanes = std::min<size_t>(32, threads.size() - w * 32);
    warps[w].existing = static_cast<uint32_t>((1ull << lanes) - 1);
    warpOrder.push_back(w);
  }
  if (request.order == Order::Descending)
    std::reverse(warpOrder.begin(), warpOrder.end());
  const Dim3 &n = request.block, &g = request.grid;
  for (uint32_t i = 0; i < threads.size(); ++i) {
    Thread &thread = threads[i];
    thread.tid[0] = i % n.x;
    thread.tid[1] = i / n.x % n.y;
    thread.tid[2] = i / (n.x * n.y);
    const uint32_t ntid[] = {n.x, n.y, n.z}, nctaid[] = {g.x, g.y, g.z};
    std::copy_n(ntid, 3, thread.ntid);
    std::copy_n(nctaid, 3, thread.nctaid);
    thread.lane = i % 32;
    thread.warp = i / 32;
    thread.warps = static_cast<uint32_t>(warps.size());
    thread.site = 0;
    thread.shared = shared;
    thread.dynamicShared = static_cast<uint32_t>(request.dynamicShared);
    thread.totalShared = static_cast<uint32_t>(sharedBytes);
    thread.block = this;
    thread.index = i;
  }
}

void Block::begin(const uint32_t id[3]) {
  std::copy_n(id, 3, ctaid);
  // Memory that nobody wrote reads as NaN in every floating point type.
  std::memset(shared, 0xff, sharedBytes);
  if (sharedBytes || weak)
    races.newBlock();
  if (weak)
    weak->beginBlock(id);
  for (Thread &thread : threads) {
    std::copy_n(id, 3, thread.ctaid);
    thread.ended = false;
    thread.polls = 0;
    thread.waitsFor = nullptr;
    thread.copies.clear();
    thread.copyGroups.clear();
    thread.openCopies = 0;
    thread.openBulk.clear();
    thread.bulkGroups.clear();
    thread.openProducts.clear();
    thread.productGroups.clear();
    thread.newMbarriers.clear();
    thread.productsFenced = thread.productsAwaited = false;
    thread.sums.clear();
  }
  for (Warp &warp : warps) {
    warp.ready = warp.existing;
    warp.paused = warp.ended = warp.atBarrier = 0;
    warp.pending.clear();
  }
  for (Barrier &barrier : barriers)
    barrier = {};
  warpgroups.assign(warps.size() / 4, {});
  mbarriers.clear();
  endedThreads = 0;
}

bool Block::run(const uint32_t id[3], std::mt19937_64 &generator) {
  random = &generator;
  begin(id);
  if (synchronizes) {
    runFibers();
  } else {
    fibers[0].prepare(stacks.bottom(0), stacks.bytes(), runAll, this);
    scheduler.switchTo(fibers[0]);
  }
  if (weak)
    weak->endBlock();
  return !failed;
}

void Block::runFibers() {
  // Tops at different offsets in their pages fall on different lines of the
  // cache.
  for (uint32_t i = 0; i < threads.size(); ++i)
    fibers[i].prepare(stacks.bottom(i), stacks.bytes() - i * 320 % 4096,
                      runFiber, &threads[i]);
  schedule();
}

void Block::runFiber(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  Block &block = *thread.block;
  block.code.run(&thread, block.request.params);
  thread.ended = true;
  ++block.endedThreads;
  block.progress = true;
  Warp &warp = block.warps[thread.warp];
  warp.ready &= ~(1u << thread.lane);
  warp.ended |= 1u << thread.lane;
  block.leave(thread, true);
}

/// All threads of the block, by turns on the first fiber.
void Block::runAll(void *argument) {
  auto &block = *static_cast<Block *>(argument);
  auto count = static_cast<uint32_t>(block.threads.size());
  switch (block.request.order) {
  case Order::Ascending:
    for (uint32_t i = 0; i < count; ++i)
      block.code.run(&block.threads[i], block.request.params);
    break;
  case Order::Descending:
    for (uint32_t i = count; i-- > 0;)
      block.code.run(&block.threads[i], block.request.params);
    break;
  case Order::Random:
    block.threadOrder.resize(count);
    for (uint32_t i = 0; i < count; ++i)
      block.threadOrder[i] = i;
    std::shuffle(block.threadOrder.begin(), block.threadOrder.end(),
                 *block.random);
    for (uint32_t i : block.threadOrder)
      block.code.run(&block.threads[i], block.request.params);
  }
  block.endedThreads = count;
  block.fibers[0].switchTo(block.scheduler, true);
}

uint32_t Block::pick(uint32_t lanes) {
  switch (request.order) {
  case Order::Ascending:
    return std::countr_zero(lanes);
  case Order::Descending:
    return 31 - std::countl_zero(lanes);
  case Order::Random:
    break;
  }
  for (uint32_t skip = (*random)() % std::popcount(lanes); skip; --skip)
    lanes &= lanes - 1;
  return std::countr_zero(lanes);
}

/// Goes on with another thread of the warp, or with the scheduler.
void Block::leave(Thread &thread, bool forGood) {
  Warp &warp = warps[thread.warp];
  Fiber &self = fibers[thread.index];
  if (warp.ready && !failed)
    self.switchTo(fibers[warp.first + pick(warp.ready)], forGood);
  else
    self.switchTo(scheduler, forGood);
}

void Block::wait(Thread &thread, const char *what) {
  thread.waitsFor = what;
  warps[thread.warp].ready &= ~(1u << thread.lane);
  leave(thread, false);
  thread.waitsFor = nullptr;
}

void Block::wake(Thread &thread) {
  warps[thread.warp].ready |= 1u << thread.lane;
  progress = true;
}

void Block::pause(Thread &thread) {
  if (!synchronizes)
    return;
  Warp &warp = warps[thread.warp];
  warp.ready &= ~(1u << thread.lane);
  warp.paused |= 1u << thread.lane;
  leave(thread, false);
}

void Block::polled(Thread &thread) {
  ++thread.polls;
  if (synchronizes && thread.polls % 64 == 0)
    pause(thread);
  else if (!synchronizes && thread.polls == kMostPolls)
    fail(thread, "livelock", "the thread makes atomic accesses without end");
}

void Block::waitUntil(Thread &thread, const char *what, bool (*ready)(void *),
                      void *data) {
  while (!ready(data)) {
    thread.waitsFor = what;
    pause(thread);
  }
  thread.waitsFor = nullptr;
  progress = true;
}

void Block::schedule() {
  uint32_t idleRounds = 0;
  while (endedThreads < threads.size()) {
    bool ran = false;
    progress = false;
    if (request.order == Order::Random)
      std::shuffle(warpOrder.begin(), warpOrder.end(), *random);
    for (uint32_t w : warpOrder) {
      Warp &warp = warps[w];
      warp.ready |= warp.paused;
      warp.paused = 0;
      while (warp.ready) {
        ran = true;
        scheduler.switchTo(fibers[warp.first + pick(warp.ready)]);
        if (failed)
          return;
      }
    }
    if (progress) {
      idleRounds = 0;
      continue;
    }
    bool polls = std::any_of(threads.begin(), threads.end(),
                             [](Thread &t) { return !t.ended && !t.waitsFor; });
    if (!ran || !polls || ++idleRounds > kMostIdleRounds) {
      reportStuck();
      failed = true;
      return;
    }
  }
}

/// Nobody can go on: says who waits for what, once per kind of wait.
void Block::reportStuck() {
  std::vector<std::pair<const char *, uint32_t>> waits; // what, first thread
  for (const Thread &thread : threads) {
    if (thread.ended)
      continue;
    const char *what = thread.waitsFor ? thread.waitsFor : "polls memory";
    bool known = std::any_of(waits.begin(), waits.end(),
                             [&](auto &wait) { return wait.first == what; });
    if (!known)
      waits.push_back({what, thread.index});
  }
  for (auto [what, first] : waits) {
    auto count = std::count_if(
        threads.begin(), threads.end(), [what = what](const Thread &t) {
          return !t.ended && (t.waitsFor ? t.waitsFor : "polls memory") == what;
        });
    std::string detail = std::to_string(count) + " of " +
                         std::to_string(threads.size()) + " threads: " + what;
    const Thread &thread = threads[first];
    if (thread.waitsFor && what == std::string("wait at a barrier")) {
      const Barrier &b = barriers[thread.barrier];
      detail += " " + std::to_string(thread.barrier) + " to which " +
                std::to_string(b.arrived) + " of " +
                std::to_string(b.expected) + " threads came";
    }
    if (endedThreads)
      detail += "; " + std::to_string(endedThreads) + " threads have ended";
    errors.error(ctaid, &thread, "deadlock", detail, nameOfSite(thread.site));
  }
}

bool Block::isLocal(const Thread &thread, const void *pointer) const {
  const std::byte *bottom = stacks.bottom(synchronizes ? thread.index : 0);
  return static_cast<size_t>(static_cast<const std::byte *>(pointer) - bottom) <
         stacks.bytes();
}

const char *Block::nameOfSite(uint32_t site) const {
  return site < chunk.siteCount ? chunk.sites[site] : "an unknown place";
}

void Block::error(const Thread &thread, const std::string &kind,
                  const std::string &detail) {
  errors.error(ctaid, &thread, kind, detail, nameOfSite(thread.site));
}

void Block::fail(const Thread &thread, std::string kind, std::string detail) {
  {
    const std::string ownKind = std::move(kind), ownDetail = std::move(detail);
    error(thread, ownKind, ownDetail);
  }
  failed = true;
  fibers[synchronizes ? thread.index : 0].switchTo(scheduler, true);
  __builtin_unreachable();
}

} // namespace tandem::emulator::kernel
