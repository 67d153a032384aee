//===- GemmOperand.cpp - tensors as the factors of a product --------------===//
#include "passes/lower/cpu/products/GemmOperand.h"

#include "passes/common/PackedWeights.h"
#include "passes/target/CpuCaches.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

GemmOperand::GemmOperand(AnchorKernel &kernel, unsigned number,
                         ArrayRef<AffineExpr> index, ArrayRef<int64_t> sizes,
                         unsigned line, std::optional<unsigned> k0, unsigned k1)
    : kernel(kernel), code(kernel.code), number(number), index(index),
      sizes(sizes), line(line), k0(k0), k1(k1),
      operand(kernel.operand(number, index, sizes)) {}

void GemmOperand::enter(ArrayRef<Value> values) {
  dims.assign(values.begin(), values.end());
  dims.resize(sizes.size());
  dims[line] = dims[k1] = nullptr;
  if (k0)
    dims[*k0] = nullptr;
  if (operand.isAffine())
    base = operand.at(code, dims);
  else if (panels) {
    SmallVector<Value> cut(dims);
    cut.resize(sizes.size() + 2);
    base = panels->at(code, cut);
  }
  last = {};
}

Value GemmOperand::position(Value atLine, Value atK0, Value atK1) {
  Block *block = code.b.getInsertionBlock();
  if (last.block == block && last.line == atLine && last.k0 == atK0 &&
      last.k1 == atK1)
    return last.position;
  Value at = code.add(base, code.mul(atLine, stride(line)));
  if (k0)
    at = code.add(at, code.mul(atK0, stride(k0)));
  at = code.add(at, code.mul(atK1, stride(k1)));
  last = {block, atLine, atK0, atK1, at};
  return at;
}

/// True if all rows of k, with what is between them, fit the first-level cache.
bool GemmOperand::isNear() const {
  constexpr int64_t cacheBytes = caches::kFirst;
  int64_t rows = sizes[k1] * (k0 ? sizes[*k0] : 1);
  return rows * stride(k1) * operand.element.getIntOrFloatBitWidth() / 8 <=
         cacheBytes;
}

Value GemmOperand::element(Value atLine, Value atK0, Value atK1) {
  if (operand.isAffine()) {
    Value at = position(atLine, atK0, atK1);
    Value x = memref::LoadOp::create(code.b, code.loc, operand.memref, at);
    return code.widen(x, type);
  }
  SmallVector<Value> at(dims);
  at[line] = atLine;
  at[k1] = atK1;
  if (k0)
    at[*k0] = atK0;
  for (Value &dim : at)
    if (!dim)
      dim = code.index(0);
  return kernel.element(number, index, at, sizes);
}

//===----------------------------------------------------------------------===//
// A
//===----------------------------------------------------------------------===//

void GemmOperand::bindA(Gemm &gemm) {
  type = gemm.type;
  gemm.a = [this](Code &, Value m, int64_t i, Value atK0, Value atK1,
                  int64_t u) -> Value {
    if (!operand.isAffine())
      return element(code.add(m, i), atK0, code.add(atK1, u));
    Value at =
        code.add(position(m, atK0, atK1), i * stride(line) + u * stride(k1));
    Value x = memref::LoadOp::create(code.b, code.loc, operand.memref, at);
    return code.widen(x, type);
  };
  // Down its columns: each k is in another line, and often another page.
  if (operand.isAffine() && stride(line) == 1 && stride(k1) > 1 && gemm.M > 1 &&
      !isNear()) {
    gemm.fetch = [this](Code &, Value m, Value atK0, Value atK1, int64_t u) {
      code.prefetch(operand.memref,
                    code.add(position(m, atK0, atK1), u * stride(k1)));
    };
    // Rows that are far apart meet in few sets of the caches; of a large
    // product, whose panels make several groups, it pays anyway.
    constexpr int64_t farBytes = 2048, large = 1 << 18, manyColumns = 512;
    int64_t bytes = operand.element.getIntOrFloatBitWidth() / 8;
    bool isLarge = gemm.M * gemm.N >= large && gemm.N > manyColumns;
    if (!k0 && (stride(k1) * bytes > farBytes || isLarge))
      gemm.packA = [this](Code &, const GemmBlock &b) { packBlock(b); };
  }
}

