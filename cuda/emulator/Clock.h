//===- Clock.h - what happened before what --------------------------------===//
//
// A lane is a sequence of operations that are ordered among themselves (a
// stream, the host, a chain of a graph's nodes); its operations have the ticks
// 1, 2, ... A clock says for each lane up to which tick its operations happen
// before the owner of the clock.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_CLOCK_H
#define TANDEM_CUDA_EMULATOR_CLOCK_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::emulator {

using Lane = uint32_t;
using Tick = uint32_t;

class Clock {
public:
  Tick at(Lane lane) const { return lane < ticks.size() ? ticks[lane] : 0; }

  /// True if the operation `tick` of `lane` happens before the owner.
  bool covers(Lane lane, Tick tick) const { return at(lane) >= tick; }

  void advance(Lane lane, Tick tick) {
    if (lane >= ticks.size())
      ticks.resize(lane + 1);
    ticks[lane] = std::max(ticks[lane], tick);
  }

  void join(const Clock &other) {
    if (other.ticks.size() > ticks.size())
      ticks.resize(other.ticks.size());
    for (size_t i = 0; i < other.ticks.size(); ++i)
      ticks[i] = std::max(ticks[i], other.ticks[i]);
  }

private:
  std::vector<Tick> ticks;
};

} // namespace tandem::emulator

#endif
