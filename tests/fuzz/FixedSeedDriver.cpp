//===- FixedSeedDriver.cpp - a fuzz target as an ordinary test ------------===//
//
// A main for an LLVMFuzzerTestOneInput that needs no libFuzzer:
//
//   DRIVER [--seed=N] [--seconds=N] [--last=FILE] ROUNDS SEED_FILE...
//   DRIVER [--seed=N] [--seconds=N] [--last=FILE] ROUNDS --any=BYTES
//
// runs the target on each seed, on each seed cut short, and on ROUNDS mutations
// drawn from a fixed-seed generator: bytes set, flipped, copied, inserted and
// removed, and boundary numbers written over a place. With --any inputs are any
// bytes, up to so many: those of a target that takes them as decisions. It
// prints the number of inputs; an input that crashes the target, or takes a
// minute, fails the test.
//
// tools/fuzz gives another seed, and a time in place of a number of rounds;
// FILE then has the input that is being run, so that it is there after a crash.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  Bytes any(size_t most) {
    Bytes bytes(1 + below(most));
    for (uint8_t &byte : bytes)
      byte = static_cast<uint8_t>(random());
    return bytes;
  }

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

  std::mt19937_64 random;
};

/// The file that has the input which is being run: mapped, so that an input
/// costs no call of the system.
class LastInput {
public:
  bool open(const char *path) {
    int file = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || ::ftruncate(file, kBytes) != 0)
      return false;
    void *mapped =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    place = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t *>(mapped);
    return place;
  }
  /// The size comes first, in 8 bytes.
  void write(const Bytes &bytes) {
    uint64_t size = std::min(bytes.size(), kBytes - sizeof(uint64_t));
    if (!place)
      return;
    std::memcpy(place, &size, sizeof size);
    if (size)
      std::memcpy(place + sizeof size, bytes.data(), size);
  }

private:
  static constexpr size_t kBytes = 1 << 20;
  uint8_t *place = nullptr;
} last;

/// Gives the target a copy of exactly the input's size, so that a sanitizer
/// sees each read past its end.
void runOn(const Bytes &bytes) {
  constexpr unsigned kSeconds = 60;
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  if (!bytes.empty())
    std::memcpy(exact.get(), bytes.data(), bytes.size());
  last.write(bytes);
  ::alarm(kSeconds);
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
  ::alarm(0);
}

struct Arguments {
  bool parse(int argc, char **argv) {
    std::vector<char *> rest;
    for (int i = 1; i < argc; ++i) {
      std::string_view word = argv[i];
      size_t value = word.find('=') + 1;
      if (word.starts_with("--seed="))
        seed = std::strtoull(argv[i] + value, nullptr, 10);
      else if (word.starts_with("--seconds="))
        seconds = std::strtod(argv[i] + value, nullptr);
      else if (word.starts_with("--any="))
        any = std::strtoull(argv[i] + value, nullptr, 10);
      else if (word.starts_with("--last="))
        isRight &= last.open(argv[i] + value);
      else
        rest.push_back(argv[i]);
    }
    isRight &= !rest.empty() && (rest.size() == 1) == (any > 0);
    for (size_t i = 0; isRight && i < rest.size(); ++i)
      isRight = i == 0 ? (rounds = std::strtol(rest[0], nullptr, 10)) > 0
                       : read(rest[i]);
    return isRight;
  }

  uint64_t seed = 20240229;
  double seconds = 0; ///< 0: `rounds`
  size_t any = 0;     ///< 0: mutations of seeds
  long rounds = 0;
  std::vector<Bytes> seeds;

private:
  bool read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
    if (file && !seeds.back().empty())
      return true;
    std::fprintf(stderr, "cannot read '%s'\n", path);
    return false;
  }
  bool isRight = true;
};

} // namespace

int main(int argc, char **argv) {
  Arguments given;
  if (!given.parse(argc, argv)) {
    std::fprintf(stderr,
                 "usage: %s [--seed=N] [--seconds=N] [--last=FILE] ROUNDS "
                 "SEED_FILE...|--any=BYTES\n",
                 argv[0]);
    return 2;
  }
  long count = 0;
  Mutator mutator(given.seed);
  for (const Bytes &seed : given.seeds) {
    runOn(seed);
    for (int i = 0; i < 64; ++i, ++count)
      runOn({seed.begin(), seed.begin() + static_cast<ptrdiff_t>(
                                              mutator.below(seed.size()))});
  }
  auto now = [] { return std::chrono::steady_clock::now(); };
  auto end = now() + std::chrono::duration<double>(given.seconds);
  for (long i = 0; given.seconds > 0 ? now() < end : i < given.rounds;
       ++i, ++count) {
    Bytes bytes;
    if (given.any) {
      bytes = mutator.any(given.any);
    } else {
      bytes = given.seeds[mutator.below(given.seeds.size())];
      mutator.mutate(bytes);
    }
    runOn(bytes);
  }
  std::printf("%ld inputs\n", count + static_cast<long>(given.seeds.size()));
  return 0;
}
