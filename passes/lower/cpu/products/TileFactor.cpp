//===- TileFactor.cpp - tensors as the factors of a product of tiles ------===//
#include "passes/lower/cpu/products/TileFactor.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

static constexpr int64_t kLines = TileCode::lines, kTerms = TileCode::terms;

TileFactor::TileFactor(AnchorKernel &kernel, unsigned number, Side side,
                       ArrayRef<AffineExpr> index, ArrayRef<int64_t> sizes,
                       unsigned line, unsigned k)
    : kernel(kernel), code(kernel.code), number(number), side(side),
      index(index), sizes(sizes), line(line), k(k),
      operand(kernel.operand(number, index, sizes)) {}

void TileFactor::enter(ArrayRef<Value> values) {
  dims.assign(values.begin(), values.end());
  dims.resize(sizes.size());
  dims[line] = dims[k] = nullptr;
  if (operand.isAffine())
    base = operand.at(code, dims);
}

Value TileFactor::position(Value atLine, Value atTerm) const {
  Value at = code.add(base, code.mul(atLine, stride(line)));
  return code.add(at, code.mul(atTerm, stride(k)));
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

bool TileFactor::isInPlace(int64_t lines) const {
  constexpr int64_t ofCacheLine = TileCode::rowBytes / 2;
  if (side != Left || !alongTerms() || sizes[k] % kTerms != 0 ||
      sizes[line] % lines != 0)
    return false;
  SmallVector<AffineExpr> zeros(
      sizes.size(), getAffineConstantExpr(0, operand.position.getContext()));
  auto first =
      cast<AffineConstantExpr>(operand.position.replaceDims(zeros)).getValue();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != k && stride(d) % ofCacheLine != 0)
      return false;
  return first % ofCacheLine == 0;
}

