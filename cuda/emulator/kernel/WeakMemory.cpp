//===- WeakMemory.cpp - global memory as the blocks of a launch see it ----===//
#include "cuda/emulator/kernel/WeakMemory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tandem::emulator::kernel {

static uintptr_t addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// Adds `more`, both in rising order.
static void unite(std::vector<uint32_t> &all,
                  const std::vector<uint32_t> &more) {
  if (more.empty())
    return;
  std::vector<uint32_t> both;
  both.reserve(all.size() + more.size());
  std::set_union(all.begin(), all.end(), more.begin(), more.end(),
                 std::back_inserter(both));
  all = std::move(both);
}

WeakMemory::WeakMemory(uint32_t threads, SharedRaces &races)
    : threads(threads), races(races) {}

WeakMemory::~WeakMemory() {
  for (const PastBlock &block : blocks)
    for (const Piece &piece : block.pieces)
      std::memcpy(piece.to, piece.data.data(), piece.data.size());
}

void WeakMemory::beginBlock(const uint32_t ctaid[3]) {
  blocks.push_back({{ctaid[0], ctaid[1], ctaid[2]}, {}});
  states.assign(threads, {});
  acquired.clear();
  lastKnown = {};
}

void WeakMemory::endBlock() {
  std::vector<Piece> &pieces = blocks.back().pieces;
  for (auto [base, page] : written) {
    for (size_t i = 0; i < kPage;) {
      if (!page->mine[i]) {
        ++i;
        continue;
      }
      size_t end = i + 1;
      while (end < kPage && page->mine[end] &&
             page->writer[end] == page->writer[i])
        ++end;
      auto *at = reinterpret_cast<std::byte *>(base + i);
      pieces.push_back({at, page->writer[i], {at, at + (end - i)}});
      shown.push_back({at, end - i});
      i = end;
    }
    page->mine.reset();
  }
  written.clear();
  for (auto [at, bytes] : shown)
    for (size_t i = 0; i < bytes; ++i) {
      uintptr_t address = addressOf(at + i);
      at[i] = pageOf(address).original[address % kPage];
    }
  shown.clear();
}

WeakMemory::Page &WeakMemory::pageOf(uintptr_t address) {
  uintptr_t base = address / kPage * kPage;
  if (!lastPage.second || lastPage.first != base) {
    auto &page = pages[base];
    if (!page)
      page = std::make_unique<Page>();
    lastPage = {base, page.get()};
  }
  return *lastPage.second;
}

/// Calls visit(page, byte of the page, address) for each byte; returns the
/// first race that it finds.
template <typename Visit>
WeakMemory::Race WeakMemory::forBytes(const void *pointer, size_t bytes,
                                      Visit visit) {
  Found first;
  uintptr_t where = 0;
  for (uintptr_t at = addressOf(pointer), end = at + bytes; at < end;) {
    Page &page = pageOf(at);
    for (size_t i = at % kPage; i < kPage && at < end; ++i, ++at) {
      Found found = visit(page, i, at);
      if (found.kind && !first.kind) {
        first = found;
        where = at;
      }
    }
  }
  return first.kind ? raceWith(first, where) : Race();
}

uint32_t WeakMemory::stampOf(uint32_t thread, bool isAtomic) {
  ThreadState &state = states[thread];
  // An atomic write is part of what the fence before it begins.
  uint64_t time =
      isAtomic && state.fencedAt ? state.fencedAt : races.timeOf(thread);
  uint32_t &last = isAtomic ? state.atomicStamp : state.stamp;
  if (!last || stamps[last].time != time) {
    last = static_cast<uint32_t>(stamps.size());
    stamps.push_back(
        {static_cast<uint32_t>(blocks.size() - 1), thread, time, isAtomic});
  }
  return last;
}

/// Blocks run one after the other, so that a block's releases stand together.
bool WeakMemory::covers(const Releases &all, const Stamp &stamp) const {
  auto at = std::partition_point(all.begin(), all.end(), [&](uint32_t number) {
    return releases[number].block < stamp.block;
  });
  for (; at != all.end() && releases[*at].block == stamp.block; ++at)
    if (releases[*at].knowledge.knows(stamp.thread, stamp.time))
      return true;
  return false;
}

/// Whether the access happens before what `thread` does now. Threads of the
/// same block are not compared.
bool WeakMemory::knows(uint32_t thread, uint32_t number) {
  const Stamp &stamp = stamps[number];
  if (!number || stamp.block + 1 == blocks.size() ||
      lastKnown == std::pair(thread, number))
    return true;
  for (const Acquired &one : acquired)
    if (races.knows(thread, one.thread, one.time) &&
        covers(one.releases, stamp)) {
      lastKnown = {thread, number};
      return true;
    }
  return false;
}

