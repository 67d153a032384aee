//===- Pad.cpp - what is around a tensor ----------------------------------===//
//
// `pad` lists how many elements come before and after each dimension, the last
// dimension first; a negative number takes elements away.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {
/// How many elements come before and after each dimension.
struct Margins {
  List low, high;
};
} // namespace

static std::optional<Margins> marginsOf(Call &call) {
  int64_t rank = call[0].rank();
  List pad = call.integers("pad");
  if (pad.size() % 2 || int64_t(pad.size()) > 2 * rank) {
    (void)call.fail("expected 'pad' to have two entries for each of at most " +
                    Twine(rank) + " dimensions, but got " + infer::text(pad));
    return std::nullopt;
  }
  Margins margins{List(rank, 0), List(rank, 0)};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t dim = rank - 1 - int64_t(i), size = call[0].dim(dim);
    int64_t low = pad[2 * i], high = pad[2 * i + 1];
    bool fits = low <= kMaxElements && high <= kMaxElements && low >= -size &&
                high >= -size && size + low + high >= 0;
    if (!fits) {
      (void)call.fail("expected a size of at least 0 in dimension " +
                      Twine(dim) + ", but got " + Twine(size) + " and " +
                      infer::text({low, high}) + " around it");
      return std::nullopt;
    }
    margins.low[dim] = low;
    margins.high[dim] = high;
  }
  return margins;
}

/// Takes away where margins are negative; what is left of them is not.
static Expr cropped(Call &call, Expr x, Margins &margins) {
  for (int64_t d = 0, n = margins.low.size(); d < n; ++d) {
    int64_t low = std::max<int64_t>(0, -margins.low[d]);
    int64_t high = std::max<int64_t>(0, -margins.high[d]);
    if (!x)
      return x;
    x = sliced(call, x, d, low, x.dim(d) - low - high);
    margins.low[d] = std::max<int64_t>(0, margins.low[d]);
    margins.high[d] = std::max<int64_t>(0, margins.high[d]);
  }
  return x;
}

static CallResults constantPad(Call &call) {
  auto margins = marginsOf(call);
  if (!margins)
    return failure();
  Expr x = call[0];
  Expr number;
  if (call.has(1)) {
    if (failed(call.expectSameElements(0, 1)) ||
        failed(call.expectRank(1, 0, 0)))
      return failure();
    number = call[1];
  }
  double value = numberOf(call, "value", 0.0, x);
  if (call.failed())
    return failure();
  List low, high;
  for (int64_t d = 0; d < x.rank(); ++d) {
    low.push_back(std::max<int64_t>(0, margins->low[d]));
    high.push_back(std::max<int64_t>(0, margins->high[d]));
  }
  Expr y = padded(call, x, low, high, value);
  if (y && number) {
    Expr inside = padded(
        call, call.full(call.builder.getI1Type(), x.shape(), 1), low, high, 0);
    Expr around = call.stretch(number, y.shape());
    if (!inside || !around)
      return failure();
    y = select(inside, y, around);
  }
  Margins less = *margins;
  for (int64_t d = 0; d < x.rank(); ++d) {
    less.low[d] = std::min<int64_t>(0, less.low[d]);
    less.high[d] = std::min<int64_t>(0, less.high[d]);
  }
  return results({cropped(call, y, less)});
}

/// `x` with elements of its own around it: `source(i, size)` is the index of
/// the one at place i, which may be outside of [0, size).
template <typename Source>
static CallResults ownPad(Call &call, Source source) {
  auto margins = marginsOf(call);
  if (!margins)
    return failure();
  Expr x = cropped(call, call[0], *margins);
  for (int64_t d = 0; x && d < x.rank(); ++d) {
    int64_t low = margins->low[d], high = margins->high[d], size = x.dim(d);
    if (low == 0 && high == 0)
      continue;
    if (size == 0)
      return call.fail("expected elements to repeat in dimension " + Twine(d) +
                       ", but it has none");
    constexpr int64_t longest = int64_t(1) << 26; // its indices are listed
    if (size + low + high > longest ||
        productOf(with(x.shape(), d, size + low + high)) > kMaxElements)
      return call.fail("expected at most " + Twine(longest) +
                       " elements in dimension " + Twine(d) +
                       " and a tensor, but got " + Twine(size + low + high));
    List index;
    for (int64_t i = -low; i < size + high; ++i)
      index.push_back(source(i, size));
    x = picked(call, x, d, index);
  }
  return results({x});
}

static int64_t modulo(int64_t i, int64_t n) { return (i % n + n) % n; }

static CallResults reflectionPad(Call &call) {
  return ownPad(call, [](int64_t i, int64_t size) -> int64_t {
    if (size == 1)
      return 0;
    int64_t period = 2 * (size - 1), at = modulo(i, period);
    return at < size ? at : period - at;
  });
}
static CallResults replicationPad(Call &call) {
  return ownPad(call, [](int64_t i, int64_t size) {
    return std::clamp<int64_t>(i, 0, size - 1);
  });
}
static CallResults circularPad(Call &call) { return ownPad(call, modulo); }

void tandem::addPadFunctions(FunctionTable &table) {
  table.family("Pad");
  table.add("constant_pad(x, number?; pad, value=0.0)",
            "x with numbers around it; `pad` has before and after of each "
            "dimension, the last one first; negative takes away",
            constantPad);
  table.add("reflection_pad(x; pad)",
            "x with itself mirrored around it, its borders not repeated",
            reflectionPad);
  table.add("replication_pad(x; pad)", "x with its borders repeated around it",
            replicationPad);
  table.add("circular_pad(x; pad)", "x with itself repeated around it",
            circularPad);
}