TileAddress TileFactor::inPlace(Value atLine, Value atTerm) const {
  TileCode tiles(code, hasTiles(kernel.anchor));
  return {tiles.pointer(operand.memref, position(atLine, atTerm)),
          tiles.number(code.index(2 * stride(line)))};
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

static VectorType pairsType(OpBuilder &b) {
  return VectorType::get({kLines}, b.getI32Type());
}

/// 16 lines of 16 pairs of k, of which `terms` k are there.
Code::Values TileFactor::readLines(Value atLine, Value atTerm, int64_t terms) {
  Value mask;
  if (terms < kTerms)
    mask = code.firstLanes(code.index(terms), kTerms);
  Code::Values lines;
  for (int64_t i = 0; i < kLines; ++i) {
    Value at = code.add(atLine, i);
    if (sizes[line] % kLines != 0) // lines that are not there: again the last
      at = code.min(at, sizes[line] - 1);
    Value x = code.load(operand.memref, position(at, atTerm), kTerms, mask);
    lines.push_back(
        vector::BitCastOp::create(code.b, code.loc, pairsType(code.b), x));
  }
  return lines;
}

/// The pairs of k of `lines` lines, 16 vectors for each 16 lines, one after the
/// other; `each` gets them as they come.
void TileFactor::readPairs(Value atLine, Value atTerm, int64_t terms,
                           int64_t lines, EachPair each) {
  // What is read of a row is short, and rows may be far apart: the processor
  // does not foresee the next ones.
  constexpr int64_t ahead = kTerms;
  Value mask;
  if (sizes[line] % lines != 0)
    mask = code.firstLanes(code.sub(code.index(sizes[line]), atLine), lines);
  Type bits = VectorType::get({lines}, code.b.getI16Type());
  auto row = [&](int64_t term) -> Value {
    if (term >= terms)
      return code.zeros(code.b.getI16Type(), lines);
    Value at = position(atLine, code.add(atTerm, term));
    code.prefetch(operand.memref, code.add(at, ahead * stride(k)));
    Value x = code.load(operand.memref, at, lines, mask);
    return vector::BitCastOp::create(code.b, code.loc, bits, x);
  };
  for (int64_t pair = 0; pair < kLines; ++pair) {
    Value low = row(2 * pair), high = row(2 * pair + 1);
    for (int64_t from = 0; from < lines; from += kLines) {
      SmallVector<int64_t> interleaved;
      for (int64_t i = from; i < from + kLines; ++i)
        interleaved.append({i, lines + i});
      Value both =
          vector::ShuffleOp::create(code.b, code.loc, low, high, interleaved);
      each(
          from / kLines, pair,
          vector::BitCastOp::create(code.b, code.loc, pairsType(code.b), both));
    }
  }
}

/// Row `i` of the tile at `at`.
void TileFactor::storeRow(Value memref, Value at, int64_t i, Value row) {
  Type type = VectorType::get({kTerms}, code.b.getBF16Type());
  code.store(vector::BitCastOp::create(code.b, code.loc, type, row), memref,
             code.add(at, i * kTerms));
}

/// Packs the tiles at `at`, of 16 lines each.
void TileFactor::packTiles(Value memref, ArrayRef<Value> at, Value atLine,
                           Value atTerm, int64_t terms) {
  if (!alongTerms() && !alongLine())
    return packElements(memref, at.front(), atLine, atTerm, terms);
  SmallVector<Code::Values> squares(at.size(), Code::Values(kLines));
  bool turns = alongTerms() != (side == Left);
  auto put = [&](int64_t tile, int64_t i, Value row) {
    if (turns)
      squares[tile][i] = row;
    else
      storeRow(memref, at[tile], i, row);
  };
  if (alongTerms()) {
    Code::Values lines = readLines(atLine, atTerm, terms);
    for (int64_t i = 0; i < kLines; ++i)
      put(0, i, lines[i]);
  } else {
    int64_t lines = kLines * static_cast<int64_t>(at.size());
    readPairs(atLine, atTerm, terms, lines, put);
  }
  if (turns)
    for (auto [tile, rows] : llvm::zip_equal(at, squares))
      for (auto [i, row] : llvm::enumerate(code.transpose(rows)))
        storeRow(memref, tile, static_cast<int64_t>(i), row);
}

/// Element by element, in any place.
void TileFactor::packElements(Value memref, Value at, Value atLine,
                              Value atTerm, int64_t terms) {
  Type type = code.b.getBF16Type();
  Value zero = code.number(type, 0);
  code.loop(code.index(0), code.index(kLines), 1, [&](Value i) {
    Value here = code.min(code.add(atLine, i), sizes[line] - 1);
    auto place = [&](Value term) {
      Value row = side == Left ? i : code.div(term, 2);
      Value column =
          side == Left ? term : code.add(code.mul(i, 2), code.rem(term, 2));
      return code.add(at, code.add(code.mul(row, kTerms), column));
    };
    auto put = [&](Value term, Value x) {
      memref::StoreOp::create(code.b, code.loc, x, memref, place(term));
    };
    code.loop(code.index(0), code.index(terms), 1, [&](Value term) {
      SmallVector<Value> full(dims);
      full[line] = here;
      full[k] = code.add(atTerm, term);
      for (Value &dim : full)
        if (!dim)
          dim = code.index(0);
      // It has been widened, so this is exact.
      Value x = kernel.element(number, index, full, sizes);
      put(term, arith::TruncFOp::create(code.b, code.loc, type, x));
    });
    code.loop(code.index(terms), code.index(kTerms), 1,
              [&](Value term) { put(term, zero); });
  });
}

void TileFactor::pack(const TileMemory &to, Value first, Value end, Value step,
                      Value stepEnd) {
  int64_t whole = sizes[k] / kTerms, rest = sizes[k] % kTerms;
  // `count` tiles side by side.
  auto tiles = [&](Value atLine, Value atStep, int64_t count, int64_t terms) {
    SmallVector<Value> at;
    Value lines = code.div(code.sub(atLine, first), kLines);
    for (int64_t i = 0; i < count; ++i) {
      Value number = to.number(code.add(lines, i), code.sub(atStep, step));
      at.push_back(code.mul(number, TileCode::elements));
    }
    packTiles(to.memref, at, atLine, code.mul(atStep, kTerms), terms);
  };
  auto alongSteps = [&](llvm::function_ref<void(Value, int64_t)> body) {
    Value wholeEnd = rest == 0 ? stepEnd : code.min(stepEnd, whole);
    code.loop(step, wholeEnd, 1, [&](Value at) { body(at, kTerms); });
    if (rest != 0)
      code.when(code.less(code.index(whole), stepEnd),
                [&] { body(code.index(whole), rest); });
  };
  // In the order in which the tensor lies in memory; of neighbours along the
  // line whole cache lines are read.
  if (alongLine()) {
    Value count = code.div(code.sub(end, first), 2 * kLines);
    Value pairsEnd = code.add(first, code.mul(count, 2 * kLines));
    return alongSteps([&](Value atStep, int64_t terms) {
      code.loop(first, pairsEnd, 2 * kLines,
                [&](Value atLine) { tiles(atLine, atStep, 2, terms); });
      code.loop(pairsEnd, end, kLines,
                [&](Value atLine) { tiles(atLine, atStep, 1, terms); });
    });
  }
  code.loop(first, end, kLines, [&](Value atLine) {
    alongSteps(
        [&](Value atStep, int64_t terms) { tiles(atLine, atStep, 1, terms); });
  });
}