/// Rows of k are copied one after the other; the processor does not foresee
/// the later ones. What is written of a tile's row reaches into the next row,
/// which comes later.
void GemmOperand::packBlock(const GemmBlock &block) {
  int64_t line = 512 / operand.element.getIntOrFloatBitWidth();
  int64_t width = block.width(), rows = block.rows;
  Value M = code.index(sizes[this->line]);
  // Tiles whose vectors end before the row does, and the others.
  Value tiles =
      code.div(code.add(code.sub(block.mEnd, block.m), rows - 1), rows);
  Value inRow = code.add(code.sub(M, block.m), rows - width);
  inRow = code.div(code.max(inRow, code.index(0)), rows);
  Value whole = code.min(tiles, inRow);
  code.loop(block.k1, block.k1End, 1, [&](Value atK1) {
    Value row = code.sub(atK1, block.k1);
    Value from = position(block.m, block.k0, atK1);
    Value later = position(block.m, block.k0, code.add(atK1, 8));
    code.loop(code.index(0), code.sub(block.mEnd, block.m), line,
              [&](Value column) {
                code.prefetch(operand.memref, code.add(later, column));
              });
    auto copy = [&](Value tile, Value mask) {
      Value x = code.load(operand.memref, code.add(from, code.mul(tile, rows)),
                          width, mask);
      code.store(code.widen(x, type), block.memref, block.at(code, tile, row));
    };
    code.loop(code.index(0), whole, 1, [&](Value tile) { copy(tile, {}); });
    code.loop(whole, tiles, 1, [&](Value tile) {
      Value left = code.sub(code.sub(M, block.m), code.mul(tile, rows));
      copy(tile, code.firstLanes(left, width));
    });
  });
}

//===----------------------------------------------------------------------===//
// B
//===----------------------------------------------------------------------===//

/// The position may be affine in the panel and the column of it, which its line
/// consists of.
void GemmOperand::findPanels() {
  MLIRContext *context = code.b.getContext();
  auto number = static_cast<unsigned>(sizes.size());
  for (int64_t columns : kPanelColumns) {
    AffineExpr cut = getAffineDimExpr(number, context) * columns +
                     getAffineDimExpr(number + 1, context);
    SmallVector<AffineExpr> cutIndex;
    for (AffineExpr expr : index)
      cutIndex.push_back(expr.replace(getAffineDimExpr(line, context), cut));
    SmallVector<int64_t> cutSizes(sizes);
    cutSizes.push_back(llvm::divideCeil(sizes[line], columns));
    cutSizes.push_back(columns);
    Operand found = kernel.operand(this->number, cutIndex, cutSizes);
    if (!found.isAffine() || found.stride(number + 1) != 1)
      continue;
    panels = found;
    panelColumns = columns;
    return;
  }
}

/// Reads panels in place.
void GemmOperand::bindPanels(Gemm &gemm) {
  gemm.panelColumns = panelColumns;
  gemm.isPacked = true;
  gemm.pack = [this](Code &, const GemmPanel &p) { packElements(p); };
  gemm.b = [this](Code &, Value atK0, Value atK1, int64_t u, Value n,
                  int64_t lanes, Value mask) {
    auto panel = static_cast<unsigned>(sizes.size());
    Value at = code.add(
        base, code.mul(code.div(n, panelColumns), panels->stride(panel)));
    at = code.add(at, code.rem(n, panelColumns));
    if (k0)
      at = code.add(at, code.mul(atK0, panels->stride(*k0)));
    int64_t row = panels->stride(k1);
    at = code.add(code.add(at, code.mul(atK1, row)), u * row);
    return code.widen(code.load(panels->memref, at, lanes, mask), type);
  };
}

void GemmOperand::bindB(Gemm &gemm) {
  type = gemm.type;
  if (!operand.isAffine())
    findPanels();
  if (panels)
    return bindPanels(gemm);
  int64_t N = gemm.N;
  bool alongLine = operand.isAffine() && stride(line) == 1;
  bool alongK = operand.isAffine() && stride(k1) == 1;
  if (alongLine || (operand.isAffine() && N == 1)) {
    gemm.pack = [this, N](Code &, const GemmPanel &p) { packRows(p, N); };
    gemm.b = [this](Code &, Value atK0, Value atK1, int64_t u, Value n,
                    int64_t lanes, Value mask) {
      Value at = code.add(position(n, atK0, atK1), u * stride(k1));
      return code.widen(code.load(operand.memref, at, lanes, mask), type);
    };
    if (!k0 && alongLine)
      gemm.packRow = [this, N](Code &, const GemmPanel &p, Value atK1) {
        packRow(p, p.k0, atK1, N % p.width != 0);
      };
    // Rows that fill their distance; or few.
    gemm.isPacked = (N <= 64 && stride(k1) <= 2 * N) ||
                    (isNear() && operand.element == type);
  } else if (alongK) {
    gemm.pack = [this, N](Code &, const GemmPanel &p) { packTransposed(p, N); };
  } else {
    gemm.pack = [this](Code &, const GemmPanel &p) { packElements(p); };
  }
}

