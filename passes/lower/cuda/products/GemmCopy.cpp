//===- GemmCopy.cpp - a factor's tiles on their way to shared memory ------===//
#include "passes/lower/cuda/products/GemmCopy.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

GemmCopy::GemmCopy(ThreadCode &code, GemmFactor &factor,
                   const TileLayout &layout, int64_t lines, int64_t K,
                   int64_t threads)
    : code(code), factor(factor), layout(layout), lines(lines), K(K),
      threads(threads) {
  int64_t extent = factor.alongK ? layout.depth : layout.lines;
  vector = std::min(factor.vector, extent);
  pieces = llvm::divideCeil(layout.lines * layout.depth / vector, threads);
  async = factor.inMemory && factor.element == layout.element &&
          factor.alongK == layout.rowsAlongK &&
          vector * elementBytes(factor.element) == 16;
}

GemmCopy::Piece GemmCopy::piece(int64_t number) {
  // Neighbouring threads fetch neighbouring pieces.
  int64_t extent = factor.alongK ? layout.depth : layout.lines;
  int64_t perRow = extent / vector;
  int64_t total = layout.lines * layout.depth / vector;
  Piece piece;
  Value row, column;
  if (threads % perRow == 0) { // the column does not depend on the number
    row = code.add(code.div(code.thread(), perRow), number * threads / perRow);
    column = code.rem(code.thread(), perRow);
  } else {
    Value at = code.add(code.thread(), number * threads);
    row = code.div(at, perRow);
    column = code.rem(at, perRow);
  }
  if ((number + 1) * threads > total)
    piece.inTile = code.below(code.add(code.thread(), number * threads), total);
  column = code.mul(column, vector);
  piece.line = factor.alongK ? row : column;
  piece.k = factor.alongK ? column : row;
  return piece;
}

static Value both(Code &code, Value x, Value y) {
  return !x ? y : !y ? x : code.both(x, y);
}

Value GemmCopy::present(Value line, Value k) {
  int64_t extent = factor.alongK ? K : lines;
  if (extent % vector == 0)
    return Value();
  Value rest = code.sub(code.index(extent), factor.alongK ? k : line);
  return code.min(rest, vector);
}

GemmCopy::Values GemmCopy::fetch(Value line, Value k, Value tiles, Value at) {
  Values fetched;
  for (int64_t i = 0; i < pieces; ++i) {
    Piece p = piece(i);
    Value atLine = code.add(line, p.line), atK = code.add(k, p.k);
    // Where a piece's first element is not, the others are not, either.
    Value inside = p.inTile;
    if (lines % layout.lines != 0)
      inside = both(code, inside, code.less(atLine, code.index(lines)));
    if (K % layout.depth != 0)
      inside = both(code, inside, code.less(atK, code.index(K)));
    if (!async) {
      fetched.push_back(load(p, atLine, atK, inside));
      continue;
    }
    GemmFactor::Spot spot = factor.spot(atLine, atK);
    inside = both(code, inside, spot.inside);
    Value position = spot.position, count = present(atLine, atK);
    if (inside) { // else zeros are written
      position = code.select(inside, position, code.index(0));
      count = code.select(inside, count ? count : code.index(vector),
                          code.index(0));
    }
    Value to = code.add(at, layout.position(code, p.line, p.k));
    auto copy = [&] {
      nvgpu::DeviceAsyncCopyOp::create(
          code.b, code.loc,
          nvgpu::DeviceAsyncTokenType::get(code.b.getContext()), tiles, to,
          spot.memref, position, code.b.getIndexAttr(vector), count,
          /*bypassL1=*/code.b.getUnitAttr());
    };
    if (p.inTile)
      code.when(p.inTile, copy);
    else
      copy();
  }
  return fetched;
}

Value GemmCopy::load(const Piece &piece, Value line, Value k, Value inside) {
  OpBuilder &b = code.b;
  auto masked = [&](Value x) {
    if (!inside)
      return x;
    Value zero =
        arith::ConstantOp::create(b, code.loc, b.getZeroAttr(x.getType()));
    return code.select(inside, x, zero);
  };
  // What is outside is read from a place that exists, so that no load waits
  // for a branch.
  if (!factor.inMemory) {
    if (inside) {
      line = code.select(inside, line, code.index(0));
      k = code.select(inside, k, code.index(0));
    }
    if (vector == 1)
      return masked(factor.compute(line, k));
    Values elements;
    for (int64_t i = 0; i < vector; ++i)
      elements.push_back(factor.alongK ? factor.compute(line, code.add(k, i))
                                       : factor.compute(code.add(line, i), k));
    auto type = VectorType::get({vector}, elements[0].getType());
    return masked(vector::FromElementsOp::create(b, code.loc, type, elements));
  }
  GemmFactor::Spot spot = factor.spot(line, k);
  Value count = present(line, k);
  inside = both(code, inside, spot.inside);
  Value position = spot.position;
  if (inside)
    position = code.select(inside, position, code.index(0));
  if (vector == 1)
    return masked(memref::LoadOp::create(b, code.loc, spot.memref, position));
  Value elements = code.load(spot.memref, position, vector);
  if (count) {
    Value zeros = arith::ConstantOp::create(b, code.loc,
                                            b.getZeroAttr(elements.getType()));
    elements = code.select(code.firstLanes(count, vector), elements, zeros);
  }
  return masked(elements);
}

void GemmCopy::put(ValueRange fetched, Value tiles, Value at) {
  for (auto [i, values] : llvm::enumerate(fetched)) {
    Piece p = piece(i);
    if (p.inTile)
      code.when(p.inTile,
                [&, values = values] { store(values, p, tiles, at); });
    else
      store(values, p, tiles, at);
  }
}

void GemmCopy::store(Value values, const Piece &piece, Value tiles, Value at) {
  OpBuilder &b = code.b;
  Type from = getElementTypeOrSelf(values.getType());
  if (from != layout.element) {
    Type to = layout.element;
    if (auto type = dyn_cast<VectorType>(values.getType()))
      to = type.clone(to);
    bool widens =
        from.getIntOrFloatBitWidth() < layout.element.getIntOrFloatBitWidth();
    values = widens ? Value(arith::ExtFOp::create(b, code.loc, to, values))
                    : Value(arith::TruncFOp::create(b, code.loc, to, values));
  }
  auto position = [&](int64_t i) {
    Value line = factor.alongK ? piece.line : code.add(piece.line, i);
    Value k = factor.alongK ? code.add(piece.k, i) : piece.k;
    return code.add(at, layout.position(code, line, k));
  };
  if (vector == 1) {
    memref::StoreOp::create(b, code.loc, values, tiles, position(0));
    return;
  }
  if (factor.alongK == layout.rowsAlongK) {
    int64_t width = std::min(vector, 16 / elementBytes(layout.element));
    for (int64_t i = 0; i < vector; i += width) {
      Value part = values;
      if (width < vector)
        part = vector::ExtractStridedSliceOp::create(
            b, code.loc, values, ArrayRef<int64_t>{i}, ArrayRef<int64_t>{width},
            ArrayRef<int64_t>{1});
      code.store(part, tiles, position(i));
    }
    return;
  }
  for (int64_t i = 0; i < vector; ++i)
    memref::StoreOp::create(b, code.loc,
                            vector::ExtractOp::create(b, code.loc, values, i),
                            tiles, position(i));
}
