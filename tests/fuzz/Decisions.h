//===- Decisions.h - an input's bytes as the decisions of a program -------===//
//
// A target whose inputs are no files reads its bytes one by one: which call
// comes next, of which arguments. Where there are no more, every decision is
// the first choice.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_DECISIONS_H
#define TANDEM_TESTS_FUZZ_DECISIONS_H

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace tandem::fuzz {

class Decisions {
public:
  explicit Decisions(std::span<const uint8_t> bytes) : bytes(bytes) {}

  bool isOver() const { return at >= bytes.size(); }
  uint8_t byte() { return isOver() ? 0 : bytes[at++]; }

  /// A number below `limit`, of one byte, or of two where that is too few.
  size_t below(size_t limit) {
    size_t value = byte();
    if (limit > 256)
      value = value << 8 | byte();
    return limit ? value % limit : 0;
  }

  /// True for one decision in `of`.
  bool seldom(size_t of) { return below(of) == of - 1; }

  /// One of the elements, of which there is one.
  template <typename List> auto &oneOf(List &list) {
    return list[below(std::size(list))];
  }

private:
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

} // namespace tandem::fuzz

#endif
