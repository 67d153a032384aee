//===- AdaptivePooling.cpp - windows of a given number --------------------===//
//
// Window i of n is [floor(i * size / n), ceil((i + 1) * size / n)). Where sizes
// divide these are the windows of max_pool and avg_pool; otherwise each
// window's elements are taken by a table of their positions.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "compiler/functions/Formula.h"
#include "compiler/functions/Pooling.h"
#include "compiler/functions/Windows.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;
using tandem::functions::kMaxTable;
using tandem::functions::lookUp;

namespace {

struct Adaptive {
  SmallVector<int64_t> input, output;
  /// If all windows are of one size, and do not overlap: that size.
  SmallVector<int64_t> kernel;
  /// Otherwise the positions of each window's elements in the plane,
  /// row-major; all windows have `taps` of them, the last one repeated.
  SmallVector<int64_t> positions, counts;
  int64_t taps = 0;

  int64_t size() const { return counts.size(); }
};

} // namespace

static SmallVector<int64_t> product(ArrayRef<SmallVector<int64_t>> lists,
                                    ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> all = {0};
  for (auto [list, size] : llvm::zip(lists, sizes)) {
    SmallVector<int64_t> next;
    for (int64_t before : all)
      for (int64_t entry : list)
        next.push_back(before * size + entry);
    all = next;
  }
  return all;
}

static std::optional<Adaptive> adaptive(Call &call, int64_t dims) {
  int64_t low = dims ? dims + 2 : 3, high = dims ? dims + 2 : 5;
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, low, high)))
    return std::nullopt;
  Adaptive windows;
  windows.input.assign(call[0].shape().drop_front(2).begin(),
                       call[0].shape().end());
  auto output =
      windows::entries(call, "output_size", windows.input.size(), {}, 1);
  if (!output || call.failed())
    return std::nullopt;
  windows.output = *output;
  int64_t count = 1, taps = 1;
  bool divides = true;
  for (auto [in, out] : llvm::zip(windows.input, windows.output)) {
    divides &= in % out == 0;
    windows.kernel.push_back(in / out);
    if (count > kMaxTable / out || taps > kMaxTable / (in / out + 2)) {
      (void)call.fail("expected at most 2^24 elements in all windows");
      return std::nullopt;
    }
    count *= out;
    taps *= in / out + 2;
  }
  if (divides)
    return windows;
  if (count > kMaxTable / taps) {
    (void)call.fail("expected at most 2^24 elements in all windows");
    return std::nullopt;
  }
  SmallVector<SmallVector<int64_t>> each;
  for (int64_t place = 0; place < count; ++place) {
    SmallVector<SmallVector<int64_t>> lists(windows.input.size());
    int64_t rest = place;
    for (int64_t d = windows.input.size() - 1; d >= 0; --d) {
      int64_t in = windows.input[d], out = windows.output[d], i = rest % out;
      rest /= out;
      for (int64_t at = i * in / out; at < ((i + 1) * in + out - 1) / out; ++at)
        lists[d].push_back(at);
    }
    each.push_back(product(lists, windows.input));
    windows.counts.push_back(each.back().size());
    windows.taps = std::max<int64_t>(windows.taps, windows.counts.back());
  }
  for (SmallVector<int64_t> &list : each) {
    list.resize(windows.taps, list.back());
    windows.positions.append(list.begin(), list.end());
  }
  return windows;
}

/// What each window sees: [N, C, windows, taps].
static Expr takeWindows(Call &call, const Expr &x, const Adaptive &windows) {
  int64_t n = x.dim(0), c = x.dim(1);
  int64_t plane = functions::productOf(x.shape().drop_front(2));
  Expr table = x.reshape({n, c, plane}).permute({2, 0, 1});
  Expr positions =
      call.integersOf(call.builder.getI64Type(), {windows.size(), windows.taps},
                      windows.positions);
  Expr taken = call.op("take", {table, positions});
  return taken ? taken.permute({2, 3, 0, 1}) : taken;
}

