//===- Window.cpp - pooling -----------------------------------------------===//
//
// The item is a plane. Of small windows the taps of an output are written out
// one after the other, in loops over the outputs that have all of them inside
// of the input, so that these have no condition and can be vectors'; the few
// outputs at the edges have code of their own. Maxima are made line by line
// where they fill vectors (MaxPoolLines.h). Large windows are computed a row
// of outputs at a time, tap by tap: the row is in scratch, and the innermost
// loop runs over the outputs that see the input at this tap.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/MaxPoolLines.h"

#include "ir/ops/Scalar.h"
#include "ir/ops/Window.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// The most taps of a window, and the most outputs at an edge, that are written
/// out.
static constexpr int64_t kTaps = 25, kEdge = 3;

namespace {
/// A tap of a window.
struct Tap {
  int64_t h, w;
};

/// The emission of one pooling op.
class WindowEmitter {
public:
  explicit WindowEmitter(AnchorKernel &kernel)
      : kernel(kernel), code(kernel.code), zero(code.index(0)) {
    auto type = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
    element = scalar::computeType(type.getElementType());
    result = llvm::to_vector(type.getShape());
  }

  /// Takes the scratch that the anchor's code needs.
  void takeScratch();
  Work emit(double flopsPerPlane, llvm::function_ref<void()> plane);
  void maxPool(const Window2d &w);
  void maxPoolGrad(ArrayRef<int64_t> indexShape);
  void maxPoolTake(ArrayRef<int64_t> inputShape);
  void avgPool(const Window2d &w, bool countPadding);
  void avgPoolGrad(const Window2d &w, bool countPadding);

private:
  struct Range {
    Value low, high;
  };
  /// The outputs whose tap is inside of the input, in direction `d`.
  Range outputsAt(const Window2d &w, int d, Value tap);
  /// How many taps of an output are inside of the input.
  Value countTaps(const Window2d &w, int d, Value output);
  /// What the sum of window (oh, ow) is divided by.
  Value divisor(const Window2d &w, bool countPadding, Value oh, Value ow);
  /// out * stride - before + tap * dilation
  Value inputAt(const Window2d &w, int d, Value out, Value tap) {
    return code.add(
        code.add(code.mul(out, w.stride[d]), code.mul(tap, w.dilation[d])),
        -w.before[d]);
  }
  /// Calls `body` for each tap of the rows that see the input at output row
  /// `oh`, with the input's row and the outputs that see it.
  void forEachTap(const Window2d &w, Value oh,
                  llvm::function_ref<void(Value h, Value kw, Range ow)> body);
  /// The element of an operand [N, C, H, W] in the item's plane.
  Value load(unsigned number, ArrayRef<int64_t> shape, Value h, Value w);
  using Output = llvm::function_ref<void(Value oh, Value ow, ArrayRef<Tap>)>;
  /// Whether the taps of each output are written out.
  static bool isWrittenOut(const Window2d &w);
  /// Calls `body` with the taps that are inside for each output, which is that
  /// of a loop or known, where they are written out.
  void forEachOutput(const Window2d &w, Output body);
  /// Calls `body` for each line of outputs and the taps of it that are inside.
  using Line = llvm::function_ref<void(Value out, ArrayRef<int64_t> taps)>;
  void along(const Window2d &w, int d, Line body);
  /// The input's element at a tap of an output, and its position in the plane.
  Value loadTap(const Window2d &w, Value oh, Value ow, Tap tap);
  Value positionOf(const Window2d &w, Value oh, Value ow, Tap tap);
  void forRange(Value high, llvm::function_ref<void(Value)> body) {
    code.loop(zero, high, 1, body);
  }
  Value take(Value memref, Value at) {
    return memref::LoadOp::create(code.b, code.loc, memref, at);
  }
  void put(Value x, Value memref, Value at) {
    memref::StoreOp::create(code.b, code.loc, x, memref, at);
  }

  AnchorKernel &kernel;
  Code &code;
  Value zero;
  Type element; ///< in which elements are computed
  SmallVector<int64_t> result;
  Value image, channel;
  // Where outputs are computed tap by tap: the values of a row, and of maxima
  // their positions; the plane that a maximum's gradient is summed in.
  Value row, positions, planeSums;
  std::optional<MaxPoolLines> lines;
};
} // namespace

