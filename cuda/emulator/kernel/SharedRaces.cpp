//===- SharedRaces.cpp - who touched which byte of shared memory ----------===//
#include "cuda/emulator/kernel/SharedRaces.h"

#include <algorithm>
#include <type_traits>

namespace tandem::emulator::kernel {

/// visit(bytes): most accesses are of one of these sizes, and with a size that
/// the compiler knows a loop over stamps is a few instructions.
template <typename Visit>
[[gnu::always_inline]] static inline auto withSize(size_t bytes, Visit visit) {
  switch (bytes) {
  case 2:
    return visit(std::integral_constant<size_t, 2>());
  case 4:
    return visit(std::integral_constant<size_t, 4>());
  case 8:
    return visit(std::integral_constant<size_t, 8>());
  case 16:
    return visit(std::integral_constant<size_t, 16>());
  case 32:
    return visit(std::integral_constant<size_t, 32>());
  default:
    return visit(bytes);
  }
}

static bool isAlike(const uint32_t *stamps, size_t bytes) {
  return withSize(bytes, [&](auto size) {
    uint32_t differences = 0;
    for (size_t i = 1; i < size; ++i)
      differences |= stamps[i] ^ stamps[0];
    return !differences;
  });
}

static void fill(uint32_t *stamps, size_t bytes, uint32_t stamp) {
  withSize(bytes, [&](auto size) { std::fill_n(stamps, size_t(size), stamp); });
}

SharedRaces::SharedRaces(uint32_t threads, size_t bytes, bool partial,
                         bool timed)
    : threads(threads), partial(partial), timed(timed || partial),
      writes(bytes), reads(bytes), times(threads + 2, 1),
      knowledge(threads + 2), copyStamps(threads + 2), seen(threads + 2) {}

void SharedRaces::forget() {
  std::fill(writes.begin(), writes.end(), 0);
  std::fill(reads.begin(), reads.end(), 0);
  std::fill(times.begin(), times.end(), 1);
  for (Clock &clock : knowledge)
    clock.clear();
  records.clear();
  transitions.clear();
  std::fill(copyStamps.begin(), copyStamps.end(), 0);
  std::fill(seen.begin(), seen.end(), 0);
  firstRecord = proxyTime[0] = proxyTime[1] = 0;
  past += now;
  now = base = blockBegan = 1;
}

void SharedRaces::tick() {
  if (++now > kLastTime)
    forget();
}

void SharedRaces::newBlock() {
  if (firstRecord + records.size() > kRecord / 2)
    forget();
  firstRecord += static_cast<uint32_t>(records.size());
  records.clear();
  transitions.clear();
  std::fill(copyStamps.begin(), copyStamps.end(), 0);
  std::fill(seen.begin(), seen.end(), 0);
  proxyTime[0] = proxyTime[1] = 0;
  for (Clock &clock : knowledge)
    clock.clear();
  tick();
  base = blockBegan = now;
  isAnyPassed = false;
  std::fill(times.begin(), times.end(), base);
}

void SharedRaces::barrier() {
  transitions.clear();
  tick();
  base = now;
  if (!timed)
    return;
  uint32_t known[2] = {};
  for (uint32_t t = 0; t < threads; ++t)
    for (uint32_t i = 0; i < 2 && !knowledge[t].empty(); ++i)
      known[i] = std::max(known[i], knowledge[t][threads + i]);
  Clock passed(isAnyPassed ? threads : 0);
  for (uint32_t t = 0; t < threads && isAnyPassed; ++t)
    for (uint32_t i = 0; i < threads && !knowledge[t].empty(); ++i)
      passed[i] = std::max(passed[i], knowledge[t][threads + 2 + i]);
  for (uint32_t t = 0; t < threads; ++t) {
    knowledge[t].clear();
    if (known[0] || known[1] || isAnyPassed) {
      knowledge[t].resize(width());
      knowledge[t][threads] = known[0];
      knowledge[t][threads + 1] = known[1];
      std::copy(passed.begin(), passed.end(),
                knowledge[t].begin() + threads + 2);
    }
    times[t] = base;
  }
}

void SharedRaces::release(uint32_t thread, Clock &clock) {
  if (!timed)
    return;
  clock.resize(width());
  const Clock &mine = knowledge[thread];
  for (size_t i = 0; i < mine.size(); ++i)
    clock[i] = std::max(clock[i], mine[i]);
  clock[thread] = std::max(clock[thread], times[thread]);
  tick();
  times[thread] = now;
}

void SharedRaces::acquire(uint32_t thread, const Clock &clock) {
  if (!timed || clock.empty())
    return;
  Clock &mine = knowledge[thread];
  mine.resize(width());
  for (size_t i = 0; i < mine.size(); ++i)
    mine[i] = std::max(mine[i], clock[i]);
}

void SharedRaces::passToProxies(uint32_t thread) {
  if (!timed)
    return;
  isAnyPassed = true;
  Clock &mine = knowledge[thread];
  mine.resize(width());
  for (uint32_t t = 0; t < threads; ++t) {
    uint32_t known = t == thread ? times[t] : std::max(mine[t], base - 1);
    mine[threads + 2 + t] = std::max(mine[threads + 2 + t], known);
  }
  tick();
  times[thread] = now;
}

SharedRaces::Knowledge SharedRaces::knowledgeOf(uint32_t thread) {
  Knowledge known{past + base, std::vector<uint64_t>(threads)};
  for (uint32_t t = 0; t < threads && !knowledge[thread].empty(); ++t)
    if (knowledge[thread][t])
      known.times[t] = past + knowledge[thread][t];
  known.times[thread] = timeOf(thread);
  tick();
  times[thread] = now;
  return known;
}

uint32_t SharedRaces::intern(Record record) {
  records.push_back(std::move(record));
  return kRecord | (firstRecord + static_cast<uint32_t>(records.size()) - 1);
}

const SharedRaces::Record *SharedRaces::record(uint32_t stamp) const {
  uint32_t index = stamp & ~kRecord;
  return index < firstRecord ? nullptr : &records[index - firstRecord];
}

/// No barrier makes a proxy's accesses known, so its stamps must not look like
/// those that one does.
uint32_t SharedRaces::proxyStampOf(uint32_t thread) {
  uint32_t time = partial ? times[thread] : base, i = thread - threads;
  if (time != proxyTime[i]) {
    proxyStamp[i] = intern({false, {time << kThreadBits | thread}});
    proxyTime[i] = time;
  }
  return proxyStamp[i];
}

bool SharedRaces::ordered(uint32_t thread, uint32_t stamp) const {
  if (stamp & kRecord) {
    const Record *several = record(stamp);
    if (!several)
      return true;
    return !several->copy &&
           std::all_of(several->stamps.begin(), several->stamps.end(),
                       [&](uint32_t one) { return ordered(thread, one); });
  }
  uint32_t other = stamp & kThreadMask, time = stamp >> kThreadBits;
  if (other == thread || (!isProxy(other) && time < base))
    return true;
  return other < threads + 2 && !knowledge[thread].empty() &&
         knowledge[thread][other] >= time;
}

/// Whether `thread` finds what was written then.
bool SharedRaces::isSeen(uint32_t thread, uint32_t write) const {
  if (!ordered(thread, write))
    return false;
  if (!isProxy(thread))
    return true;
  if (write & kRecord) {
    const Record *several = record(write);
    return !several ||
           std::all_of(several->stamps.begin(), several->stamps.end(),
                       [&](uint32_t one) { return isSeen(thread, one); });
  }
  uint32_t other = write & kThreadMask, time = write >> kThreadBits;
  return other >= threads || time < blockBegan ||
         (!knowledge[thread].empty() &&
          knowledge[thread][threads + 2 + other] >= time);
}

Conflict SharedRaces::conflictWith(uint32_t thread, uint32_t stamp,
                                   size_t offset, Conflict::Kind kind) const {
  Conflict conflict{kind, Conflict::kSeveral, offset};
  uint32_t other = stamp;
  if (stamp & kRecord) {
    const Record *several = record(stamp);
    if (several->copy)
      conflict.kind = Conflict::InFlight;
    for (uint32_t one : several->stamps)
      if (several->copy || !ordered(thread, one))
        other = one;
  } else if (kind != Conflict::WriteAfterRead && ordered(thread, stamp))
    conflict.kind = Conflict::NotPassed;
  uint32_t who = other & kThreadMask;
  if (who < kAtomic)
    conflict.thread = who;
  if (isProxy(who) && kind == Conflict::WriteAfterRead)
    conflict.kind = Conflict::AsyncRead;
  return conflict;
}

/// isSeen(), which is not asked again of the stamp that a thread saw last: what
/// it sees once, it sees from there on.
bool SharedRaces::seesWrite(uint32_t thread, uint32_t write) {
  if (write == seen[thread])
    return true;
  if (!isSeen(thread, write))
    return false;
  seen[thread] = write;
  return true;
}

uint32_t &SharedRaces::Transitions::operator()(uint32_t stamp, uint32_t mine) {
  if (2 * count >= entries.size())
    grow();
  size_t mask = entries.size() - 1;
  uint64_t hash = (uint64_t(stamp) << 32 | mine) * 0x9e3779b97f4a7c15u;
  for (size_t i = (hash >> 32) & mask;; i = (i + 1) & mask) {
    Entry &entry = entries[i];
    if (entry.generation != generation) {
      entry = {stamp, mine, 0, generation};
      ++count;
      return entry.next;
    }
    if (entry.stamp == stamp && entry.mine == mine)
      return entry.next;
  }
}

void SharedRaces::Transitions::clear() {
  count = 0;
  if (++generation == 0) { // all of an old one would be entries again
    std::fill(entries.begin(), entries.end(), Entry());
    generation = 1;
  }
}

void SharedRaces::Transitions::grow() {
  std::vector<Entry> old(std::max<size_t>(64, 2 * entries.size()));
  old.swap(entries);
  count = 0;
  for (const Entry &entry : old)
    if (entry.generation == generation)
      (*this)(entry.stamp, entry.mine) = entry.next;
}

/// The stamp of bytes that had `stamp` once `thread` has read them.
uint32_t SharedRaces::withReader(uint32_t stamp, uint32_t mine,
                                 uint32_t thread) {
  if (stamp == 0 || stamp == mine)
    return mine;
  if (!partial)
    return ordered(thread, stamp) ? mine : base << kThreadBits | kMany;
  // What was found once holds: who knows of `mine` will know of all that
  // `thread` knew when it released it.
  uint32_t &next = transitions(stamp, mine);
  if (next)
    return next;
  if (ordered(thread, stamp))
    return next = mine;
  Record merged;
  uint32_t last = mine & kRecord ? record(mine)->stamps.front() : mine;
  if (stamp & kRecord) {
    const std::vector<uint32_t> &several = record(stamp)->stamps;
    if (std::find(several.begin(), several.end(), last) != several.end())
      return next = stamp;
    for (uint32_t one : several)
      if (!ordered(thread, one))
        merged.stamps.push_back(one);
  } else {
    merged.stamps.push_back(stamp);
  }
  merged.stamps.push_back(last);
  return next = intern(std::move(merged));
}

Conflict SharedRaces::read(uint32_t thread, size_t offset, size_t bytes) {
  uint32_t mine = stampOf(thread), limit = base << kThreadBits;
  uint32_t *w = writes.data() + offset, *r = reads.data() + offset;
  if (!partial && !isProxy(thread)) {
    // A barrier of all is all that there is: who reads between two of them has
    // no order.
    uint32_t several = base << kThreadBits | kMany;
    bool isFine = withSize(bytes, [&](auto size) {
      bool isFine = true;
      for (size_t i = 0; i < size; ++i)
        isFine &= (w[i] < limit) | ((w[i] & (kRecord | kThreadMask)) == thread);
      for (size_t i = 0; i < size && isFine; ++i)
        r[i] = r[i] < limit || r[i] == mine ? mine : several;
      return isFine;
    });
    if (isFine)
      return {};
  } else if (isAlike(w, bytes) && isAlike(r, bytes) && !isProxy(thread) &&
             bytes &&
             (w[0] < limit || (w[0] & (kRecord | kThreadMask)) == thread ||
              seesWrite(thread, w[0]))) {
    fill(r, bytes, r[0] < limit ? mine : withReader(r[0], mine, thread));
    return {};
  }
  bool plain = !(mine & kRecord);
  for (size_t i = 0; i < bytes; ++i) {
    bool writeFine =
        (w[i] < limit) | ((w[i] & (kRecord | kThreadMask)) == thread);
    bool readFine = (r[i] < limit) | (r[i] == mine);
    plain &= writeFine & readFine;
  }
  if (plain) {
    std::fill(r, r + bytes, mine);
    return {};
  }
  Conflict conflict;
  uint32_t lastRead = 0, nextRead = mine, lastWrite = 0;
  for (size_t i = 0; i < bytes; ++i) {
    if (w[i] != lastWrite) {
      lastWrite = w[i];
      if (!conflict.kind && !seesWrite(thread, lastWrite))
        conflict = conflictWith(thread, lastWrite, offset + i,
                                Conflict::ReadAfterWrite);
    }
    if (r[i] != lastRead) {
      lastRead = r[i];
      nextRead = withReader(lastRead, mine, thread);
    }
    r[i] = nextRead;
  }
  return conflict;
}

Conflict SharedRaces::change(uint32_t thread, size_t offset, size_t bytes,
                             bool atomic) {
  uint32_t mine = stampOf(thread);
  uint32_t limit = (isProxy(thread) ? blockBegan : base) << kThreadBits;
  uint32_t *w = writes.data() + offset, *r = reads.data() + offset;
  Conflict conflict;
  uint32_t lastRead = 0, lastWrite = 0;
  size_t different =
      bytes && isAlike(w, bytes) && isAlike(r, bytes) ? 1 : bytes;
  for (size_t i = 0; i < different; ++i) {
    if (w[i] >= limit && w[i] != lastWrite) {
      lastWrite = w[i];
      bool bothAtomic =
          atomic && (lastWrite & (kRecord | kThreadMask)) == kAtomic;
      if (!conflict.kind && !bothAtomic && !isSeen(thread, lastWrite))
        conflict = conflictWith(thread, lastWrite, offset + i,
                                Conflict::WriteAfterWrite);
    }
    if (r[i] >= limit && r[i] != lastRead) {
      lastRead = r[i];
      if (!conflict.kind && !ordered(thread, lastRead))
        conflict = conflictWith(thread, lastRead, offset + i,
                                Conflict::WriteAfterRead);
    }
  }
  if (atomic)
    mine = (partial ? times[thread] : base) << kThreadBits | kAtomic;
  fill(w, bytes, mine);
  fill(r, bytes, 0);
  return conflict;
}

Conflict SharedRaces::write(uint32_t thread, size_t offset, size_t bytes) {
  return change(thread, offset, bytes, false);
}

Conflict SharedRaces::atomic(uint32_t thread, size_t offset, size_t bytes) {
  return change(thread, offset, bytes, true);
}

void SharedRaces::beginCopy(uint32_t thread, size_t offset, size_t bytes) {
  uint32_t &stamp = copyStamps[thread];
  if (!stamp)
    stamp = intern({true, {base << kThreadBits | thread}});
  std::fill_n(writes.begin() + offset, bytes, stamp);
}

void SharedRaces::endCopy(uint32_t thread, size_t offset, size_t bytes) {
  std::fill_n(writes.begin() + offset, bytes, stampOf(thread));
}

} // namespace tandem::emulator::kernel
