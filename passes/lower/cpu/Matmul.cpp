//===- Matmul.cpp - matrix products as items of the product emitter -------===//
//
// The dimensions of the code are those of the result, [batch..., m, n], and k
// after them.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/Dots.h"
#include "passes/lower/cpu/Gemm.h"
#include "passes/lower/cpu/GemmOperand.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/TileProduct.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

/// The buffers that are read element by element where the result's are made.
static SmallVector<Value> besideResult(AnchorKernel &kernel) {
  SmallVector<Value> buffers;
  for (unsigned input : kernel.inputsInOrder()) {
    Value memref = kernel.body.inputs[input];
    OpBuilder::InsertionGuard guard(kernel.code.b);
    kernel.code.b.setInsertionPointAfterValue(memref);
    buffers.push_back(flatten(kernel.code.b, kernel.code.loc, memref));
  }
  return buffers;
}

FailureOr<Work> cpu::emitMatmul(AnchorKernel &kernel) {
  auto op = cast<MatmulOp>(kernel.anchor);
  Code &code = kernel.code;
  RankedTensorType type = op.getY().getType();
  int64_t rank = type.getRank();
  unsigned m = rank - 2, n = rank - 1, k = rank;

  SmallVector<int64_t> sizes(type.getShape());
  int64_t inner =
      op.getLhs().getType().getDimSize(op.getTransposeLhs() ? m : n);
  sizes.push_back(inner);
  SmallVector<AffineExpr> dims = dimensions(op.getContext(), rank + 1);
  ArrayRef<AffineExpr> batchDims = ArrayRef(dims).take_front(rank - 2);
  auto indexOf = [&](unsigned row, unsigned column, bool transposed) {
    SmallVector<AffineExpr> index(batchDims);
    index.push_back(dims[transposed ? column : row]);
    index.push_back(dims[transposed ? row : column]);
    return index;
  };

  Gemm gemm;
  gemm.M = sizes[m];
  gemm.N = sizes[n];
  gemm.K1 = inner;
  gemm.lineLength = gemm.N;
  gemm.type = scalar::computeType(type.getElementType());
  gemm.asked = AskedSchedule::checked(kernel.kernel);
  ArrayRef<int64_t> batchSizes = ArrayRef(sizes).take_front(rank - 2);
  int64_t batches = product(batchSizes);
  if (batches * gemm.M * gemm.N == 0)
    return Work{0, 1, 0};

  if (auto work = emitTileProduct(kernel, indexOf(m, k, op.getTransposeLhs()),
                                  indexOf(k, n, op.getTransposeRhs()), sizes))
    return *work;
  if (auto work = emitDots(kernel, indexOf(m, k, op.getTransposeLhs()),
                           indexOf(k, n, op.getTransposeRhs()), sizes))
    return *work;
  GemmOperand lhs(kernel, 0, indexOf(m, k, op.getTransposeLhs()), sizes, m,
                  std::nullopt, k);
  GemmOperand rhs(kernel, 1, indexOf(k, n, op.getTransposeRhs()), sizes, n,
                  std::nullopt, k);
  std::optional<Operand> output =
      kernel.directOutput(gemm.type, ArrayRef(dims).take_front(rank),
                          ArrayRef(sizes).take_front(rank), n);

  lhs.bindA(gemm);
  rhs.bindB(gemm);
  // The indices of the batch, set when an item begins.
  SmallVector<Value> at(rank + 1);
  if (output)
    gemm.store = [&](Code &code, Value row, int64_t i, Value column, Value sums,
                     Value mask) {
      SmallVector<Value> index(ArrayRef<Value>(at).take_front(rank));
      index[m] = row;
      index[n] = column;
      Value position = code.add(output->at(code, index), i * output->stride(m));
      code.store(sums, output->memref, position, mask);
    };
  else
    gemm.finish = [&](Code &, Value row, Value, Value column, Value sum) {
      SmallVector<Value> index(ArrayRef<Value>(at).take_front(rank));
      index[m] = row;
      index[n] = column;
      kernel.finish(index, sum);
    };
  SmallVector<Value> beside = besideResult(kernel);
  if (!output && !beside.empty())
    gemm.fetchEnd = [&](Code &code, Value row, Value column) {
      Value position = code.index(0);
      for (unsigned d = 0; d < m; ++d)
        position = code.add(code.mul(position, sizes[d]), at[d]);
      position = code.add(code.mul(position, sizes[m]), row);
      position = code.add(code.mul(position, sizes[n]), column);
      for (Value buffer : beside)
        code.prefetch(buffer, position);
    };

  GemmSchedule schedule = scheduleGemm(gemm, kernel.target, batches);
  int64_t items = schedule.items(gemm);
  kernel.forEachItem([&](Value item) {
    llvm::copy(split(code, code.div(item, items), batchSizes), at.begin());
    lhs.enter(at);
    rhs.enter(at);
    emitGemm(code, gemm, schedule, kernel.scratch,
             {code.rem(item, items), code.div(item, schedule.mBlocks(gemm))});
  });

  Work work;
  work.items = batches * items;
  double columns = std::min(schedule.width(), gemm.N);
  double rows = std::min(schedule.mBlock, gemm.M);
  double bytes = elementBytes(type.getElementType()) *
                 (columns * inner + rows * inner + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * inner, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}
