//===- PackWeights.cpp - weights as kernels read them best ----------------===//
#include "passes/partition/PackWeights.h"

#include "passes/Panels.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

static int64_t columnsOf(MatmulOp product) {
  return product.getY().getType().getDimSize(1);
}

bool tandem::gainsByPanels(MatmulOp product) {
  if (!canReadPanels(product))
    return false;
  // Of up to 8 rows, products are sums along k, for which weights in place are
  // as good. From 128 on, a panel is made beside the products of the one before
  // it. Small weights stay in caches in any case; and what is missing in the
  // last panel is to be a small part.
  constexpr int64_t fewRows = 8, manyRows = 128, smallWeights = 1 << 14;
  int64_t rows = product.getY().getType().getDimSize(0);
  int64_t columns = columnsOf(product);
  int64_t padded = llvm::alignTo(columns, kPanelColumns);
  return rows > fewRows && rows < manyRows &&
         product.getRhs().getType().getNumElements() >= smallWeights &&
         4 * padded <= 5 * columns;
}

Value tandem::buildPanels(MatmulOp product) {
  OpBuilder b(product);
  Location loc = product.getLoc();
  Value x = product.getRhs();
  bool isTransposed = product.getTransposeRhs();
  unsigned n = isTransposed ? 0 : 1;
  int64_t columns = columnsOf(product);
  int64_t inner = product.getRhs().getType().getDimSize(1 - n);
  int64_t panels = llvm::divideCeil(columns, kPanelColumns);
  if (int64_t missing = panels * kPanelColumns - columns) {
    int64_t high[2] = {0, 0}, zeros[2] = {0, 0};
    high[n] = missing;
    Type element = product.getRhs().getType().getElementType();
    x = PadOp::create(b, loc, x, zeros, high, zeros,
                      cast<TypedAttr>(b.getZeroAttr(element)));
  }
  if (isTransposed) {
    x = ReshapeOp::create(b, loc, x,
                          ArrayRef<int64_t>{panels, kPanelColumns, inner});
    return PermuteOp::create(b, loc, x, ArrayRef<int64_t>{0, 2, 1});
  }
  x = ReshapeOp::create(b, loc, x,
                        ArrayRef<int64_t>{inner, panels, kPanelColumns});
  return PermuteOp::create(b, loc, x, ArrayRef<int64_t>{1, 0, 2});
}

void tandem::readPanels(MatmulOp product, Value panels) {
  OpBuilder b(product);
  Location loc = product.getLoc();
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(panels.getType()).getShape();
  int64_t inner = sizes[1], padded = sizes[0] * sizes[2];
  int64_t columns = columnsOf(product);
  Value x = PermuteOp::create(b, loc, panels, ArrayRef<int64_t>{1, 0, 2});
  x = ReshapeOp::create(b, loc, x, ArrayRef<int64_t>{inner, padded});
  if (columns != padded)
    x = SliceOp::create(b, loc, x, ArrayRef<int64_t>{0, 0},
                        ArrayRef<int64_t>{inner, columns},
                        ArrayRef<int64_t>{1, 1});
  product.getRhsMutable().assign(x);
  product.setTransposeRhs(false);
}