static Value add(Code &code, Value x, Value y) {
  return scalar::add(code.b, code.loc, x, y);
}

/// The outputs [low, high) in direction `d` all of whose taps are inside.
static std::pair<int64_t, int64_t> insideOf(const Window2d &w, int d) {
  int64_t last =
      w.input[d] - 1 + w.before[d] - (w.kernel[d] - 1) * w.dilation[d];
  int64_t high = last < 0 ? 0 : std::min(last / w.stride[d] + 1, w.output[d]);
  int64_t low =
      llvm::divideCeil(std::max<int64_t>(w.before[d], 0), w.stride[d]);
  return {std::min(low, high), high};
}

void WindowEmitter::takeScratch() {
  Operation *op = kernel.anchor;
  auto take = [&](int64_t size, Type type) {
    return kernel.scratch.take(code, {size}, type);
  };
  if (auto pool = dyn_cast<MaxPool2dOp>(op)) {
    Window2d w = pool.getWindow();
    if (isWrittenOut(w)) {
      auto [low, high] = insideOf(w, 1);
      lines.emplace(kernel, w, low, high);
      if (lines->fits())
        lines->takeScratch();
      return;
    }
    row = take(w.output[1], element);
    positions = take(w.output[1], code.b.getI32Type());
  } else if (isa<MaxPool2dGradOp>(op)) {
    planeSums = take(result[2] * result[3], element);
  } else if (auto pool = dyn_cast<AvgPool2dOp>(op)) {
    if (Window2d w = pool.getWindow(); !isWrittenOut(w))
      row = take(w.output[1], element);
  } else if (auto pool = dyn_cast<AvgPool2dGradOp>(op)) {
    row = take(pool.getWindow().input[1], element);
  }
}

