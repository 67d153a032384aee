//===- Convolution.cpp - convolutions as implicit matrix products ---------===//
//
// The method of every convolution, "windows": vectors are of pixels or of taps,
// and the code's dimensions are those of ConvolutionProduct. B is gathered from
// the image while it is packed (WindowPack.h), unless windows are single pixels
// side by side; then it is a matrix in place.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ConvolutionProduct.h"
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

FailureOr<Work> lower::cpu::emitWindows(AnchorKernel &kernel) {
  using enum ConvolutionProduct::Dim;
  Code &code = kernel.code;
  auto p = ConvolutionProduct::of(kernel.anchor);
  WindowPack windows(kernel, p.bNumber, p.conv, p.lanes);
  auto type = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  Gemm gemm;
  gemm.M = p.sizes[M];
  gemm.N = p.sizes[N];
  gemm.K0 = p.sizes[K0];
  gemm.K1 = p.sizes[K1];
  gemm.lineLength = p.lineLength;
  gemm.type = scalar::computeType(type.getElementType());
  gemm.asked = AskedSchedule::of(kernel.kernel);

  std::optional<unsigned> k0;
  if (gemm.K0 > 1)
    k0 = K0;
  GemmOperand a(kernel, p.aNumber, p.a, p.sizes, M, k0, K1);
  a.bindA(gemm);
  std::optional<GemmOperand> matrix;
  if (p.isPointwise()) {
    matrix.emplace(kernel, p.bNumber, p.b, p.sizes, N, k0, K1);
    matrix->bindB(gemm);
  } else {
    windows.bindB(gemm);
  }
  std::optional<Operand> output =
      kernel.directOutput(gemm.type, p.y, p.sizes, N);

  SmallVector<Value> at(Dims); // of the item
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
      kernel.finish(p.index(code, at[Image], at[Group], row, line, column),
                    sum);
    };

  int64_t batches = p.sizes[Image] * p.sizes[Group];
  GemmSchedule schedule = scheduleGemm(gemm, kernel.target, batches);
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
  work.items = batches * items;
  double columns = std::min(schedule.width(), gemm.N);
  double rows = std::min(schedule.mBlock, gemm.M);
  double k = static_cast<double>(gemm.K0) * gemm.K1;
  double bytes = elementBytes(type.getElementType()) *
                 (columns * k + rows * k + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * k, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}
