//===- Dots.cpp - products of few rows as dot products --------------------===//
#include "passes/lower/cpu/products/Dots.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/products/Gemm.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

namespace {
class DotsEmitter {
public:
  DotsEmitter(AnchorKernel &kernel, ArrayRef<AffineExpr> lhs,
              ArrayRef<AffineExpr> rhs, ArrayRef<int64_t> sizes);

  Fit fit() const;
  ScheduleOverride numbers() const {
    return ScheduleOverride({{ScheduleKey::Columns, block}});
  }
  void takeScratch();
  Work emit();

private:
  /// The sums of all rows with the lines from `first` on, `lines` of them.
  void emitTile(Value first);
  Code::Values products(ArrayRef<Value> aAt, ArrayRef<Value> bAt, Value from,
                        Value to, ValueRange sums);
  Code::Values round(ArrayRef<Value> aAt, ArrayRef<Value> bAt, Value at,
                     Value mask, ValueRange sums);
  void finishBlock();

  AnchorKernel &kernel;
  Code &code;
  SmallVector<int64_t> sizes;
  unsigned m, n, k; ///< dimensions
  int64_t rows, columns, length;
  Operand a, b;
  Type type;             ///< of the sums
  int64_t lanes;         ///< of a register
  int64_t lines = 1;     ///< of b, that are read side by side
  int64_t block = 1;     ///< of an item, whole tiles of lines
  Value sums;            ///< of an item
  Value begin, end;      ///< the item's lines
  SmallVector<Value> at; ///< the item's place
};
} // namespace

DotsEmitter::DotsEmitter(AnchorKernel &kernel, ArrayRef<AffineExpr> lhs,
                         ArrayRef<AffineExpr> rhs, ArrayRef<int64_t> sizes)
    : kernel(kernel), code(kernel.code), sizes(sizes), m(sizes.size() - 3),
      n(sizes.size() - 2), k(sizes.size() - 1), rows(sizes[m]),
      columns(sizes[n]), length(sizes[k]), a(kernel.operand(0, lhs, sizes)),
      b(kernel.operand(1, rhs, sizes)), at(sizes.size()) {
  auto result = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  type = scalar::computeType(result.getElementType());
  lanes = kernel.target.lanes(type);
  // Sums, the rows' elements and a line's are in registers; more lines side by
  // side would compete for the ways of the first-level cache.
  constexpr int64_t mostLines = 8, linesOfItem = 64;
  lines = std::clamp<int64_t>((kernel.target.registers - 1 - rows) / rows, 1,
                              mostLines);
  block = equalParts(columns, linesOfItem, lines);
  if (int64_t asked = ScheduleOverride::of(kernel.kernel)[ScheduleKey::Columns])
    block =
        std::min<int64_t>(llvm::alignTo(asked, lines),
                          llvm::alignTo(std::max<int64_t>(columns, 1), lines));
}

Fit DotsEmitter::fit() const {
  if (!a.isAffine() || !b.isAffine() || a.stride(k) != 1 || b.stride(k) != 1)
    return Fit::impossible("expected both factors to lie along k in memory but "
                           "got others");
  constexpr int64_t mostWritten = 32;
  if (rows > mostWritten)
    return Fit::impossible("expected at most " + Twine(mostWritten) +
                           " rows, whose code is written out, but got " +
                           Twine(rows));
  // With more rows, a panel that is turned once is used enough.
  if (int64_t most = kernel.target.registers >= 32 ? 8 : 4; rows > most)
    return Fit::slower("expected at most " + Twine(most) + " rows but got " +
                       Twine(rows));
  // The sums of a vector's lanes have to be added, so many vectors must come
  // before that.
  constexpr int64_t leastVectors = 8;
  if (length < leastVectors * lanes)
    return Fit::slower("expected sums of at least " +
                       Twine(leastVectors * lanes) + " terms but got " +
                       Twine(length));
  return Fit::good();
}

/// Adds the products of the vectors at `at` along k; `mask` may be null.
Code::Values DotsEmitter::round(ArrayRef<Value> aAt, ArrayRef<Value> bAt,
                                Value at, Value mask, ValueRange in) {
  auto load = [&](const Operand &from, Value place) {
    return code.widen(code.load(from.memref, code.add(place, at), lanes, mask),
                      type);
  };
  Code::Values sums(in), left;
  for (Value place : aAt)
    left.push_back(load(a, place));
  for (int64_t j = 0; j < lines; ++j) {
    Value right = load(b, bAt[j]);
    for (int64_t i = 0; i < rows; ++i) {
      Value &sum = sums[i * lines + j];
      sum = code.multiplyAdd(left[i], right, sum);
    }
  }
  return sums;
}

