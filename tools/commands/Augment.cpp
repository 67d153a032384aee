//===- Augment.cpp - images that are another each pass --------------------===//
#include "tools/commands/Augment.h"

#include "runtime/io/Array.h"
#include "tools/commands/Dataset.h"

#include <charconv>
#include <cstring>

namespace tandem::commands {

Result<Augmentation> Augmentation::parse(std::string_view text) {
  constexpr size_t none = std::string_view::npos;
  constexpr int64_t most = 4096;
  auto wrong = Status::usage("option '--augment' expected NAME:flip, "
                             "NAME:crop=N with N from 1 to 4096, or both as "
                             "NAME:flip,crop=N, but got " +
                             io::inQuotes(text));
  size_t colon = text.rfind(':');
  if (colon == none || colon == 0)
    return wrong;
  Augmentation made;
  made.name = text.substr(0, colon);
  made.text = text.substr(colon + 1);
  for (std::string_view rest = made.text;;) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    if (word == "flip" && !made.flips) {
      made.flips = true;
    } else if (word.starts_with("crop=") && made.pad == 0) {
      const char *end = word.data() + word.size();
      auto [stop, error] = std::from_chars(word.data() + 5, end, made.pad);
      if (error != std::errc() || stop != end || made.pad < 1 ||
          made.pad > most)
        return wrong;
    } else {
      return wrong;
    }
    if (comma == none)
      return made;
    rest.remove_prefix(comma + 1);
  }
}

void Augmentation::apply(std::span<std::byte> row, int64_t height,
                         int64_t width, int64_t bytes, uint64_t draw,
                         std::vector<std::byte> &scratch) const {
  bool isFlipped = flips && draw >> 63;
  // Windows of 2 * pad + 1 places, of bits that the flip does not take.
  auto side = uint64_t(2 * pad + 1);
  int64_t down = int64_t((draw & 0x7fffffff) % side) - pad;
  int64_t right = int64_t((draw >> 31 & 0x7fffffff) % side) - pad;
  if (!isFlipped && down == 0 && right == 0)
    return;
  scratch.assign(row.begin(), row.end());
  std::memset(row.data(), 0, row.size());
  int64_t lines = int64_t(row.size()) / (width * bytes);
  for (int64_t line = 0; line < lines; ++line) {
    int64_t from = line % height + down;
    if (from < 0 || from >= height)
      continue;
    const std::byte *source = scratch.data() + (line + down) * width * bytes;
    std::byte *to = row.data() + line * width * bytes;
    for (int64_t x = 0; x < width; ++x) {
      int64_t at = (isFlipped ? width - 1 - x : x) + right;
      if (at >= 0 && at < width)
        std::memcpy(to + x * bytes, source + at * bytes, size_t(bytes));
    }
  }
}

uint64_t drawOf(uint64_t seed, int64_t epoch, int64_t row) {
  return mix(mix(mix(seed + 1) ^ uint64_t(epoch)) ^ uint64_t(row));
}

} // namespace tandem::commands
