//===- Buckets.h - how much small sums of several ranks are together ------===//
//
// A bucket is what small all-reduces that follow each other are as one exchange
// (Exchanges.h). Here is what its size means, for the plan, which puts them
// side by side, and for the runtime, which joins them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_BUCKETS_H
#define TANDEM_RUNTIME_ARTIFACT_BUCKETS_H

#include <cstdint>

namespace tandem::artifact {

/// The bytes of one small sum at most. A larger one goes alone, since copying
/// it beside others costs as much as an exchange.
constexpr int64_t smallSumBytes(int64_t bucketBytes) { return bucketBytes / 4; }

/// The bytes of an exchange of several at most: sums wait until they fill a
/// bucket, but what is there anyway goes, too.
constexpr int64_t joinedSumBytes(int64_t bucketBytes) {
  return bucketBytes * 4;
}

} // namespace tandem::artifact

#endif
