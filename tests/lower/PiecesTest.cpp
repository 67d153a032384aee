//===- PiecesTest.cpp - loops over what is put together from pieces -------===//
//
// What gradients of slices are: tensors padded to one size and added. Where a
// sum has the pieces' dimensions as one, it is cut again, and code stands for
// each piece.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include "llvm/ADT/StringExtras.h"

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

} // namespace
