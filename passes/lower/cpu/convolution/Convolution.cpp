//===- Convolution.cpp - convolutions as implicit matrix products ---------===//
//
// The method of every convolution, "windows": vectors are of pixels or of taps,
// and the code's dimensions are those of ConvolutionProduct. B is gathered from
// the image while it is packed (WindowPack.h), unless windows are single pixels
// side by side; then it is a matrix in place.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/cpu/convolution/WindowPack.h"
#include "passes/lower/cpu/products/GemmOperand.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

Fit lower::cpu::fitWindows(AnchorKernel &) { return Fit::good(); }

/// Of whole vectors.
double lower::cpu::secondsOfWindows(AnchorKernel &kernel) {
  using enum ConvolutionProduct::Dim;
  auto p = ConvolutionProduct::of(kernel.anchor);
  Type type = getElementTypeOrSelf(kernel.anchor->getResult(0).getType());
  int64_t lanes = kernel.target.lanes(scalar::computeType(type));
  double all = static_cast<double>(llvm::alignTo(p.sizes[N], lanes));
  for (unsigned dim : {Image, Group, M, K0, K1})
    all *= static_cast<double>(p.sizes[dim]);
  return secondsOf(kernel.kernel, kernel.anchor, all);
}

namespace {
using enum ConvolutionProduct::Dim;

/// A convolution by the emitter of products: what it reads, and how it is cut.
class WindowsEmitter {
public:
  explicit WindowsEmitter(AnchorKernel &kernel);
  int64_t scratchBytes() { return scratchOf(code, gemm, schedule); }
  ScheduleOverride numbers() const { return schedule.numbers(); }
  Work emit();

private:
  std::optional<unsigned> k0() const {
    if (p.sizes[K0] > 1)
      return K0;
    return std::nullopt;
  }
  int64_t batches() const { return p.sizes[Image] * p.sizes[Group]; }
  void bindResult();

  AnchorKernel &kernel;
  Code &code;
  ConvolutionProduct p;
  Type element; ///< of the result
  Gemm gemm;
  WindowPack windows;
  GemmOperand a;
  std::optional<GemmOperand> matrix;
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  GemmSchedule schedule;
  SmallVector<Value> at; ///< of the item
};
} // namespace

WindowsEmitter::WindowsEmitter(AnchorKernel &kernel)
    : kernel(kernel), code(kernel.code),
      p(ConvolutionProduct::of(kernel.anchor)),
      element(getElementTypeOrSelf(kernel.anchor->getResult(0).getType())),
      windows(kernel, p.bNumber, p.conv, p.lanes),
      a(kernel, p.aNumber, p.a, p.sizes, M, k0(), K1), at(Dims) {
  gemm.M = p.sizes[M];
  gemm.N = p.sizes[N];
  gemm.K0 = p.sizes[K0];
  gemm.K1 = p.sizes[K1];
  gemm.lineLength = p.lineLength;
  gemm.type = scalar::computeType(element);
  gemm.asked = ScheduleOverride::of(kernel.kernel);
  a.bindA(gemm);
  if (p.isPointwise()) {
    matrix.emplace(kernel, p.bNumber, p.b, p.sizes, N, k0(), K1);
    matrix->bindB(gemm);
  } else {
    windows.bindB(gemm);
  }
  output = kernel.directOutput(gemm.type, p.y, p.sizes, N);
  if (!output)
    ends = VectorFinish::of(kernel, p.y, p.sizes, N);
  bindResult();
  schedule = scheduleGemm(gemm, kernel.target, batches());
}

void WindowsEmitter::bindResult() {
  if (output)
    gemm.store = [this](Code &code, Value row, int64_t i, Value column,
                        Value sums, Value mask) {
      SmallVector<Value> index(at);
      index[M] = row;
      index[N] = column;
      Value position = code.add(output->at(code, index), i * output->stride(M));
      code.store(sums, output->memref, position, mask);
    };
  else if (ends)
    gemm.store = [this](Code &code, Value row, int64_t i, Value column,
                        Value sums, Value mask) {
      SmallVector<Value> index(at);
      index[M] = code.add(row, i);
      index[N] = column;
      ends->emit(code, index, sums, mask);
    };
  else
    gemm.finish = [this](Code &, Value row, Value line, Value column,
                         Value sum) {
      kernel.finish(p.index(code, at[Image], at[Group], row, line, column),
                    sum);
    };
}

Work WindowsEmitter::emit() {
  int64_t items = schedule.items(gemm);
  kernel.forEachItem([&](Value item) {
    Value batch = code.div(item, items);
    at[Image] = code.div(batch, p.sizes[Group]);
    at[Group] = code.rem(batch, p.sizes[Group]);
    a.enter(at);
    if (matrix)
      matrix->enter(at);
    else
      windows.enter(at[Image], at[Group]);
    emitGemm(code, gemm, schedule, kernel.scratch,
             {code.rem(item, items), code.div(item, schedule.mBlocks(gemm))});
  });

  Work work;
  work.items = batches() * items;
  double columns = std::min(schedule.width(), gemm.N);
  double rows = std::min(schedule.mBlock, gemm.M);
  double k = static_cast<double>(gemm.K0) * gemm.K1;
  double bytes =
      elementBytes(element) * (columns * k + rows * k + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * k, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

int64_t lower::cpu::scratchOfWindows(AnchorKernel &kernel) {
  return WindowsEmitter(kernel).scratchBytes();
}

ScheduleOverride lower::cpu::cutWindows(AnchorKernel &kernel) {
  return WindowsEmitter(kernel).numbers();
}

FailureOr<Work> lower::cpu::emitWindows(AnchorKernel &kernel) {
  return WindowsEmitter(kernel).emit();
}
