//===- TileFactor.cpp - tensors as the factors of a product of tiles ------===//
#include "passes/lower/cpu/TileFactor.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
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

TilePlace TileFactor::inPlace(Value atLine, Value atTerm) const {
  TileCode tiles(code);
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

/// 16 pairs of k of 16 lines.
Code::Values TileFactor::readPairs(Value atLine, Value atTerm, int64_t terms) {
  Value mask;
  if (sizes[line] % kLines != 0)
    mask = code.firstLanes(code.sub(code.index(sizes[line]), atLine), kLines);
  Type bits = VectorType::get({kLines}, code.b.getI16Type());
  auto row = [&](int64_t term) -> Value {
    if (term >= terms)
      return code.zeros(code.b.getI16Type(), kLines);
    // Rows are far apart, and what is read of one is short: the processor does
    // not foresee the next ones.
    Value at = position(atLine, code.add(atTerm, term));
    if (terms == kTerms)
      code.prefetch(operand.memref, code.add(at, kTerms * stride(k)));
    Value x = code.load(operand.memref, at, kLines, mask);
    return vector::BitCastOp::create(code.b, code.loc, bits, x);
  };
  SmallVector<int64_t> interleaved;
  for (int64_t i = 0; i < kLines; ++i)
    interleaved.append({i, kLines + i});
  Code::Values pairs;
  for (int64_t term = 0; term < kTerms; term += 2) {
    Value low = row(term), high = row(term + 1);
    Value both =
        vector::ShuffleOp::create(code.b, code.loc, low, high, interleaved);
    pairs.push_back(
        vector::BitCastOp::create(code.b, code.loc, pairsType(code.b), both));
  }
  return pairs;
}

void TileFactor::packSquare(Value memref, Value at, Value atLine, Value atTerm,
                            int64_t terms) {
  bool isOfLines = alongTerms();
  if (!isOfLines && !alongLine())
    return packElements(memref, at, atLine, atTerm, terms);
  Code::Values rows = isOfLines ? readLines(atLine, atTerm, terms)
                                : readPairs(atLine, atTerm, terms);
  if (isOfLines != (side == Left))
    rows = code.transpose(rows);
  Type type = VectorType::get({kTerms}, code.b.getBF16Type());
  for (int64_t i = 0; i < kLines; ++i)
    code.store(vector::BitCastOp::create(code.b, code.loc, type, rows[i]),
               memref, code.add(at, i * kTerms));
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
  auto squares = [&](Value atStep, int64_t terms) {
    Value atTerm = code.mul(atStep, kTerms);
    Value at =
        code.add(to.first, code.mul(code.sub(atStep, step), to.alongTerms));
    code.loop(first, end, kLines, [&](Value atLine) {
      Value tile = code.div(code.sub(atLine, first), kLines);
      packSquare(to.memref, code.add(at, code.mul(tile, to.alongLines)), atLine,
                 atTerm, terms);
    });
  };
  Value wholeEnd = rest == 0 ? stepEnd : code.min(stepEnd, whole);
  code.loop(step, wholeEnd, 1, [&](Value at) { squares(at, kTerms); });
  if (rest != 0)
    code.when(code.less(code.index(whole), stepEnd),
              [&] { squares(code.index(whole), rest); });
}
