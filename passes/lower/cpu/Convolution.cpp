//===- Convolution.cpp - convolutions as implicit matrix products ---------===//
//
// With P pixels of an image, R taps of the kernel, and all of it per group:
//   conv2d              C(filter, pixel of y)       = w(filter, k) x(k, pixel),
//                       k = (channel, tap)
//   conv2d_input_grad   C(channel, pixel of x)      = w(k, channel) dy(k,
//   pixel),
//                       k = (filter, tap)
//   conv2d_filter_grad  C(filter, (channel, tap))   = dy(filter, k) x(k, ...),
//                       k = (image, pixel of y)
// The code's dimensions are image, group, m, n, k0, k1 of the product. B is
// gathered from the image while it is packed (WindowPack.h), unless windows are
// single pixels side by side: then it is a matrix in place.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/cpu/GemmOperand.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/WindowPack.h"

#include "ir/ops/Convolution.h"
#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

namespace {
enum Dim : unsigned { Image, Group, M, N, K0, K1, Dims };

/// One of the three ops as a product.
struct ConvolutionProduct {
  Convolution2d conv;
  SmallVector<int64_t> sizes;      ///< of the dimensions
  unsigned aNumber, bNumber;       ///< which operand is which factor
  SmallVector<AffineExpr> a, b, y; ///< indices of the factors and the result
  WindowPack::Lanes lanes;         ///< what a line of B is
  int64_t lineLength;              ///< the last dimension of the result
};
} // namespace

static Convolution2d convolutionOf(Operation *op) {
  if (auto conv = dyn_cast<Conv2dOp>(op))
    return conv.getConvolution();
  if (auto conv = dyn_cast<Conv2dInputGradOp>(op))
    return conv.getConvolution();
  return cast<Conv2dFilterGradOp>(op).getConvolution();
}

static ConvolutionProduct productOf(Operation *op) {
  ConvolutionProduct p{convolutionOf(op), {}, 0, 0, {}, {}, {}, {}, 1};
  const Convolution2d &c = p.conv;
  const Window2d &w = c.window;
  SmallVector<AffineExpr> d;
  for (unsigned i = 0; i < Dims; ++i)
    d.push_back(getAffineDimExpr(i, op->getContext()));
  int64_t channels = c.channelsPerGroup(), filters = c.filtersPerGroup();
  int64_t taps = w.kernel[0] * w.kernel[1];
  int64_t outputs = w.output[0] * w.output[1];
  // Two dimensions of a plane, or of the taps, from one.
  auto split = [](AffineExpr flat, int64_t length, auto... before) {
    return SmallVector<AffineExpr>{before..., flat.floorDiv(length),
                                   flat % length};
  };
  AffineExpr filter = d[Group] * filters + d[M];
  bool isForward = isa<Conv2dOp>(op);
  if (isForward || isa<Conv2dInputGradOp>(op)) {
    int64_t rows = isForward ? filters : channels;
    int64_t planes = isForward ? channels : filters;
    const auto &grid = isForward ? w.output : w.input;
    const auto &seen = isForward ? w.input : w.output;
    p.sizes = {c.batch, c.groups, rows, grid[0] * grid[1], planes, taps};
    AffineExpr plane = d[K0], tap = d[K1];
    if (taps == 1) { // one loop over k
      std::swap(p.sizes[K0], p.sizes[K1]);
      std::swap(plane, tap);
    }
    p.aNumber = 1;
    p.a = isForward ? split(tap, w.kernel[1], filter, plane)
                    : split(tap, w.kernel[1], d[Group] * filters + plane, d[M]);
    p.b = split(d[N], seen[1], d[Image], d[Group] * planes + plane);
    p.y = split(d[N], grid[1], d[Image], d[Group] * rows + d[M]);
    p.lanes = isForward ? WindowPack::OutputPixels : WindowPack::InputPixels;
    p.lineLength = grid[1];
  } else {
    p.sizes = {1, c.groups, filters, channels * taps, c.batch, outputs};
    p.aNumber = 1;
    p.a = split(d[K1], w.output[1], d[K0], filter);
    p.b = split(d[K1], w.input[1], d[K0], d[Group] * channels + d[N]);
    p.y = split(d[N] % taps, w.kernel[1], filter, d[N].floorDiv(taps));
    p.lanes = WindowPack::Taps;
    p.lineLength = w.kernel[1];
  }
  return p;
}