void GemmOperand::forEachK(const GemmPanel &panel,
                           llvm::function_ref<void(Value k0, Value k1)> body) {
  code.loop(panel.k0, panel.k0End, 1, [&](Value atK0) {
    code.loop(panel.k1, panel.k1End, 1, [&](Value atK1) { body(atK0, atK1); });
  });
}

/// Rows are far apart, and what is read of one is short: the processor does not
/// foresee the next ones.
void GemmOperand::packRow(const GemmPanel &panel, Value atK0, Value atK1,
                          bool isMasked) {
  constexpr int64_t ahead = 8, line = 64;
  int64_t lineLength = line * 8 / operand.element.getIntOrFloatBitWidth();
  Value later = code.min(code.add(atK1, ahead), code.add(panel.k1End, -1));
  Value next = position(panel.n, atK0, later);
  for (int64_t column = 0; column < panel.width; column += lineLength)
    code.prefetch(operand.memref, code.add(next, column));
  Value row = panel.row(code, atK0, atK1);
  Value from = position(panel.n, atK0, atK1);
  for (int64_t column = 0; column < panel.width; column += panel.lanes) {
    Value mask;
    if (isMasked)
      mask = code.firstLanes(code.sub(panel.columns, code.index(column)),
                             panel.lanes);
    Value x =
        code.load(operand.memref, code.add(from, column), panel.lanes, mask);
    code.store(code.widen(x, type), panel.memref, {row, code.index(column)});
  }
}

void GemmOperand::packRows(const GemmPanel &panel, int64_t N) {
  auto pack = [&](bool isMasked) {
    forEachK(panel, [&](Value atK0, Value atK1) {
      packRow(panel, atK0, atK1, isMasked);
    });
  };
  if (N % panel.width == 0)
    pack(false);
  else if (N < panel.width)
    pack(true);
  else
    code.when(
        code.equal(panel.columns, code.index(panel.width)),
        [&] { pack(false); }, [&] { pack(true); });
}

/// Squares of lanes x lanes are read along k and turned.
void GemmOperand::packTransposed(const GemmPanel &panel, int64_t N) {
  int64_t lanes = panel.lanes;
  auto square = [&](Value column, Value atK0, Value atK1, Value mask) {
    Code::Values columns;
    for (int64_t i = 0; i < lanes; ++i) {
      Value n = code.add(code.add(panel.n, column), i);
      if (N % lanes != 0) // columns that are not there: again the last
        n = code.min(n, N - 1);
      Value x = code.load(operand.memref, position(n, atK0, atK1), lanes, mask);
      columns.push_back(code.widen(x, type));
    }
    panel.storeTurned(code, columns, atK0, atK1, column);
  };
  code.loop(code.index(0), panel.columns, lanes, [&](Value column) {
    code.loop(panel.k0, panel.k0End, 1, [&](Value atK0) {
      Value length = code.sub(panel.k1End, panel.k1);
      Value whole =
          code.add(panel.k1, code.mul(code.div(length, lanes), lanes));
      code.loop(panel.k1, whole, lanes,
                [&](Value atK1) { square(column, atK0, atK1, {}); });
      code.when(code.less(whole, panel.k1End), [&] {
        square(column, atK0, whole,
               code.firstLanes(code.sub(panel.k1End, whole), lanes));
      });
    });
  });
}

void GemmOperand::packElements(const GemmPanel &panel) {
  forEachK(panel, [&](Value atK0, Value atK1) {
    Value row = panel.row(code, atK0, atK1);
    code.loop(code.index(0), panel.columns, 1, [&](Value column) {
      Value x = element(code.add(panel.n, column), atK0, atK1);
      memref::StoreOp::create(code.b, code.loc, x, panel.memref,
                              ValueRange{row, column});
    });
  });
}
