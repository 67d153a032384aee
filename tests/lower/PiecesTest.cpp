//===- PiecesTest.cpp - loops over what is put together from pieces -------===//
//
// What gradients of slices are: tensors padded to one size and added. Where a
// sum has the pieces' dimensions as one, it is cut again, and code stands for
// each piece. And what is concatenated: selects among padded tensors.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace tandem::test;

namespace {

using Sizes = std::vector<int64_t>;

std::string list(const Sizes &sizes) {
  return "[" +
         llvm::join(llvm::map_range(
                        sizes, [](int64_t n) { return std::to_string(n); }),
                    ", ") +
         "]";
}

std::string tensor(const Sizes &sizes) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

struct Pieces {
  int64_t count, batch, heads, time, width;
};

/// `%joined` of [batch * time, count * heads * width], from `%x0` and so on,
/// each of [1, batch, heads, time, width]; with the function's parameters.
std::string joined(const Pieces &p, std::string &parameters) {
  Sizes one{1, p.batch, p.heads, p.time, p.width}, all = one;
  all[0] = p.count;
  std::string text, sum;
  for (int64_t i = 0; i < p.count; ++i) {
    std::string n = std::to_string(i);
    parameters += (i ? ", x" : "x") + n + ": " + tensor(one);
    text += "%p" + n + " = tandem.pad %x" + n + " low " +
            list({i, 0, 0, 0, 0}) + " high " +
            list({p.count - 1 - i, 0, 0, 0, 0}) +
            " interior [0, 0, 0, 0, 0] with 0.0 : f32 : " + tensor(one) +
            " -> " + tensor(all) + "\n";
    if (i)
      text += "%s" + n + " = tandem.add " + sum + ", %p" + n + " : " +
              tensor(all) + "\n";
    sum = (i ? "%s" : "%p") + n;
  }
  std::string turned = tensor({p.batch, p.time, p.count, p.heads, p.width});
  return text + "%turned = tandem.permute " + sum +
         " by [1, 3, 0, 2, 4] : " + tensor(all) + " -> " + turned +
         "\n%joined = tandem.reshape %turned to " +
         list({p.batch * p.time, p.count * p.heads * p.width}) + " : " +
         turned + " -> " +
         tensor({p.batch * p.time, p.count * p.heads * p.width}) + "\n";
}

/// Widths that vectors divide, that they do not, and that are too short to cut.
const Pieces kCases[] = {{3, 2, 4, 8, 64}, {3, 1, 2, 33, 16}, {2, 2, 3, 5, 20},
                         {2, 3, 1, 7, 33}, {3, 2, 5, 9, 6},   {4, 1, 3, 40, 48},
                         {5, 2, 2, 6, 32}, {1, 2, 2, 6, 32}};

class Joined : public testing::TestWithParam<Pieces> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Joined, testing::ValuesIn(kCases));

TEST_P(Joined, Elements) {
  std::string parameters, body = joined(GetParam(), parameters);
  const Pieces &p = GetParam();
  std::string y = tensor({p.batch * p.time, p.count * p.heads * p.width});
  check(program(parameters + " -> " + y,
                body + "%y = tandem.exp %joined : " + y + "\nreturn %y : " + y),
        {.kernels = 1});
}

TEST_P(Joined, SumsOfColumns) {
  std::string parameters, body = joined(GetParam(), parameters);
  const Pieces &p = GetParam();
  std::string y = tensor({p.batch * p.time, p.count * p.heads * p.width});
  std::string sums = tensor({p.count * p.heads * p.width});
  check(program(parameters + " -> " + y + ", " + sums,
                body + "%sums = tandem.reduce_sum %joined over [0] : " + y +
                    " -> " + sums + "\nreturn %joined, %sums : " + y + ", " +
                    sums));
}

TEST_P(Joined, SumsOfRows) {
  std::string parameters, body = joined(GetParam(), parameters);
  const Pieces &p = GetParam();
  std::string y = tensor({p.batch * p.time, p.count * p.heads * p.width});
  std::string sums = tensor({p.batch * p.time});
  check(program(parameters + " -> " + y + ", " + sums,
                body + "%sums = tandem.reduce_sum %joined over [1] : " + y +
                    " -> " + sums + "\nreturn %joined, %sums : " + y + ", " +
                    sums),
        {.tolerance = 1e-5});
}

struct Concatenated {
  int64_t batch, inner;
  Sizes pieces;
  bool scales = true; ///< each channel, so that pieces are more than copied
  int64_t channels() const {
    return std::accumulate(pieces.begin(), pieces.end(), int64_t(0));
  }
  std::string type() const { return tensor({batch, channels(), inner}); }
};

