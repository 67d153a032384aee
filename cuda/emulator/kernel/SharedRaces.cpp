//===- SharedRaces.cpp - who touched which byte of shared memory ----------===//
#include "cuda/emulator/kernel/SharedRaces.h"

#include <algorithm>

namespace tandem::emulator::kernel {

SharedRaces::SharedRaces(uint32_t threads, size_t bytes, bool partial)
    : threads(threads), partial(partial), writes(bytes), reads(bytes),
      times(threads + 2, 1), knowledge(threads + 2), copyStamps(threads + 2) {}

void SharedRaces::forget() {
  std::fill(writes.begin(), writes.end(), 0);
  std::fill(reads.begin(), reads.end(), 0);
  std::fill(times.begin(), times.end(), 1);
  for (Clock &clock : knowledge)
    clock.clear();
  records.clear();
  transitions.clear();
  std::fill(copyStamps.begin(), copyStamps.end(), 0);
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
  if (!partial)
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
  if (!partial)
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
  if (!partial || clock.empty())
    return;
  Clock &mine = knowledge[thread];
  mine.resize(width());
  for (size_t i = 0; i < mine.size(); ++i)
    mine[i] = std::max(mine[i], clock[i]);
}

void SharedRaces::passToProxies(uint32_t thread) {
  if (!partial)
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

uint32_t SharedRaces::stampOf(uint32_t thread) {
  uint32_t time = partial ? times[thread] : base;
  uint32_t stamp = time << kThreadBits | thread;
  if (!isProxy(thread))
    return stamp;
  // No barrier makes a proxy's accesses known, so its stamps must not look like
  // those that one does.
  uint32_t i = thread - threads;
  if (time != proxyTime[i]) {
    proxyStamp[i] = intern({false, {stamp}});
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

uint32_t SharedRaces::withReader(uint32_t stamp, uint32_t mine,
                                 uint32_t thread) {
  if (stamp == 0 || ordered(thread, stamp))
    return mine;
  if (!partial)
    return base << kThreadBits | kMany;
  auto [it, isNew] = transitions.insert({{stamp, mine}, 0});
  if (isNew) {
    Record merged;
    auto add = [&](uint32_t one) {
      if (!ordered(thread, one))
        merged.stamps.push_back(one);
    };
    if (stamp & kRecord)
      for (uint32_t one : record(stamp)->stamps)
        add(one);
    else
      add(stamp);
    if (mine & kRecord)
      merged.stamps.push_back(record(mine)->stamps.front());
    else
      merged.stamps.push_back(mine);
    it->second = intern(std::move(merged));
  }
  return it->second;
}

Conflict SharedRaces::read(uint32_t thread, size_t offset, size_t bytes) {
  uint32_t mine = stampOf(thread), limit = base << kThreadBits;
  uint32_t *w = writes.data() + offset, *r = reads.data() + offset;
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
      if (!conflict.kind && !isSeen(thread, lastWrite))
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
  for (size_t i = 0; i < bytes; ++i) {
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
  std::fill(w, w + bytes, mine);
  std::fill(r, r + bytes, 0);
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
