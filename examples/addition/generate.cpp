//===- generate.cpp - the data of the addition example --------------------===//
//
// addition-data DIR [--train N] [--eval N] [--seed N]
//
// Writes sums of two three-digit numbers, one token a character, as NumPy
// arrays: DIR/{train,eval}_{tokens,labels}.npy, i64 [N, 11]. README.md has the
// format. No pair of numbers of the eval files is in the train files, in
// neither order, and no row stands twice in a file. The same options give the
// same bytes on every machine.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr int Low = 100, High = 999;
/// The characters of the 13 tokens; '.' ends a sum of three digits.
constexpr std::string_view Alphabet = "0123456789+=.";
/// A sum is twelve characters long, `123+456=579.` or `999+999=1998`. The first
/// eleven are the tokens; the last one is only ever a label.
constexpr size_t Length = 11;
/// The place of '=', whose label is the first digit of the sum.
constexpr size_t Equals = 7;
constexpr int64_t Ignored = -1;

/// The splitmix64 generator: the same numbers with every standard library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  /// Returns a number below `n`; `n` is below 2^32.
  uint64_t below(uint64_t n) { return ((next() >> 32) * n) >> 32; }

private:
  uint64_t state;
};

using Pair = std::pair<int, int>;

/// Moves `count` elements, drawn at random without repetition, to the front.
void draw(std::vector<Pair> &pairs, size_t count, Random &random) {
  for (size_t i = 0; i < count; ++i)
    std::swap(pairs[i], pairs[i + random.below(pairs.size() - i)]);
}

/// The pairs (a, b) with a <= b.
std::vector<Pair> unorderedPairs() {
  std::vector<Pair> pairs;
  for (int a = Low; a <= High; ++a)
    for (int b = a; b <= High; ++b)
      pairs.emplace_back(a, b);
  return pairs;
}

/// Every pair of `pairs` from `first` on, in both orders.
std::vector<Pair> bothOrders(const std::vector<Pair> &pairs, size_t first) {
  std::vector<Pair> result;
  for (auto [a, b] : std::vector<Pair>(pairs.begin() + first, pairs.end())) {
    result.emplace_back(a, b);
    if (a != b)
      result.emplace_back(b, a);
  }
  return result;
}

using Row = std::array<int64_t, Length>;
struct Rows {
  std::vector<Row> tokens, labels;
};

/// The first `count` pairs as rows.
Rows encode(const std::vector<Pair> &pairs, size_t count) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    auto [a, b] = pairs[i];
    std::string text = std::to_string(a) + "+" + std::to_string(b) + "=" +
                       std::to_string(a + b) + ".";
    Row tokens, labels;
    for (size_t at = 0; at < Length; ++at) {
      tokens[at] = static_cast<int64_t>(Alphabet.find(text[at]));
      labels[at] = at < Equals
                       ? Ignored
                       : static_cast<int64_t>(Alphabet.find(text[at + 1]));
    }
    rows.tokens.push_back(tokens);
    rows.labels.push_back(labels);
  }
  return rows;
}

/// Writes an npy file (version 1.0, little-endian, C order) beside `path` and
/// renames it, so that no half-written file stays under that name.
bool writeNpy(const std::filesystem::path &path, const std::vector<Row> &rows) {
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows.size()) + ", " +
                       std::to_string(Length) + "), }";
  header.resize(128 - 10 - 1, ' '); // 10 bytes of magic before, '\n' after
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + "\n";
  for (const Row &row : rows)
    for (int64_t value : row)
      for (int shift = 0; shift < 64; shift += 8)
        bytes += static_cast<char>(static_cast<uint64_t>(value) >> shift);

  std::filesystem::path partial = path;
  partial += ".partial";
  std::ofstream file(partial, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file)
    std::filesystem::rename(partial, path, error);
  if (file && !error)
    return true;
  std::cerr << "addition-data: error: cannot write '" << path.string() << "'\n";
  std::filesystem::remove(partial, error);
  return false;
}

struct Options {
  std::string directory;
  std::map<std::string, uint64_t, std::less<>> numbers = {
      {"--train", 256000}, {"--eval", 5120}, {"--seed", 0}};
};

constexpr const char *Usage =
    "usage: addition-data DIR [--train N] [--eval N] [--seed N]\n"
    "writes train_tokens.npy, train_labels.npy, eval_tokens.npy and\n"
    "eval_labels.npy into DIR: N sums of two three-digit numbers each\n"
    "(defaults: 256000 to train, 5120 unseen ones to evaluate, seed 0)\n";

/// Reads `arguments`; says what is wrong with them, all of it, and returns
/// false if anything is.
bool parse(const std::vector<std::string> &arguments, Options &options) {
  std::string wrong;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], text;
    if (name.rfind("--", 0) != 0) {
      if (!options.directory.empty())
        wrong += "expected one directory but got '" + name + "' too\n";
      options.directory = options.directory.empty() ? name : options.directory;
      continue;
    }
    if (size_t at = name.find('='); at != std::string::npos) {
      text = name.substr(at + 1);
      name.resize(at);
    } else if (i + 1 < arguments.size()) {
      text = arguments[++i];
    }
    auto option = options.numbers.find(name);
    if (option == options.numbers.end()) {
      wrong += "unknown option '" + name + "'\n";
      continue;
    }
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, option->second);
    if (error != std::errc() || stop != end)
      wrong += "'" + name + "' expected a number but got '" + text + "'\n";
  }
  if (options.directory.empty())
    wrong += "expected a directory\n";
  if (wrong.empty())
    return true;
  std::cerr << "addition-data: error: " << wrong << Usage;
  return false;
}

bool inRange(const char *name, uint64_t value, uint64_t largest) {
  if (value >= 1 && value <= largest)
    return true;
  std::cerr << "addition-data: error: '" << name << "' expected 1 to "
            << largest << " but got " << value << "\n";
  return false;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find(arguments.begin(), arguments.end(), "--help") !=
      arguments.end()) {
    std::cout << Usage;
    return 0;
  }
  Options options;
  if (!parse(arguments, options))
    return 2;
  uint64_t train = options.numbers["--train"];
  uint64_t eval = options.numbers["--eval"];

  Random random(options.numbers["--seed"]);
  std::vector<Pair> pairs = unorderedPairs();
  // At least one pair is left to train on.
  if (!inRange("--eval", eval, pairs.size() - 1))
    return 2;
  draw(pairs, eval, random);
  std::vector<Pair> seen = bothOrders(pairs, eval);
  if (!inRange("--train", train, seen.size()))
    return 2;
  draw(seen, train, random);
  for (size_t i = 0; i < eval; ++i)
    if (random.below(2))
      std::swap(pairs[i].first, pairs[i].second);

  std::filesystem::path directory = options.directory;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  Rows seenRows = encode(seen, train), unseenRows = encode(pairs, eval);
  if (!writeNpy(directory / "train_tokens.npy", seenRows.tokens) ||
      !writeNpy(directory / "train_labels.npy", seenRows.labels) ||
      !writeNpy(directory / "eval_tokens.npy", unseenRows.tokens) ||
      !writeNpy(directory / "eval_labels.npy", unseenRows.labels))
    return 1;
  std::cout << train << " sums to train and " << eval
            << " unseen ones to evaluate in " << directory.string() << "\n";
  return 0;
}
