//===- Overlap.cpp - do strided tensors share memory? ---------------------===//
//
// Elements i of a and j of b meet where a's first byte + sum(i * strides) +
// (a byte of the element) equals the same of b. Moved to one side, with every
// coefficient positive (an index is counted from its other end where its stride
// is negative), this is: is there x with 0 <= x[k] <= bound[k] and
// sum(coefficient[k] * x[k]) = target? A depth-first search over the
// coefficients, largest first, keeps only those x[k] that leave a rest which
// the others can reach, and which their greatest common divisor divides.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Overlap.h"

#include <algorithm>
#include <numeric>

namespace tandem::runtime {

namespace {

struct Term {
  int64_t coefficient, bound;
};

/// Sums are below 2^51: each tensor reaches at most 2^48 bytes.
class Equation {
public:
  /// Adds the term of an unknown in [0, bound]; a negative coefficient counts
  /// from the other end.
  void add(int64_t coefficient, int64_t bound) {
    if (coefficient == 0 || bound == 0)
      return;
    if (coefficient < 0) {
      target -= coefficient * bound;
      coefficient = -coefficient;
    }
    terms[count++] = {coefficient, bound};
  }

  void setTarget(int64_t value) { target += value; }

  /// True if there is a solution, or if the search is too long.
  bool hasSolution() {
    std::sort(terms.begin(), terms.begin() + count,
              [](const Term &a, const Term &b) {
                return a.coefficient > b.coefficient;
              });
    // Terms of one coefficient are one term.
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      if (kept && terms[kept - 1].coefficient == terms[i].coefficient)
        terms[kept - 1].bound += terms[i].bound;
      else
        terms[kept++] = terms[i];
    }
    count = kept;
    largest[count] = divisor[count] = 0;
    for (int i = count - 1; i >= 0; --i) {
      largest[i] = largest[i + 1] + terms[i].coefficient * terms[i].bound;
      divisor[i] = std::gcd(divisor[i + 1], terms[i].coefficient);
    }
    return search(0, target);
  }

private:
  bool search(int k, int64_t rest) {
    if (rest < 0 || rest > largest[k])
      return false;
    if (rest == 0)
      return true;
    if (k == count || rest % divisor[k] != 0)
      return false;
    auto [coefficient, bound] = terms[k];
    int64_t low = std::max<int64_t>(rest - largest[k + 1], 0);
    int64_t first = (low + coefficient - 1) / coefficient;
    int64_t last = std::min(rest / coefficient, bound);
    for (int64_t x = last; x >= first; --x) {
      if (++work > overlapWork)
        return true;
      if (search(k + 1, rest - coefficient * x))
        return true;
    }
    return false;
  }

  // Two tensors, and the bytes of an element of each.
  std::array<Term, 2 * maxRank + 2> terms;
  std::array<int64_t, 2 * maxRank + 3> largest, divisor;
  int count = 0;
  int64_t target = 0, work = 0;
};

} // namespace

AddressRange addressRange(const Tensor &tensor) {
  if (!tensor.elements() || !tensor.isBacked())
    return {};
  // A tensor's reach was checked when it was made.
  int64_t low = 0, high = 1;
  for (int i = 0; i < tensor.rank(); ++i) {
    int64_t step = (tensor.shape()[i] - 1) * tensor.strides()[i];
    (step < 0 ? low : high) += step;
  }
  auto first = reinterpret_cast<uintptr_t>(tensor.data());
  int64_t size = byteSize(tensor.dtype());
  return {first + low * size, first + high * size};
}

bool shareMemory(const Tensor &a, const Tensor &b) {
  if (!addressRange(a).meets(addressRange(b)))
    return false;
  if (a.isDense() && b.isDense())
    return true;
  Equation equation;
  int64_t aSize = byteSize(a.dtype()), bSize = byteSize(b.dtype());
  for (int i = 0; i < a.rank(); ++i)
    equation.add(a.strides()[i] * aSize, a.shape()[i] - 1);
  for (int i = 0; i < b.rank(); ++i)
    equation.add(-b.strides()[i] * bSize, b.shape()[i] - 1);
  equation.add(1, aSize - 1);
  equation.add(-1, bSize - 1);
  equation.setTarget(static_cast<const char *>(b.data()) -
                     static_cast<const char *>(a.data()));
  return equation.hasSolution();
}

bool overlapsItself(const Tensor &tensor) {
  if (tensor.isDense() || tensor.elements() <= 1)
    return false;
  // Strides that clear all that smaller ones reach are the usual case.
  std::array<Term, maxRank> dims;
  int count = 0;
  for (int i = 0; i < tensor.rank(); ++i)
    if (tensor.shape()[i] > 1)
      dims[count++] = {std::abs(tensor.strides()[i]), tensor.shape()[i] - 1};
  std::sort(dims.begin(), dims.begin() + count,
            [](const Term &a, const Term &b) {
              return a.coefficient < b.coefficient;
            });
  int64_t reach = 0;
  bool isClear = true;
  for (int i = 0; i < count; ++i) {
    isClear &= dims[i].coefficient > reach;
    reach += dims[i].coefficient * dims[i].bound;
  }
  if (isClear)
    return false;
  // Two elements meet if their indices differ by d with sum(d * stride) = 0;
  // let d[first] be the first that is not 0, and positive.
  for (int first = 0; first < count; ++first) {
    Equation equation;
    equation.add(dims[first].coefficient, dims[first].bound - 1);
    equation.setTarget(-dims[first].coefficient);
    if (dims[first].coefficient == 0)
      return true;
    for (int i = first + 1; i < count; ++i) {
      equation.add(dims[i].coefficient, dims[i].bound);
      equation.add(-dims[i].coefficient, dims[i].bound);
    }
    if (equation.hasSolution())
      return true;
  }
  return false;
}

} // namespace tandem::runtime
