//===- FixedSeedDriver.cpp - a fuzz target as an ordinary test ------------===//
//
// A main for an LLVMFuzzerTestOneInput that needs no libFuzzer:
//
//   DRIVER ROUNDS SEED_FILE...
//
// runs the target on each seed, on each seed cut short, and on ROUNDS mutations
// drawn from a fixed-seed generator: bytes set, flipped, copied, inserted and
// removed, and boundary numbers written over a place. It prints the number of
// inputs; an input that crashes the target fails the test.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

class Mutator {
public:
  void mutate(Bytes &bytes) {
    // Mostly one change: several rarely pass the first checks.
    for (size_t count = below(3) ? 1 : 1 + below(4); count; --count)
      once(bytes);
  }

  size_t below(size_t limit) { return limit ? random() % limit : 0; }

private:
  void once(Bytes &bytes) {
    size_t at = below(bytes.size());
    auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
    size_t length = std::min<size_t>(1 + below(16), bytes.size() - at);
    switch (below(10)) {
    case 0:
      if (length)
        *place ^= static_cast<uint8_t>(1 << below(8));
      return;
    case 1:
      if (length)
        *place = static_cast<uint8_t>(random());
      return;
    case 2:
      bytes.erase(place, place + static_cast<ptrdiff_t>(length));
      return;
    case 3:
      bytes.insert(place, length, static_cast<uint8_t>(random()));
      return;
    case 4: {
      Bytes copy(place, place + static_cast<ptrdiff_t>(length));
      size_t to = below(bytes.size() + 1);
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(to), copy.begin(),
                   copy.end());
      return;
    }
    case 5:
      overwriteNumber(bytes, at);
      return;
    default:
      overwriteText(bytes, at);
    }
  }

  /// Writes a number that is hard to handle over the bytes at `at`.
  void overwriteNumber(Bytes &bytes, size_t at) {
    static constexpr uint64_t numbers[] = {0,
                                           1,
                                           63,
                                           64,
                                           0x7f,
                                           0xff,
                                           0x7fffffff,
                                           0xffffffff,
                                           uint64_t(1) << 40,
                                           uint64_t(1) << 48,
                                           INT64_MAX,
                                           uint64_t(1) << 63,
                                           UINT64_MAX - 4095,
                                           UINT64_MAX};
    uint64_t number = numbers[below(std::size(numbers))];
    size_t size = size_t(1) << below(4);
    if (at + size <= bytes.size())
      std::memcpy(bytes.data() + at, &number, size);
  }

  /// Returns the place of the first digits at or after `at`.
  static std::pair<size_t, size_t> digits(const Bytes &bytes, size_t at) {
    auto isDigit = [&](size_t i) { return bytes[i] >= '0' && bytes[i] <= '9'; };
    while (at < bytes.size() && !isDigit(at))
      ++at;
    size_t end = at;
    while (end < bytes.size() && isDigit(end))
      ++end;
    return {at, end};
  }

  /// Replaces the digits at or after `at` by a number that is hard to handle,
  /// or by one that stands elsewhere in the input and so may pass as right.
  void overwriteText(Bytes &bytes, size_t at) {
    static constexpr const char *texts[] = {"-1",
                                            "0",
                                            "1e308",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "18446744073709551615",
                                            "4611686018427387904",
                                            "65",
                                            "null",
                                            "[]"};
    std::string text = texts[below(std::size(texts))];
    if (below(2)) {
      auto [from, to] = digits(bytes, below(bytes.size()));
      text.assign(bytes.begin() + static_cast<ptrdiff_t>(from),
                  bytes.begin() + static_cast<ptrdiff_t>(to));
    }
    auto [begin, end] = digits(bytes, at);
    bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(begin),
                bytes.begin() + static_cast<ptrdiff_t>(end));
    bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(begin), text.begin(),
                 text.end());
  }

  std::mt19937_64 random{20240229};
};

/// Gives the target a copy of exactly the input's size, so that a sanitizer
/// sees each read past its end.
void runOn(const Bytes &bytes) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  if (!bytes.empty())
    std::memcpy(exact.get(), bytes.data(), bytes.size());
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ROUNDS SEED_FILE...\n", argv[0]);
    return 2;
  }
  long rounds = std::strtol(argv[1], nullptr, 10);
  std::vector<Bytes> seeds;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
    if (!file || seeds.back().empty()) {
      std::fprintf(stderr, "cannot read '%s'\n", argv[i]);
      return 2;
    }
  }
  long count = 0;
  Mutator mutator;
  for (const Bytes &seed : seeds) {
    runOn(seed);
    for (int i = 0; i < 64; ++i, ++count)
      runOn({seed.begin(), seed.begin() + static_cast<ptrdiff_t>(
                                              mutator.below(seed.size()))});
  }
  for (long i = 0; i < rounds; ++i, ++count) {
    Bytes bytes = seeds[mutator.below(seeds.size())];
    mutator.mutate(bytes);
    runOn(bytes);
  }
  std::printf("%ld inputs\n", count + static_cast<long>(seeds.size()));
  return 0;
}
