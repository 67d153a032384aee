//===- Shadow.cpp - who used which byte of memory -------------------------===//
#include "cuda/emulator/Shadow.h"

using namespace tandem::emulator;

/// Makes `at` a boundary between segments.
void Shadow::splitAt(uintptr_t at) {
  auto it = segments.upper_bound(at);
  if (it == segments.begin())
    return;
  --it;
  if (it->first == at || it->second.end <= at)
    return;
  Segment upper = it->second;
  it->second.end = at;
  segments.emplace_hint(std::next(it), at, std::move(upper));
}

void Shadow::addReader(Segment &segment, const Actor &actor) {
  std::erase_if(segment.readers, [&](const Use &use) {
    return actor.clock.covers(use.lane, use.tick);
  });
  segment.readers.push_back({actor.lane, actor.tick, actor.origin});
}

void Shadow::check(uintptr_t begin, uintptr_t end, bool isWrite,
                   const Clock &clock, const Race &race) const {
  auto it = segments.upper_bound(begin);
  if (it != segments.begin() && std::prev(it)->second.end > begin)
    --it;
  for (; it != segments.end() && it->first < end; ++it) {
    const auto &[at, segment] = *it;
    const Use &writer = segment.writer;
    if (writer.tick && !clock.covers(writer.lane, writer.tick))
      race(*writer.origin, std::max(at, begin), true);
    if (!isWrite)
      continue;
    for (const Use &reader : segment.readers)
      if (!clock.covers(reader.lane, reader.tick))
        race(*reader.origin, std::max(at, begin), false);
  }
}

void Shadow::read(uintptr_t begin, uintptr_t end, const Actor &actor,
                  const Race &race) {
  check(begin, end, /*isWrite=*/false, actor.clock, race);
  splitAt(begin);
  splitAt(end);
  const Use self{actor.lane, actor.tick, actor.origin};
  uintptr_t at = begin;
  for (auto it = segments.lower_bound(begin); at < end;) {
    if (it == segments.end() || it->first > at) { // a gap
      uintptr_t to = it == segments.end() ? end : std::min(end, it->first);
      it = std::next(segments.emplace_hint(it, at, Segment{to, Use(), {self}}));
      at = to;
      continue;
    }
    addReader(it->second, actor);
    at = it->second.end;
    ++it;
  }
  // Neighbours that have become the same are one again.
  auto it = segments.lower_bound(begin);
  while (it != segments.end()) {
    auto next = std::next(it);
    if (next == segments.end() || next->first >= end)
      break;
    if (it->second.end == next->first &&
        it->second.writer == next->second.writer &&
        it->second.readers == next->second.readers) {
      it->second.end = next->second.end;
      segments.erase(next);
    } else {
      it = next;
    }
  }
}

void Shadow::write(uintptr_t begin, uintptr_t end, const Actor &actor,
                   const Race &race) {
  check(begin, end, /*isWrite=*/true, actor.clock, race);
  forget(begin, end);
  segments.emplace(begin,
                   Segment{end, Use{actor.lane, actor.tick, actor.origin}, {}});
}

void Shadow::forget(uintptr_t begin, uintptr_t end) {
  splitAt(begin);
  splitAt(end);
  segments.erase(segments.lower_bound(begin), segments.lower_bound(end));
}