static SmallVector<int64_t> adaptedShape(const Expr &x,
                                         const Adaptive &windows) {
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1)};
  shape.append(windows.output.begin(), windows.output.end());
  return shape;
}

static CallResults adaptiveAvgPool(Call &call, int64_t dims) {
  auto windows = adaptive(call, dims);
  if (!windows)
    return failure();
  Expr x = call[0];
  if (!windows->taps)
    return SmallVector<Value>{
        call.call("avg_pool", x.value, {call.ints("kernel", windows->kernel)})};
  Type type = composite::computeType(x.value);
  Expr taken = takeWindows(call, x.cast(type), *windows);
  if (!taken)
    return failure();
  SmallVector<double> weights, counts;
  for (int64_t count : windows->counts) {
    counts.push_back(static_cast<double>(count));
    for (int64_t tap = 0; tap < windows->taps; ++tap)
      weights.push_back(tap < count);
  }
  Expr isIn = call.numbersOf(type, {windows->size(), windows->taps}, weights)
                  .cast(call.builder.getI1Type())
                  .broadcastTo(taken.shape(), {2, 3});
  Expr sum = select(isIn, taken, taken.like(0)).reduceSum({3});
  Expr by = call.numbersOf(type, {windows->size()}, counts);
  Expr y = sum / by.broadcastTo(sum.shape(), {2});
  return SmallVector<Value>{
      y.reshape(adaptedShape(x, *windows)).cast(x.type().getElementType())};
}

static CallResults adaptiveMaxPool(Call &call, int64_t dims) {
  auto windows = adaptive(call, dims);
  if (!windows)
    return failure();
  Expr x = call[0];
  if (!windows->taps)
    return call.calls("max_pool", x.value,
                      {call.ints("kernel", windows->kernel)});
  Expr taken = takeWindows(call, x, *windows);
  if (!taken)
    return failure();
  SmallVector<Value> made = call.ops("max_pool2d", taken.value,
                                     {call.ints("kernel", {1, windows->taps})});
  if (made.empty())
    return failure();
  Expr index = lookUp(call, call.at(made[1]), windows->positions);
  if (!index)
    return failure();
  SmallVector<int64_t> shape = adaptedShape(x, *windows);
  return SmallVector<Value>{call.at(made[0]).reshape(shape),
                            index.reshape(shape)};
}

Expr functions::lookUp(Call &call, const Expr &index, ArrayRef<int64_t> table) {
  Expr values = call.integersOf(call.builder.getI64Type(),
                                {static_cast<int64_t>(table.size())}, table);
  return call.op("take", {values, index});
}

void functions::addAdaptivePooling(FunctionTable &table) {
  table.add("adaptive_avg_pool(x; output_size)",
            "the means of windows as even as can be, of any rank",
            [](Call &call) { return adaptiveAvgPool(call, 0); });
  table.add("adaptive_avg_pool1d(x; output_size)", "the same of [N, C, L]",
            [](Call &call) { return adaptiveAvgPool(call, 1); });
  table.add("adaptive_avg_pool2d(x; output_size)", "the same of [N, C, H, W]",
            [](Call &call) { return adaptiveAvgPool(call, 2); });
  table.add("adaptive_avg_pool3d(x; output_size)",
            "the same of [N, C, D, H, W]",
            [](Call &call) { return adaptiveAvgPool(call, 3); });
  table.add("adaptive_max_pool(x; output_size)",
            "the maxima of such windows, and where they were (i64)",
            [](Call &call) { return adaptiveMaxPool(call, 0); });
  table.add("adaptive_max_pool1d(x; output_size)", "the same of [N, C, L]",
            [](Call &call) { return adaptiveMaxPool(call, 1); });
  table.add("adaptive_max_pool2d(x; output_size)", "the same of [N, C, H, W]",
            [](Call &call) { return adaptiveMaxPool(call, 2); });
  table.add("adaptive_max_pool3d(x; output_size)",
            "the same of [N, C, D, H, W]",
            [](Call &call) { return adaptiveMaxPool(call, 3); });
}