Work WindowEmitter::emit(double flopsPerPlane,
                         llvm::function_ref<void()> plane) {
  takeScratch();
  kernel.forEachItem([&](Value item) {
    image = code.div(item, result[1]);
    channel = code.rem(item, result[1]);
    plane();
  });
  Work work;
  work.items = result[0] * result[1];
  double bytes = 0;
  for (Type type : kernel.anchor->getOperandTypes())
    bytes += byteSize(cast<RankedTensorType>(type));
  for (Type type : kernel.anchor->getResultTypes())
    bytes += byteSize(cast<RankedTensorType>(type));
  work.grain = grainFor(work.items, flopsPerPlane, bytes / work.items);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

WindowEmitter::Range WindowEmitter::outputsAt(const Window2d &w, int d,
                                              Value tap) {
  int64_t stride = w.stride[d];
  Value shift = code.sub(code.index(w.before[d]), code.mul(tap, w.dilation[d]));
  // output * stride >= shift, and <= shift + input - 1
  Value low = code.div(code.add(code.max(zero, shift), stride - 1), stride);
  Value last = code.add(shift, w.input[d] - 1 + stride);
  Value high = code.div(code.max(zero, last), stride);
  return {low, code.min(high, w.output[d])};
}

Value WindowEmitter::countTaps(const Window2d &w, int d, Value output) {
  int64_t dilation = w.dilation[d];
  Value shift =
      code.sub(code.index(w.before[d]), code.mul(output, w.stride[d]));
  Value low = code.div(code.add(code.max(zero, shift), dilation - 1), dilation);
  Value last = code.add(shift, w.input[d] - 1 + dilation);
  Value high = code.div(code.max(zero, last), dilation);
  return code.max(zero, code.sub(code.min(high, w.kernel[d]), low));
}

Value WindowEmitter::divisor(const Window2d &w, bool countPadding, Value oh,
                             Value ow) {
  if (countPadding)
    return code.number(element, static_cast<double>(w.kernel[0] * w.kernel[1]));
  Value count = code.mul(countTaps(w, 0, oh), countTaps(w, 1, ow));
  Value integer =
      arith::IndexCastOp::create(code.b, code.loc, code.b.getI32Type(), count);
  return arith::SIToFPOp::create(code.b, code.loc, element, integer);
}

void WindowEmitter::forEachTap(
    const Window2d &w, Value oh,
    llvm::function_ref<void(Value, Value, Range)> body) {
  forRange(code.index(w.kernel[0]), [&](Value kh) {
    Value h = inputAt(w, 0, oh, kh);
    code.when(code.below(h, w.input[0]), [&] {
      forRange(code.index(w.kernel[1]),
               [&](Value kw) { body(h, kw, outputsAt(w, 1, kw)); });
    });
  });
}

Value WindowEmitter::load(unsigned number, ArrayRef<int64_t> shape, Value h,
                          Value w) {
  SmallVector<AffineExpr> index = dimensions(code.b.getContext(), 4);
  return kernel.element(number, index, {image, channel, h, w}, shape);
}

/// The taps that are inside of output `out` in direction `d`.
static SmallVector<int64_t> tapsOf(const Window2d &w, int d, int64_t out) {
  SmallVector<int64_t> taps;
  for (int64_t tap = 0; tap < w.kernel[d]; ++tap) {
    int64_t at = out * w.stride[d] - w.before[d] + tap * w.dilation[d];
    if (at >= 0 && at < w.input[d])
      taps.push_back(tap);
  }
  return taps;
}

bool WindowEmitter::isWrittenOut(const Window2d &w) {
  for (int d : {0, 1})
    if (auto [low, high] = insideOf(w, d);
        low == high || low > kEdge || w.output[d] - high > kEdge)
      return false;
  return w.kernel[0] * w.kernel[1] <= kTaps;
}

/// The edges, and the middle by the first output of it.
void WindowEmitter::along(const Window2d &w, int d, Line body) {
  auto [low, high] = insideOf(w, d);
  for (int64_t at = 0; at < low; ++at)
    body(code.index(at), tapsOf(w, d, at));
  code.loop(code.index(low), code.index(high), 1,
            [&, low = low](Value at) { body(at, tapsOf(w, d, low)); });
  for (int64_t at = high; at < w.output[d]; ++at)
    body(code.index(at), tapsOf(w, d, at));
}

static SmallVector<Tap> crossing(ArrayRef<int64_t> rows,
                                 ArrayRef<int64_t> columns) {
  SmallVector<Tap> taps;
  for (int64_t row : rows)
    for (int64_t column : columns)
      taps.push_back({row, column});
  return taps;
}

void WindowEmitter::forEachOutput(const Window2d &w, Output body) {
  along(w, 0, [&](Value oh, ArrayRef<int64_t> rows) {
    along(w, 1, [&](Value ow, ArrayRef<int64_t> columns) {
      body(oh, ow, crossing(rows, columns));
    });
  });
}

Value WindowEmitter::loadTap(const Window2d &w, Value oh, Value ow, Tap tap) {
  auto shape =
      cast<RankedTensorType>(kernel.anchor->getOperand(0).getType()).getShape();
  return load(0, shape, inputAt(w, 0, oh, code.index(tap.h)),
              inputAt(w, 1, ow, code.index(tap.w)));
}

Value WindowEmitter::positionOf(const Window2d &w, Value oh, Value ow,
                                Tap tap) {
  return arith::IndexCastOp::create(
      code.b, code.loc, code.b.getI32Type(),
      code.add(code.mul(inputAt(w, 0, oh, code.index(tap.h)), w.input[1]),
               inputAt(w, 1, ow, code.index(tap.w))));
}

//===----------------------------------------------------------------------===//
// Maxima
//===----------------------------------------------------------------------===//

void WindowEmitter::maxPool(const Window2d &w) {
  auto shape =
      cast<RankedTensorType>(kernel.anchor->getOperand(0).getType()).getShape();
  Type integer = code.b.getI32Type();
  Value least = code.number(element, -std::numeric_limits<double>::infinity());
  Value nowhere = code.number(integer, -1);
  Value none = code.number(integer, 0);
  auto maximum = [&](Value oh, Value ow, ArrayRef<Tap> taps) {
    Value best = least, where = nowhere;
    for (Tap tap : taps) {
      Value x = loadTap(w, oh, ow, tap), at = positionOf(w, oh, ow, tap);
      bool isFirst = where == nowhere;
      Value takes = isFirst ? Value() : isAbove(code, x, best);
      best = isFirst ? x : code.select(takes, x, best);
      where = isFirst ? at : code.select(takes, at, where);
    }
    return std::pair(best, where);
  };
  if (lines && lines->fits()) {
    auto [low, high] = insideOf(w, 1);
    return along(
        w, 0, [&, low = low, high = high](Value oh, ArrayRef<int64_t> rows) {
          for (int64_t ow = 0; ow < w.output[1]; ++ow)
            if (ow < low || ow >= high) {
              auto [best, where] =
                  maximum(oh, code.index(ow), crossing(rows, tapsOf(w, 1, ow)));
              lines->set(code.index(ow), best, where);
            }
          lines->emit(image, channel, oh, rows);
          forRange(code.index(w.output[1]), [&](Value ow) {
            auto [best, where] = lines->get(ow);
            kernel.finish({image, channel, oh, ow}, {best, where});
          });
        });
  }
  if (isWrittenOut(w))
    return forEachOutput(w, [&](Value oh, Value ow, ArrayRef<Tap> taps) {
      auto [best, where] = maximum(oh, ow, taps);
      kernel.finish({image, channel, oh, ow}, {best, where});
    });
  Value best = row, where = positions;
  forRange(code.index(w.output[0]), [&](Value oh) {
    forRange(code.index(w.output[1]), [&](Value ow) {
      put(least, best, ow);
      put(nowhere, where, ow);
    });
    forEachTap(w, oh, [&](Value h, Value kw, Range outputs) {
      code.loop(outputs.low, outputs.high, 1, [&](Value ow) {
        Value at = inputAt(w, 1, ow, kw);
        Value x = load(0, shape, h, at);
        Value old = take(best, ow), oldWhere = take(where, ow);
        Value isFirst = arith::CmpIOp::create(
            code.b, code.loc, arith::CmpIPredicate::slt, oldWhere, none);
        Value takes = code.either(isFirst, isAbove(code, x, old));
        Value position = arith::IndexCastOp::create(
            code.b, code.loc, integer, code.add(code.mul(h, w.input[1]), at));
        put(code.select(takes, x, old), best, ow);
        put(code.select(takes, position, oldWhere), where, ow);
      });
    });
    forRange(code.index(w.output[1]), [&](Value ow) {
      kernel.finish({image, channel, oh, ow},
                    {take(best, ow), take(where, ow)});
    });
  });
}

/// The plane is summed in scratch: what several indices name is rounded once.
void WindowEmitter::maxPoolGrad(ArrayRef<int64_t> indexShape) {
  int64_t height = result[2], width = result[3];
  Value plane = planeSums;
  Value nothing = code.number(element, 0);
  forRange(code.index(height * width),
           [&](Value i) { put(nothing, plane, i); });
  forRange(code.index(indexShape[2]), [&](Value oh) {
    forRange(code.index(indexShape[3]), [&](Value ow) {
      Value at = arith::IndexCastOp::create(
          code.b, code.loc, code.b.getIndexType(), load(1, indexShape, oh, ow));
      code.when(code.below(at, height * width), [&] {
        Value dy = load(0, indexShape, oh, ow);
        put(add(code, take(plane, at), dy), plane, at);
      });
    });
  });
  forRange(code.index(height), [&](Value h) {
    forRange(code.index(width), [&](Value w) {
      Value sum = take(plane, code.add(code.mul(h, width), w));
      kernel.finish({image, channel, h, w}, sum);
    });
  });
}

void WindowEmitter::maxPoolTake(ArrayRef<int64_t> shape) {
  forRange(code.index(result[2]), [&](Value oh) {
    forRange(code.index(result[3]), [&](Value ow) {
      Value at = arith::IndexCastOp::create(
          code.b, code.loc, code.b.getIndexType(), load(1, result, oh, ow));
      Value inside = code.below(at, shape[2] * shape[3]);
      Value safe = code.select(inside, at, zero);
      Value x =
          load(0, shape, code.div(safe, shape[3]), code.rem(safe, shape[3]));
      kernel.finish({image, channel, oh, ow},
                    code.select(inside, x, code.number(element, 0)));
    });
  });
}

//===----------------------------------------------------------------------===//
// Means
//===----------------------------------------------------------------------===//

void WindowEmitter::avgPool(const Window2d &w, bool countPadding) {
  auto shape =
      cast<RankedTensorType>(kernel.anchor->getOperand(0).getType()).getShape();
  Value nothing = code.number(element, 0);
  auto emitOutput = [&](Value oh, Value ow, ArrayRef<Tap> taps) {
    Value sum = nothing;
    for (Tap tap : taps)
      sum = add(code, sum, loadTap(w, oh, ow, tap));
    auto count = static_cast<double>(countPadding ? w.kernel[0] * w.kernel[1]
                                                  : taps.size());
    Value mean =
        scalar::div(code.b, code.loc, sum, code.number(element, count));
    kernel.finish({image, channel, oh, ow}, mean);
  };
  if (isWrittenOut(w))
    return forEachOutput(w, emitOutput);
  Value sums = row;
  forRange(code.index(w.output[0]), [&](Value oh) {
    forRange(code.index(w.output[1]),
             [&](Value ow) { put(nothing, sums, ow); });
    forEachTap(w, oh, [&](Value h, Value kw, Range outputs) {
      code.loop(outputs.low, outputs.high, 1, [&](Value ow) {
        Value x = load(0, shape, h, inputAt(w, 1, ow, kw));
        put(add(code, take(sums, ow), x), sums, ow);
      });
    });
    forRange(code.index(w.output[1]), [&](Value ow) {
      Value mean = scalar::div(code.b, code.loc, take(sums, ow),
                               divisor(w, countPadding, oh, ow));
      kernel.finish({image, channel, oh, ow}, mean);
    });
  });
}

/// Row by row of the input: the outputs that see the row hand their shares out.
void WindowEmitter::avgPoolGrad(const Window2d &w, bool countPadding) {
  SmallVector<int64_t> shape{result[0], result[1], w.output[0], w.output[1]};
  Value sums = row;
  Value nothing = code.number(element, 0);
  forRange(code.index(w.input[0]), [&](Value h) {
    forRange(code.index(w.input[1]), [&](Value x) { put(nothing, sums, x); });
    forRange(code.index(w.kernel[0]), [&](Value kh) {
      // h = oh * stride - before + kh
      Value scaled = code.sub(code.add(h, w.before[0]), kh);
      Value oh = code.div(scaled, w.stride[0]);
      Value sees = code.both(code.below(oh, w.output[0]),
                             code.equal(code.mul(oh, w.stride[0]), scaled));
      code.when(sees, [&] {
        forRange(code.index(w.kernel[1]), [&](Value kw) {
          Range outputs = outputsAt(w, 1, kw);
          code.loop(outputs.low, outputs.high, 1, [&](Value ow) {
            Value at = inputAt(w, 1, ow, kw);
            Value share = scalar::div(code.b, code.loc, load(0, shape, oh, ow),
                                      divisor(w, countPadding, oh, ow));
            put(add(code, take(sums, at), share), sums, at);
          });
        });
      });
    });
    forRange(code.index(w.input[1]), [&](Value x) {
      kernel.finish({image, channel, h, x}, take(sums, x));
    });
  });
}

int64_t lower::cpu::scratchOfWindow(AnchorKernel &kernel) {
  WindowEmitter emitter(kernel);
  return kernel.countScratch([&] { emitter.takeScratch(); });
}

FailureOr<Work> lower::cpu::emitWindow(AnchorKernel &kernel) {
  Operation *op = kernel.anchor;
  WindowEmitter emitter(kernel);
  auto cost = cast<CostOpInterface>(op);
  auto shapeOf = [](Value x) {
    return cast<RankedTensorType>(x.getType()).getShape();
  };
  ArrayRef<int64_t> result = shapeOf(op->getResult(0));
  double flops = static_cast<double>(cost.getFlops()) /
                 static_cast<double>(result[0] * result[1]);
  return emitter.emit(flops, [&] {
    if (auto pool = dyn_cast<MaxPool2dOp>(op))
      emitter.maxPool(pool.getWindow());
    else if (isa<MaxPool2dGradOp>(op))
      emitter.maxPoolGrad(shapeOf(op->getOperand(1)));
    else if (isa<MaxPool2dTakeOp>(op))
      emitter.maxPoolTake(shapeOf(op->getOperand(0)));
    else if (auto pool = dyn_cast<AvgPool2dOp>(op))
      emitter.avgPool(pool.getWindow(), pool.getCountIncludePad());
    else if (auto pool = dyn_cast<AvgPool2dGradOp>(op))
      emitter.avgPoolGrad(pool.getWindow(), pool.getCountIncludePad());
  });
}