/// `%all` of [batch, channels, inner], from `%x0` and so on, which have a part
/// of the channels each and are scaled, each channel by a number of its own.
std::string concatenated(const Concatenated &c, std::string &parameters) {
  int64_t channels = c.channels();
  std::string full = c.type();
  std::string whole = std::to_string(c.batch) + "x" + std::to_string(channels) +
                      "x" + std::to_string(c.inner);
  std::string text = "%i = tandem.iota dim 1 : tensor<" + whole + "xi32>\n";
  std::string next;
  int64_t end = channels;
  for (size_t k = c.pieces.size(); k-- > 0;) {
    std::string n = std::to_string(k);
    int64_t size = c.pieces[k], low = end - size;
    std::string piece = tensor({c.batch, size, c.inner});
    parameters = "x" + n + ": " + piece +
                 (c.scales ? ", s" + n + ": " + tensor({size}) : "") +
                 (parameters.empty() ? "" : ", ") + parameters;
    if (c.scales)
      text += "%b" + n + " = tandem.broadcast %s" + n + " to " +
              list({c.batch, size, c.inner}) +
              " along [1] : " + tensor({size}) + " -> " + piece + "\n%m" + n +
              " = tandem.mul %x" + n + ", %b" + n + " : " + piece + "\n";
    text +=
        "%p" + n + " = tandem.pad " + (c.scales ? "%m" : "%x") + n + " low " +
        list({0, low, 0}) + " high " + list({0, channels - end, 0}) +
        " interior [0, 0, 0] with 0.0 : f32 : " + piece + " -> " + full + "\n";
    if (next.empty()) {
      next = "%p" + n;
    } else {
      text += "%e" + n + " = tandem.constant dense<" + std::to_string(end) +
              "> : tensor<" + whole + "xi32>\n%c" + n +
              " = tandem.compare lt %i, %e" + n + " : tensor<" + whole +
              "xi32>\n%t" + n + " = tandem.select %c" + n + ", %p" + n + ", " +
              next + " : tensor<" + whole + "xi1>, " + full + "\n";
      next = "%t" + n;
    }
    end = low;
  }
  return text + "%all = tandem.relu " + next + " : " + full + "\n";
}

/// Pieces of one index and of many, more of them than code is written for, and
/// items that end within a piece; and pieces of one index that are only copied,
/// some of more between them.
const Concatenated kConcatenated[] = {
    {2, 33, {3, 5, 1}},
    {1, 49, {64, 32, 32}},
    {3, 1, {2, 7}},
    {2, 7, {1, 196}},
    {1, 300, {6, 40}},
    {2, 5, Sizes(31, 3)},
    {1, 17, Sizes(34, 2)},
    {1, 2000, {1, 1, 1}},
    {4, 9, {5, 3}},
    {1, 40, {1, 1, 4, 1, 1, 1, 1, 3, 1, 1}, false},
    {1, 33, {4, 1, 1, 1, 1, 1, 1, 2}, false},
    {3, 8, {1, 1, 1, 2, 1, 1, 1}, false},
    {1, 24, {8, 1, 9, 1, 1}, false},
};

class Concatenation : public testing::TestWithParam<Concatenated> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Concatenation,
                         testing::ValuesIn(kConcatenated));

TEST_P(Concatenation, Elements) {
  const Concatenated &c = GetParam();
  std::string parameters, body = concatenated(c, parameters);
  check(program(parameters + " -> " + c.type(),
                body + "return %all : " + c.type()));
}

/// Rows whose exponentials are saved for a second level.
TEST_P(Concatenation, SoftmaxOfRows) {
  const Concatenated &c = GetParam();
  std::string parameters, body = concatenated(c, parameters);
  std::string full = c.type(), kept = tensor({c.batch, c.channels()});
  std::string sizes = list({c.batch, c.channels(), c.inner});
  check(program(parameters + " -> " + full + ", " + kept,
                body + "%e = tandem.exp %all : " + full +
                    "\n%s = tandem.reduce_sum %e over [2] : " + full + " -> " +
                    kept + "\n%w = tandem.broadcast %s to " + sizes +
                    " along [0, 1] : " + kept + " -> " + full +
                    "\n%y = tandem.div %e, %w : " + full +
                    "\nreturn %y, %s : " + full + ", " + kept),
        {.tolerance = 1e-5});
}

/// Sums over the outermost dimension, and over what is concatenated itself.
TEST_P(Concatenation, SumsOfColumns) {
  const Concatenated &c = GetParam();
  for (int64_t over : {0, 1}) {
    std::string parameters, body = concatenated(c, parameters);
    std::string kept = over == 0 ? tensor({c.channels(), c.inner})
                                 : tensor({c.batch, c.inner});
    check(program(parameters + " -> " + kept,
                  body + "%s = tandem.reduce_sum %all over [" +
                      std::to_string(over) + "] : " + c.type() + " -> " + kept +
                      "\nreturn %s : " + kept),
          {.tolerance = 1e-5});
  }
}

} // namespace
