//===- CpuCaches.h - how much of a core's caches kernels reckon with ------===//
//
// Code is made for a level of instructions, which many processors have, so
// kernels reckon with caches that nearly all of these have: 32 KiB are near
// (the first level; 48 where there are tiles for matrices), and 512 KiB are a
// core's own (the second level), 1 MiB on most that have vectors of 512 bits.
// What a kernel takes of them is written as a share, which leaves room for what
// passes by. Panels of products are cut for 1 MiB on all processors, since
// their sizes decide how sums are cut, and results are the same on all. The
// last level is the machine's own, in the target (`cacheShare`, Target.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_TARGET_CPUCACHES_H
#define TANDEM_PASSES_TARGET_CPUCACHES_H

#include <cstdint>

namespace tandem::caches {

inline constexpr int64_t kFirst = 32 << 10;
inline constexpr int64_t kFirstWithTiles = 48 << 10;
inline constexpr int64_t kSecond = 512 << 10;
inline constexpr int64_t kSecondOfWide = 1 << 20;
/// Tensors from here on do not stay with a core, whatever it has.
inline constexpr int64_t kPast = 4 << 20;

} // namespace tandem::caches

#endif
