//===- Matmul.cpp - matrix products as items of the product emitter -------===//
//
// The dimensions of the code are those of MatmulIndex.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/cpu/products/Dots.h"
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/lower/cpu/products/GemmOperand.h"
#include "passes/lower/cpu/products/PlanePrefetch.h"
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
static std::vector<PlanePrefetch> factorsAhead(AnchorKernel &kernel,
                                               ArrayRef<int64_t> batchSizes) {
  constexpr double mostBytes = caches::kSecond;
  int64_t batches = product(batchSizes);
  std::vector<PlanePrefetch> factors;
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
    PlanePrefetch factor(kernel.code, kernel.operand(number, index, sizes),
                         sizes, 1, 1);
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

namespace {
/// A product by the emitter of products: what it reads, and how it is cut.
class MatmulEmitter {
public:
  explicit MatmulEmitter(AnchorKernel &kernel);
  int64_t scratchBytes() { return scratchOf(code, gemm, schedule); }
  ScheduleOverride numbers() const { return schedule.numbers(); }
  Work emit();

private:
  /// The index of an element of the result.
  SmallVector<Value> indexOf(Value row, Value column) const {
    SmallVector<Value> position(ArrayRef<Value>(at).take_front(index.k));
    position[index.m] = row;
    position[index.n] = column;
    return position;
  }
  /// Where element (row + i, column) of the result lies.
  Value placeOf(Value row, int64_t i, Value column) {
    Value position = output->at(code, indexOf(row, column));
    return code.add(position, i * output->stride(index.m));
  }
  void bindResult();
  void fetchBeside();
  void fetchFactors();

  AnchorKernel &kernel;
  Code &code;
  MatmulIndex index;
  int64_t batches;
  Type element; ///< of the result
  Gemm gemm;
  GemmOperand lhs, rhs;
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  GemmSchedule schedule;
  std::vector<PlanePrefetch> ahead;
  /// The indices of the batch, set when an item begins.
  SmallVector<Value> at;
  Value nextBatch;
};
} // namespace

MatmulEmitter::MatmulEmitter(AnchorKernel &kernel)
    : kernel(kernel), code(kernel.code), index(MatmulIndex::of(kernel.anchor)),
      batches(product(index.batchSizes())),
      element(getElementTypeOrSelf(kernel.anchor->getResult(0).getType())),
      lhs(kernel, 0, index.lhs, index.sizes, index.m, std::nullopt, index.k),
      rhs(kernel, 1, index.rhs, index.sizes, index.n, std::nullopt, index.k),
      at(index.sizes.size()) {
  gemm.M = index.sizes[index.m];
  gemm.N = index.sizes[index.n];
  gemm.K1 = index.sizes[index.k];
  gemm.lineLength = gemm.N;
  gemm.type = scalar::computeType(element);
  gemm.asked = ScheduleOverride::of(kernel.kernel);
  lhs.bindA(gemm);
  rhs.bindB(gemm);
  ArrayRef<AffineExpr> dims = ArrayRef(index.dims).take_front(index.k);
  ArrayRef<int64_t> sizes = ArrayRef(index.sizes).take_front(index.k);
  output = kernel.directOutput(gemm.type, dims, sizes, index.n);
  // Code of functions, which is long, stands once.
  if (!output)
    ends = VectorFinish::of(kernel, dims, sizes, index.n);
  if (ends && ends->hasFunctions())
    ends.reset();
  bindResult();
  schedule = scheduleGemm(gemm, kernel.target, batches);
}

void MatmulEmitter::bindResult() {
  if (ends) {
    gemm.store = [this](Code &code, Value row, int64_t i, Value column,
                        Value sums, Value mask) {
      ends->emit(code, indexOf(code.add(row, i), column), sums, mask);
    };
    return;
  }
  if (!output) {
    gemm.finish = [this](Code &, Value row, Value, Value column, Value sum) {
      kernel.finish(indexOf(row, column), sum);
    };
    return;
  }
  gemm.store = [this](Code &code, Value row, int64_t i, Value column,
                      Value sums, Value mask) {
    code.store(sums, output->memref, placeOf(row, i, column), mask);
  };
  gemm.load = [this](Code &code, Value row, int64_t i, Value column,
                     int64_t lanes, Value mask) {
    return code.load(output->memref, placeOf(row, i, column), lanes, mask);
  };
}

/// Where elements are finished one by one, what they are finished with is asked
/// for.
void MatmulEmitter::fetchBeside() {
  SmallVector<Value> beside = besideResult(kernel);
  if (output || beside.empty())
    return;
  gemm.fetchEnd = [this, beside](Code &code, Value row, Value column) {
    Value position = code.index(0);
    for (unsigned d = 0; d < index.m; ++d)
      position = code.add(code.mul(position, index.sizes[d]), at[d]);
    position = code.add(code.mul(position, index.sizes[index.m]), row);
    position = code.add(code.mul(position, index.sizes[index.n]), column);
    for (Value buffer : beside)
      code.prefetch(buffer, position);
  };
}

/// What the next product of a batch reads.
void MatmulEmitter::fetchFactors() {
  ahead = factorsAhead(kernel, index.batchSizes());
  if (schedule.sweeps || schedule.kPanels(gemm) > 1)
    ahead.clear();
  if (ahead.empty())
    return;
  gemm.fetchNext = [this](Code &code, Value tile, Value round) {
    int64_t tiles = schedule.tiles(gemm);
    int64_t rounds = std::max<int64_t>(1, gemm.K1 / schedule.unroll);
    for (PlanePrefetch &next : ahead) {
      int64_t asking = std::min(rounds, next.linesOfPart(tiles));
      next.enter(nextBatch, code.index(0));
      next.beginPart(tile, tiles, asking);
      code.when(code.less(round, code.index(asking)),
                [&] { next.emitRound(round); });
    }
  };
  // Nothing else waits for memory then but what is stored.
  if (output)
    gemm.fetchEnd = [this](Code &code, Value row, Value column) {
      code.prefetch(output->memref, output->at(code, indexOf(row, column)));
    };
}

Work MatmulEmitter::emit() {
  fetchBeside();
  fetchFactors();
  int64_t items = schedule.items(gemm);
  kernel.forEachItem([&](Value item) {
    Value batch = code.div(item, items);
    llvm::copy(split(code, batch, index.batchSizes()), at.begin());
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
  double inner = static_cast<double>(gemm.K1);
  double bytes =
      elementBytes(element) * (columns * inner + rows * inner + rows * columns);
  work.grain = grainFor(work.items, 2 * rows * columns * inner, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

/// True if the kernel has no sums.
static bool isEmptyProduct(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  return llvm::is_contained(ArrayRef(index.sizes).drop_back(), 0);
}

int64_t lower::cpu::scratchOfMatmul(AnchorKernel &kernel) {
  return isEmptyProduct(kernel) ? 0 : MatmulEmitter(kernel).scratchBytes();
}

ScheduleOverride lower::cpu::cutMatmul(AnchorKernel &kernel) {
  return isEmptyProduct(kernel) ? ScheduleOverride()
                                : MatmulEmitter(kernel).numbers();
}

FailureOr<Work> lower::cpu::emitMatmul(AnchorKernel &kernel) {
  if (isEmptyProduct(kernel))
    return Work{0, 1, 0};
  return MatmulEmitter(kernel).emit();
}
