//===- Matmul.cpp - matrix products as items of the product emitter -------===//
//
// The dimensions of the code are those of MatmulIndex.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/cpu/products/Dots.h"
#include "passes/lower/cpu/products/FetchAhead.h"
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/lower/cpu/products/GemmOperand.h"
#include "passes/target/CpuCaches.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
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

/// The factors of the products of a batch, where each is asked for during the
/// product before it: those that do not fill the second-level cache.
static std::vector<FetchAhead> factorsAhead(AnchorKernel &kernel,
                                            ArrayRef<int64_t> batchSizes) {
  constexpr double mostBytes = caches::kSecond;
  int64_t batches = product(batchSizes);
  std::vector<FetchAhead> factors;
  if (batches == 1)
    return factors;
  double bytes = 0;
  for (unsigned number : {0, 1}) {
    auto type =
        cast<RankedTensorType>(kernel.anchor->getOperand(number).getType());
    ArrayRef<int64_t> shape = type.getShape().take_back(2);
    bytes += static_cast<double>(product(shape)) *
             elementBytes(type.getElementType());
    SmallVector<int64_t> sizes = {batches, 1, shape[0], shape[1]};
    SmallVector<AffineExpr> dims =
        dimensions(kernel.kernel.getContext(), sizes.size());
    SmallVector<AffineExpr> index = delinearize(dims[0], batchSizes, sizes);
    index.append({dims[2], dims[3]});
    FetchAhead factor(kernel.code, kernel.operand(number, index, sizes), sizes,
                      1, 1);
    if (factor.linesOfPart(1) > 0)
      factors.push_back(factor);
  }
  if (bytes > mostBytes)
    factors.clear();
  return factors;
}

Fit lower::cpu::fitMatmul(AnchorKernel &) { return Fit::good(); }

double lower::cpu::secondsOfMatmul(AnchorKernel &kernel) {
  return secondsOfVectors(kernel, &MatmulIndex::n);
}

double lower::cpu::secondsOfVectors(AnchorKernel &kernel,
                                    unsigned MatmulIndex::*along) {
  auto index = MatmulIndex::of(kernel.anchor);
  Type type = getElementTypeOrSelf(kernel.anchor->getResult(0).getType());
  int64_t lanes = kernel.target.lanes(scalar::computeType(type));
  SmallVector<int64_t> sizes = index.sizes;
  sizes[index.*along] = llvm::alignTo(sizes[index.*along], lanes);
  double multiplyAdds = 1;
  for (int64_t size : sizes)
    multiplyAdds *= static_cast<double>(size);
  return secondsOf(kernel.kernel, kernel.anchor, multiplyAdds);
}

FailureOr<Work> lower::cpu::emitMatmul(AnchorKernel &kernel) {
  auto op = cast<MatmulOp>(kernel.anchor);
  Code &code = kernel.code;
  RankedTensorType type = op.getY().getType();
  int64_t rank = type.getRank();
  auto index = MatmulIndex::of(op);
  unsigned m = index.m, n = index.n, k = index.k;
  const auto &sizes = index.sizes;
  const auto &dims = index.dims;
  int64_t inner = sizes[k];

  Gemm gemm;
  gemm.M = sizes[m];
  gemm.N = sizes[n];
  gemm.K1 = inner;
  gemm.lineLength = gemm.N;
  gemm.type = scalar::computeType(type.getElementType());
  gemm.asked = AskedSchedule::of(kernel.kernel);
  ArrayRef<int64_t> batchSizes = index.batchSizes();
  int64_t batches = product(batchSizes);
  if (batches * gemm.M * gemm.N == 0)
    return Work{0, 1, 0};

  GemmOperand lhs(kernel, 0, index.lhs, sizes, m, std::nullopt, k);
  GemmOperand rhs(kernel, 1, index.rhs, sizes, n, std::nullopt, k);
  std::optional<Operand> output =
      kernel.directOutput(gemm.type, ArrayRef(dims).take_front(rank),
                          ArrayRef(sizes).take_front(rank), n);

  lhs.bindA(gemm);
  rhs.bindB(gemm);
  // The indices of the batch, set when an item begins.
  SmallVector<Value> at(rank + 1);
  Value nextBatch;
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
  if (output)
    gemm.load = [&](Code &code, Value row, int64_t i, Value column,
                    int64_t lanes, Value mask) {
      SmallVector<Value> index(ArrayRef<Value>(at).take_front(rank));
      index[m] = row;
      index[n] = column;
      Value position = code.add(output->at(code, index), i * output->stride(m));
      return code.load(output->memref, position, lanes, mask);
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
  std::vector<FetchAhead> ahead = factorsAhead(kernel, batchSizes);
  if (schedule.sweeps || schedule.kPanels(gemm) > 1)
    ahead.clear();
  if (!ahead.empty()) {
    gemm.fetchNext = [&](Code &code, Value tile, Value round) {
      int64_t tiles = schedule.tiles(gemm);
      int64_t rounds = std::max<int64_t>(1, gemm.K1 / schedule.unroll);
      for (FetchAhead &next : ahead) {
        int64_t asking = std::min(rounds, next.linesOfPart(tiles));
        next.enter(nextBatch, code.index(0));
        next.beginPart(tile, tiles, asking);
        code.when(code.less(round, code.index(asking)),
                  [&] { next.emitRound(round); });
      }
    };
    // Nothing else waits for memory then but what is stored.
    if (output)
      gemm.fetchEnd = [&](Code &code, Value row, Value column) {
        SmallVector<Value> index(ArrayRef<Value>(at).take_front(rank));
        index[m] = row;
        index[n] = column;
        code.prefetch(output->memref, output->at(code, index));
      };
  }
  kernel.forEachItem([&](Value item) {
    Value batch = code.div(item, items);
    llvm::copy(split(code, batch, batchSizes), at.begin());
    nextBatch = code.add(batch, 1);
    lhs.enter(at);
    rhs.enter(at);
    emitGemm(code, gemm, schedule, kernel.scratch,
             {code.rem(item, items), code.div(item, schedule.mBlocks(gemm))});
  });

  Work work;
  work.items = batches * items;
  double columns = std::min(schedule.group * schedule.width(), gemm.N);
  double rows = std::min(schedule.mBlock, gemm.M);
  double bytes = elementBytes(type.getElementType()) *
                 (columns * inner + rows * inner + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * inner, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}
