//===- Shadow.h - who used which byte of memory ---------------------------===//
//
// Of every byte of device and pinned memory: the last operation that wrote it,
// and those that read it since. An access that is not ordered after an earlier
// one, where one of the two writes, is a race, in whatever order the two were
// run: so every race is found under every schedule in which both run.
//
// Operations that happen before a later reader are not kept beside it: who is
// not ordered after them is not ordered after that one either.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_SHADOW_H
#define TANDEM_CUDA_EMULATOR_SHADOW_H

#include "cuda/emulator/Operation.h"

#include <functional>
#include <map>

namespace tandem::emulator {

class Shadow {
public:
  /// Who makes an access.
  struct Actor {
    const Clock &clock;
    Lane lane;
    Tick tick;
    OriginPtr origin;
  };
  /// Called with the earlier operation, the first byte, and whether the earlier
  /// one wrote.
  using Race =
      std::function<void(const Origin &earlier, uintptr_t at, bool wrote)>;

  void read(uintptr_t begin, uintptr_t end, const Actor &actor,
            const Race &race);
  void write(uintptr_t begin, uintptr_t end, const Actor &actor,
             const Race &race);
  /// Checks an access without making it.
  void check(uintptr_t begin, uintptr_t end, bool isWrite, const Clock &clock,
             const Race &race) const;
  /// Forgets all about these bytes.
  void forget(uintptr_t begin, uintptr_t end);
  void clear() { segments.clear(); }

private:
  struct Use {
    Lane lane = 0;
    Tick tick = 0; ///< 0: none
    OriginPtr origin;
    bool operator==(const Use &other) const {
      return lane == other.lane && tick == other.tick;
    }
  };
  struct Segment {
    uintptr_t end = 0;
    Use writer;
    std::vector<Use> readers;
  };
  using Segments = std::map<uintptr_t, Segment>;

  void splitAt(uintptr_t at);
  static void addReader(Segment &segment, const Actor &actor);

  Segments segments; ///< by first byte; they do not overlap
};

} // namespace tandem::emulator

#endif