Code::Values DotsEmitter::products(ArrayRef<Value> aAt, ArrayRef<Value> bAt,
                                   Value from, Value to, ValueRange sums) {
  return code.loop(from, to, lanes, sums, [&](Value at, ValueRange carried) {
    return round(aAt, bAt, at, {}, carried);
  });
}

void DotsEmitter::emitTile(Value first) {
  Code::Values aAt, bAt;
  SmallVector<Value> index(at);
  index[k] = code.index(0);
  for (int64_t i = 0; i < rows; ++i) {
    index[m] = code.index(i);
    aAt.push_back(a.at(code, index));
  }
  for (int64_t j = 0; j < lines; ++j) {
    index[n] = code.add(first, j);
    if (columns % lines != 0) // lines that are not there: again the last
      index[n] = code.min(index[n], columns - 1);
    bAt.push_back(b.at(code, index));
  }
  // Sums of so many terms a lane; these are added.
  constexpr int64_t terms = 256;
  int64_t whole = length / lanes * lanes;
  int64_t step = equalParts(whole, terms * lanes, lanes);
  Code::Values zero(rows * lines, code.zeros(type, lanes));
  Code::Values total;
  if (step >= whole) {
    total = products(aAt, bAt, code.index(0), code.index(whole), zero);
  } else {
    total =
        code.loop(code.index(0), code.index(whole), step, zero,
                  [&](Value from, ValueRange carried) {
                    Value to = code.min(code.add(from, step), whole);
                    Code::Values part = products(aAt, bAt, from, to, zero);
                    for (auto [sum, before] : llvm::zip_equal(part, carried))
                      sum =
                          arith::AddFOp::create(code.b, code.loc, before, sum);
                    return part;
                  });
  }
  if (whole < length)
    total = round(aAt, bAt, code.index(whole),
                  code.firstLanes(code.index(length - whole), lanes), total);
  Value column = code.sub(first, begin);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < lines; ++j) {
      // In a tree, which halves the lanes until one is left.
      Value sum = vector::ReductionOp::create(
          code.b, code.loc, vector::CombiningKind::ADD, total[i * lines + j],
          arith::FastMathFlags::reassoc);
      memref::StoreOp::create(code.b, code.loc, sum, sums,
                              ValueRange{code.index(i), code.add(column, j)});
    }
}

void DotsEmitter::finishBlock() {
  code.loop(code.index(0), code.index(rows), 1, [&](Value row) {
    code.loop(code.index(0), code.sub(end, begin), 1, [&](Value column) {
      SmallVector<Value> index(ArrayRef<Value>(at).drop_back());
      index[m] = row;
      index[n] = code.add(begin, column);
      kernel.finish(index,
                    Value(memref::LoadOp::create(code.b, code.loc, sums,
                                                 ValueRange{row, column})));
    });
  });
}

void DotsEmitter::takeScratch() {
  sums = kernel.scratch.take(code, {rows, block}, type);
}

Work DotsEmitter::emit() {
  takeScratch();
  ArrayRef<int64_t> batchSizes = ArrayRef(sizes).drop_back(3);
  int64_t blocks = divideCeil(columns, block), batches = product(batchSizes);
  kernel.forEachItem([&](Value item) {
    llvm::copy(split(code, code.div(item, blocks), batchSizes), at.begin());
    begin = code.mul(code.rem(item, blocks), block);
    end = code.min(code.add(begin, block), columns);
    code.loop(begin, end, lines, [&](Value first) { emitTile(first); });
    finishBlock();
  });
  Work work;
  work.items = batches * blocks;
  double read = static_cast<double>(block) * length;
  work.grain = grainFor(work.items, 2 * read * rows,
                        read * b.element.getIntOrFloatBitWidth() / 8);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

Fit lower::cpu::fitDots(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  if (index.isEmpty())
    return Fit::impossible("expected elements but got none");
  return DotsEmitter(kernel, index.lhs, index.rhs, index.sizes).fit();
}

double lower::cpu::secondsOfDots(AnchorKernel &kernel) {
  return secondsOfVectors(kernel, &MatmulIndex::k);
}

int64_t lower::cpu::scratchOfDots(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  DotsEmitter dots(kernel, index.lhs, index.rhs, index.sizes);
  return kernel.countScratch([&] { dots.takeScratch(); });
}

ScheduleOverride lower::cpu::cutDots(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  return DotsEmitter(kernel, index.lhs, index.rhs, index.sizes).numbers();
}

FailureOr<Work> lower::cpu::emitDots(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  return DotsEmitter(kernel, index.lhs, index.rhs, index.sizes).emit();
}
