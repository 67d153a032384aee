//===- PackWeights.cpp - weights as kernels read them best ----------------===//
//
// Panels (passes/common/PackedWeights.h) of the right factors of products that
// do not change: views that are worth computing once, which their mark says.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/PackedWeights.h"
#include "passes/partition/Frozen.h"
#include "passes/target/CpuCaches.h"
#include "passes/target/Target.h"

#include "ir/Ops.h"
#include "ir/PartitionMarks.h"

#include "llvm/Support/MathExtras.h"

namespace tandem {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static int64_t columnsOf(MatmulOp product) {
  return product.getY().getType().getDimSize(1);
}

/// True if a product on a processor gains by reading its right factor from
/// panels that were made before: with wide vectors, of so many rows that panels
/// are better than the weights in place, of so few that making them is not
/// hidden behind the products, and of a k for which caches hold a panel.
static bool gainsByPanels(MatmulOp product) {
  if (!canReadPanels(product))
    return false;
  // Vectors of 128 bits are slow enough for weights in place. Of up to 8 rows,
  // products are sums along k. Of more than 256 rows of wide vectors, making
  // panels beside the products is hidden well enough; of others, four times as
  // many. A panel that is read again for each few rows has to stay in the
  // second-level cache.
  // Small weights stay in caches in any case; and what is missing in the last
  // panel is to be a small part.
  if (!hasFeature(product, "avx2"))
    return false;
  bool isWide = hasFeature(product, "avx512f");
  constexpr int64_t fewRows = 8, smallWeights = 1 << 14;
  int64_t mostRows = isWide ? 256 : 1024;
  int64_t panelBytes = isWide ? caches::kSecondOfWide : caches::kSecond;
  RankedTensorType weights = product.getRhs().getType();
  int64_t rows = product.getY().getType().getDimSize(0);
  int64_t columns = columnsOf(product);
  int64_t inner = weights.getDimSize(product.getTransposeRhs() ? 1 : 0);
  int64_t padded = llvm::alignTo(columns, panelColumns(product));
  return rows > fewRows && rows <= mostRows &&
         weights.getNumElements() >= smallWeights &&
         inner * panelColumns(product) *
                 elementBytes(weights.getElementType()) <=
             panelBytes &&
         4 * padded <= 5 * columns;
}

/// Makes the panels of a product's right factor: views in front of it.
static Value buildPanels(MatmulOp product) {
  OpBuilder b(product);
  Location loc = product.getLoc();
  Value x = product.getRhs();
  bool isTransposed = product.getTransposeRhs();
  unsigned n = isTransposed ? 0 : 1;
  int64_t columns = columnsOf(product);
  int64_t inner = product.getRhs().getType().getDimSize(1 - n);
  int64_t width = panelColumns(product);
  int64_t panels = llvm::divideCeil(columns, width);
  if (int64_t missing = panels * width - columns) {
    int64_t high[2] = {0, 0}, zeros[2] = {0, 0};
    high[n] = missing;
    Type element = product.getRhs().getType().getElementType();
    x = PadOp::create(b, loc, x, zeros, high, zeros,
                      cast<TypedAttr>(b.getZeroAttr(element)));
  }
  if (isTransposed) {
    x = ReshapeOp::create(b, loc, x, ArrayRef<int64_t>{panels, width, inner});
    return PermuteOp::create(b, loc, x, ArrayRef<int64_t>{0, 2, 1});
  }
  x = ReshapeOp::create(b, loc, x, ArrayRef<int64_t>{inner, panels, width});
  return PermuteOp::create(b, loc, x, ArrayRef<int64_t>{1, 0, 2});
}

/// Makes `product` read its right factor, which is what they show, from
/// `panels`, through views.
static void readPanels(MatmulOp product, Value panels) {
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

namespace {

struct PackWeights : tandem::impl::PackWeightsBase<PackWeights> {
  void runOnOperation() final {
    FailureOr<func::FuncOp> evaluate = findFrozenProgram(getOperation());
    if (failed(evaluate))
      return signalPassFailure();
    if (!*evaluate)
      return markAllAnalysesPreserved();
    FrozenValues frozen(*evaluate);
    DenseMap<std::pair<Value, unsigned>, Value> made;
    for (auto product : llvm::to_vector(evaluate->getOps<MatmulOp>())) {
      Value weights = product.getRhs();
      if (!frozen.dependsOnVariables(weights) ||
          frozen.contains(product.getLhs()) || !gainsByPanels(product))
        continue;
      Value &known = made[{weights, product.getTransposeRhs()}];
      if (!known) {
        known = buildPanels(product);
        known.getDefiningOp()->setAttr(
            kPreparedAttr, StringAttr::get(&getContext(), "panels"));
      }
      readPanels(product, known);
      ++packed;
    }
  }
};

} // namespace
