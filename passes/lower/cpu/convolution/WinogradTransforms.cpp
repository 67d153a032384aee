//===- WinogradTransforms.cpp - the matrices of Winograd's F(4, 3) --------===//
#include "passes/lower/cpu/convolution/WinogradTransforms.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower::cpu::winograd;
using tandem::lower::Code;

namespace {
/// Arithmetic on one kind of value.
struct Numbers {
  Code &code;
  Type type;

  Numbers(Code &code, Value like) : code(code), type(like.getType()) {}

  Value constant(double c) const {
    Value number = code.number(getElementTypeOrSelf(type), c);
    auto vector = dyn_cast<VectorType>(type);
    return vector ? code.splat(number, vector.getDimSize(0)) : number;
  }
  Value times(double c, Value x) const {
    return arith::MulFOp::create(code.b, code.loc, constant(c), x);
  }
  Value add(Value x, Value y) const {
    return arith::AddFOp::create(code.b, code.loc, x, y);
  }
  Value sub(Value x, Value y) const {
    return arith::SubFOp::create(code.b, code.loc, x, y);
  }
  /// c * x + y
  Value fma(double c, Value x, Value y) const {
    return code.multiplyAdd(constant(c), x, y);
  }
};
} // namespace

// The points other than 0 and infinity are p and -p of these. What belongs to
// such a pair is the sum and the difference of an even and an odd part.
static constexpr double kFirst = 0.625, kSecond = 1.5;
static constexpr double square(double x) { return x * x; }

// Row p of B^T has the coefficients of the product of x - q over the other
// points q; the last those of the product over all.
Code::Values winograd::transformInput(Code &code, ValueRange d) {
  assert(d.size() == kPoints && "expected the elements of a tile");
  Numbers n(code, d[0]);
  constexpr double first = square(kFirst), second = square(kSecond);
  auto ends = [&](Value low, Value middle, Value high) {
    return n.fma(first * second, low, n.fma(-(first + second), middle, high));
  };
  Code::Values result{ends(d[0], d[2], d[4])};
  auto pair = [&](double p, double others) {
    Value even = n.fma(-others, d[2], d[4]);
    Value odd = n.fma(-others, d[1], d[3]);
    result.append({n.fma(p, odd, even), n.fma(-p, odd, even)});
  };
  pair(kFirst, second);
  pair(kSecond, first);
  result.push_back(ends(d[1], d[3], d[5]));
  return result;
}

// Row p of G has the powers of p, divided by the product of p - q over the
// other points q.
Code::Values winograd::transformTaps(Code &code, ValueRange g) {
  assert((g.size() == 3 || g.size() == 4) && "expected 3 or 4 taps");
  Numbers n(code, g[0]);
  constexpr double first = square(kFirst), second = square(kSecond);
  Code::Values result{n.times(1 / (first * second), g[0])};
  auto pair = [&](double p, double others) {
    double scale = 1 / (2 * square(p) * (square(p) - others));
    Value even = n.fma(square(p) * scale, g[2], n.times(scale, g[0]));
    Value odd = n.times(p * scale, g[1]);
    if (g.size() == 4)
      odd = n.fma(p * square(p) * scale, g[3], odd);
    result.append({n.add(even, odd), n.sub(even, odd)});
  };
  pair(kFirst, second);
  pair(kSecond, first);
  result.push_back(g.back());
  return result;
}

// Row k of A^T has the k-th powers of the points; the last also infinity.
Code::Values winograd::transformProducts(Code &code, ValueRange m,
                                         int64_t results) {
  assert(m.size() == kPoints && "expected a product for each point");
  Numbers n(code, m[0]);
  Value evenFirst = n.add(m[1], m[2]), oddFirst = n.sub(m[1], m[2]);
  Value evenSecond = n.add(m[3], m[4]), oddSecond = n.sub(m[3], m[4]);
  Code::Values y{n.add(m[0], n.add(evenFirst, evenSecond))};
  for (int64_t k = 1; k < results; ++k) {
    bool isOdd = k % 2 != 0;
    Value x = isOdd ? oddFirst : evenFirst;
    double p = std::pow(kFirst, k), q = std::pow(kSecond, k);
    Value rest = isOdd ? oddSecond : evenSecond;
    rest = k == results - 1 ? n.fma(q, rest, m[5]) : n.times(q, rest);
    y.push_back(n.fma(p, x, rest));
  }
  return y;
}

Code::Values winograd::transformSquare(Code &code, ValueRange x,
                                       Transform transform) {
  int64_t size = std::llround(std::sqrt(static_cast<double>(x.size())));
  SmallVector<Code::Values> rows;
  // Columns first: `rows` are of T x.
  for (int64_t j = 0; j < size; ++j) {
    Code::Values column;
    for (int64_t i = 0; i < size; ++i)
      column.push_back(x[i * size + j]);
    Code::Values made = transform(code, column);
    rows.resize(made.size());
    for (auto [i, value] : llvm::enumerate(made))
      rows[i].push_back(value);
  }
  Code::Values result;
  for (const Code::Values &row : rows)
    llvm::append_range(result, transform(code, row));
  return result;
}
