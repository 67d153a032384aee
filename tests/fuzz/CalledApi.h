//===- CalledApi.h - what every call of the C API promises ----------------===//
#ifndef TANDEM_TESTS_FUZZ_CALLEDAPI_H
#define TANDEM_TESTS_FUZZ_CALLEDAPI_H

#include "runtime/graph.h"
#include "tests/fuzz/Decisions.h"
#include "tests/fuzz/Fuzz.h"

#include <climits>
#include <cstring>
#include <string_view>
#include <thread>

namespace tandem::fuzz {

/// Looks at the end of a call: a status that there is, and a message exactly
/// where it failed. Returns whether it went well.
inline bool
wentWell(tdm_status status,
         std::source_location where = std::source_location::current()) {
  require(status >= TDM_OK && status <= TDM_NO_DEVICE, where);
  std::string_view message = tdm_last_error();
  require(message.empty() == (status == TDM_OK), where);
  for (unsigned char c : message)
    require((c >= 0x20 && c != 0x7f) || c == '\n', where);
  return status == TDM_OK;
}

/// Makes up to 200 of the calls that `all` lists, enough to see states follow
/// from each other.
template <typename Caller, size_t count>
void makeCalls(Caller &caller, Decisions &next,
               void (Caller::*const (&all)[count])()) {
  for (int calls = 0; calls < 200 && !next.isOver(); ++calls)
    (caller.*all[next.below(count)])();
}

/// Runs `body` on what `bytes` decide: on this thread, or with half of them on
/// this one and half on another.
template <typename Body>
void onOneThreadOrTwo(std::span<const uint8_t> bytes, Body body) {
  if (bytes.empty() || bytes[0] % 2 == 0) {
    body(Decisions(bytes));
    return;
  }
  size_t half = bytes.size() / 2;
  std::thread other([&] { body(Decisions(bytes.subspan(half))); });
  body(Decisions(bytes.subspan(1, half)));
  other.join();
}

/// A shape and strides of up to 17 sizes, of which the runtime takes 16.
struct HostileShape {
  explicit HostileShape(Decisions &next) {
    static constexpr int ranks[] = {1,  2,  0,       1,       2, 3,
                                    16, 17, INT_MAX, INT_MIN, -1};
    static constexpr int64_t numbers[] = {8,
                                          3,
                                          1,
                                          0,
                                          2,
                                          4,
                                          24,
                                          5,
                                          -1,
                                          INT64_MAX,
                                          INT64_MIN,
                                          int64_t(1) << 31,
                                          int64_t(1) << 47,
                                          int64_t(1) << 62};
    rank = next.oneOf(ranks);
    // Mostly small: of two hostile numbers the second is not met.
    size_t many = next.seldom(3) ? std::size(numbers) : 8;
    for (int d = 0; d < rank && d < kSizes; ++d) {
      shape[d] = numbers[next.below(many)];
      strides[d] = numbers[next.below(many)];
    }
    givesStrides = next.seldom(2);
  }

  const int64_t *stridesOrNull() const {
    return givesStrides ? strides : nullptr;
  }

  /// True if an element lies behind `bytes` bytes, which only the caller knows:
  /// such a shape is the caller's lie. One that no memory can hold is not.
  bool isLie(int64_t bytes, int64_t elementBytes) const {
    if (rank < 0 || rank >= kSizes)
      return false;
    __int128 last = 0, dense = 1;
    bool isEmpty = false;
    for (int d = rank - 1; d >= 0; --d) {
      if (shape[d] < 0 || (givesStrides && strides[d] < 0))
        return false;
      isEmpty |= shape[d] == 0;
      if (dense > kMany || last > kMany)
        return false; // no memory holds it
      last += __int128(shape[d] - 1) * (givesStrides ? strides[d] : dense);
      dense *= shape[d];
    }
    if (isEmpty || last > kMany)
      return false;
    __int128 extent = (last + 1) * elementBytes;
    return extent > bytes && extent <= kMany;
  }

  /// True if more than `most` elements could be made, and would take the memory
  /// of this machine.
  bool isLarge(int64_t most = 1 << 20) const {
    __int128 count = 1;
    for (int d = 0; d < rank && d < kSizes; ++d) {
      if (shape[d] < 0)
        return false;
      if (count > kMany)
        return false; // no memory holds it
      count *= shape[d];
    }
    return count > most && count <= kMany;
  }

  static constexpr int kSizes = 17;
  static constexpr __int128 kMany = __int128(1) << 48;
  int rank = 0;
  int64_t shape[kSizes] = {}, strides[kSizes] = {};
  bool givesStrides = false;
};

/// A type, or none.
inline tdm_dtype hostileType(Decisions &next) {
  static constexpr int types[] = {
      TDM_F32, TDM_F32, TDM_F64,    TDM_I64,      TDM_BOOL, TDM_BF16, TDM_F16,
      TDM_I8,  TDM_U64, TDM_F8E5M2, TDM_F8E4M3FN, -1,       15,       INT_MAX};
  return tdm_dtype(next.oneOf(types));
}

inline const char *hostileDevice(Decisions &next) {
  static constexpr const char *devices[] = {
      "cpu", "cpu", "cpu:0", "cpu:1", "", nullptr, "gpu", "cpu:99999999999"};
  return next.oneOf(devices);
}

} // namespace tandem::fuzz

#endif