WeakMemory::Race WeakMemory::raceWith(const Found &found,
                                      uintptr_t address) const {
  const Stamp &stamp = stamps[found.stamp];
  return {found.kind, blocks[stamp.block].id, stamp.thread, address};
}

WeakMemory::Race WeakMemory::read(uint32_t thread, const void *pointer,
                                  size_t bytes) {
  uint32_t mine = stampOf(thread, false);
  return forBytes(pointer, bytes, [&](Page &page, size_t i, uintptr_t) {
    page.reader[i] = mine;
    if (knows(thread, page.writer[i]))
      return Found();
    return Found{"read of what another block wrote", page.writer[i]};
  });
}

WeakMemory::Race WeakMemory::write(uint32_t thread, const void *pointer,
                                   size_t bytes) {
  uint32_t mine = stampOf(thread, false);
  return forBytes(pointer, bytes, [&](Page &page, size_t i, uintptr_t at) {
    Found race;
    if (!knows(thread, page.writer[i]))
      race = {"write over what another block wrote", page.writer[i]};
    else if (!knows(thread, page.reader[i]))
      race = {"write over what another block read", page.reader[i]};
    if (!page.written[i]) {
      page.written[i] = true;
      page.original[i] = *reinterpret_cast<const std::byte *>(at);
    }
    if (page.mine.none())
      written.push_back({at / kPage * kPage, &page});
    page.mine[i] = true;
    page.writer[i] = mine;
    page.reader[i] = 0;
    return race;
  });
}

WeakMemory::Race WeakMemory::atomic(uint32_t thread, const void *pointer,
                                    size_t bytes, bool reads, bool writes) {
  uint32_t mine = stampOf(thread, true);
  Race race = forBytes(pointer, bytes, [&](Page &page, size_t i, uintptr_t) {
    Found found;
    if (!stamps[page.writer[i]].isAtomic && !knows(thread, page.writer[i]))
      found = {"atomic access to what another block wrote", page.writer[i]};
    else if (writes && !stamps[page.reader[i]].isAtomic &&
             !knows(thread, page.reader[i]))
      found = {"atomic write over what another block read", page.reader[i]};
    if (writes) // all blocks see it at once: nothing to take back
      page.writer[i] = mine;
    else
      page.reader[i] = mine;
    return found;
  });
  Releases &here = published[addressOf(pointer)];
  ThreadState &state = states[thread];
  if (reads)
    unite(state.observed, here);
  if (writes && !reads)
    here.clear();
  if (writes)
    unite(here, state.released);
  return race;
}

WeakMemory::Releases WeakMemory::knownTo(uint32_t thread) const {
  Releases known;
  for (const Acquired &one : acquired)
    if (races.knows(thread, one.thread, one.time))
      unite(known, one.releases);
  return known;
}

void WeakMemory::fence(uint32_t thread, bool acquires, bool releases) {
  ThreadState &state = states[thread];
  if (acquires && !state.observed.empty()) {
    acquired.push_back({thread, races.timeOf(thread), state.observed});
    state.observed.clear();
    show(acquired.back().releases);
  }
  if (!releases)
    return;
  state.fencedAt = races.timeOf(thread);
  this->releases.push_back(
      {static_cast<uint32_t>(blocks.size() - 1), races.knowledgeOf(thread)});
  state.released = knownTo(thread);
  state.released.push_back(static_cast<uint32_t>(this->releases.size() - 1));
}

/// Makes what other blocks released stand in memory, but for what this block
/// wrote itself.
void WeakMemory::show(const Releases &news) {
  std::vector<uint32_t> of;
  for (uint32_t number : news)
    of.push_back(releases[number].block);
  std::sort(of.begin(), of.end());
  of.erase(std::unique(of.begin(), of.end()), of.end());
  for (uint32_t block : of) {
    if (block + 1 == blocks.size())
      continue;
    for (const Piece &piece : blocks[block].pieces) {
      if (!covers(news, stamps[piece.stamp]))
        continue;
      for (size_t i = 0; i < piece.data.size(); ++i) {
        uintptr_t at = addressOf(piece.to + i);
        if (!pageOf(at).mine[at % kPage])
          piece.to[i] = piece.data[i];
      }
      shown.push_back({piece.to, piece.data.size()});
    }
  }
}

} // namespace tandem::emulator::kernel