/// Windows of one pixel, side by side, without padding.
static bool isPointwise(const Window2d &w) {
  return w.kernel == Window2d::Pair{1, 1} && w.stride == w.kernel &&
         w.input == w.output && w.before == Window2d::Pair{0, 0};
}

FailureOr<Work> cpu::emitConvolution(AnchorKernel &kernel) {
  Code &code = kernel.code;
  ConvolutionProduct p = productOf(kernel.anchor);
  auto type = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  Gemm gemm;
  gemm.M = p.sizes[M];
  gemm.N = p.sizes[N];
  gemm.K0 = p.sizes[K0];
  gemm.K1 = p.sizes[K1];
  gemm.lineLength = p.lineLength;
  gemm.type = scalar::computeType(type.getElementType());

  std::optional<unsigned> k0;
  if (gemm.K0 > 1)
    k0 = K0;
  GemmOperand a(kernel, p.aNumber, p.a, p.sizes, M, k0, K1);
  a.bindA(gemm);
  std::optional<GemmOperand> matrix;
  std::optional<WindowPack> windows;
  if (isPointwise(p.conv.window)) {
    matrix.emplace(kernel, p.bNumber, p.b, p.sizes, N, k0, K1);
    matrix->bindB(gemm);
  } else {
    windows.emplace(kernel, p.bNumber, p.conv, p.lanes);
    windows->bindB(gemm);
  }
  std::optional<Operand> output =
      kernel.directOutput(gemm.type, p.y, p.sizes, N);

  SmallVector<Value> at(Dims); // of the item
  auto indexOf = [&](Value row, Value line, Value column) {
    const Convolution2d &c = p.conv;
    auto inGroup = [&](int64_t count, Value i) {
      return code.add(code.mul(at[Group], count), i);
    };
    if (p.lanes == WindowPack::Taps) {
      int64_t height = c.window.kernel[0];
      return SmallVector<Value>{inGroup(c.filtersPerGroup(), row),
                                code.div(line, height), code.rem(line, height),
                                column};
    }
    int64_t rows = p.lanes == WindowPack::OutputPixels ? c.filtersPerGroup()
                                                       : c.channelsPerGroup();
    return SmallVector<Value>{at[Image], inGroup(rows, row), line, column};
  };
  if (output)
    gemm.store = [&](Code &code, Value row, int64_t i, Value column, Value sums,
                     Value mask) {
      SmallVector<Value> index(at);
      index[M] = row;
      index[N] = column;
      Value position = code.add(output->at(code, index), i * output->stride(M));
      code.store(sums, output->memref, position, mask);
    };
  else
    gemm.finish = [&](Code &, Value row, Value line, Value column, Value sum) {
      kernel.finish(indexOf(row, line, column), sum);
    };

  int64_t batches = p.sizes[Image] * p.sizes[Group];
  GemmSchedule schedule = scheduleGemm(gemm, kernel.target, batches);
  int64_t panels = schedule.panels(gemm), blocks = schedule.mBlocks(gemm);
  kernel.forEachItem([&](Value item) {
    Value batch = code.div(item, panels * blocks);
    Value part = code.rem(item, panels * blocks);
    at[Image] = code.div(batch, p.sizes[Group]);
    at[Group] = code.rem(batch, p.sizes[Group]);
    a.enter(at);
    if (matrix)
      matrix->enter(at);
    if (windows)
      windows->enter(at[Image], at[Group]);
    emitGemm(code, gemm, schedule, kernel.scratch, code.div(part, panels),
             code.rem(part, panels));
  });

  Work work;
  work.items = batches * blocks * panels;
  double columns = std::min(schedule.width(), gemm.N);
  double rows = std::min(schedule.mBlock, gemm.M);
  double k = static_cast<double>(gemm.K0) * gemm.K1;
  double bytes = elementBytes(type.getElementType()) *
                 (columns * k + rows * k + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * k, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}
