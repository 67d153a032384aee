//===- SplitBatchNorms.cpp - batch norm by the rows of each rank ----------===//
//
// The program stays one of one process: rows are in as many groups as there are
// ranks along `data`, each group is normalized by its own statistics, and the
// new running statistics are the mean over groups, so that ranks agree. A rank
// has the rows of one group, and needs no other to normalize them.
//
// In training alone, and before anything is differentiated.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/shard/Distribution.h"

#include "ir/Expr.h"
#include "ir/Sharding.h"
#include "ir/ops/Composite.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITBATCHNORMS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct SplitBatchNorms : tandem::impl::SplitBatchNormsBase<SplitBatchNorms> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (!module->hasAttr(kBatchNormAttr))
      return markAllAnalysesPreserved();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto axis = mesh ? MeshAxes(mesh).find("data") : std::nullopt;
    if (!axis) {
      module.emitError() << "'" << kBatchNormAttr
                         << "' needs a mesh with an axis 'data', whose ranks "
                            "have rows of their own";
      return signalPassFailure();
    }
    int64_t groups = MeshAxes(mesh).ranksOf(*axis);
    bool isWrong = false, hasAny = false;
    module.walk([&](BatchNormOp op) {
      if (!op.getTraining())
        return;
      hasAny = true;
      isWrong |= failed(split(op, groups));
    });
    if (!hasAny) {
      module.emitError() << "--batch-norm=per-rank has no effect: the model "
                            "has no batch norm of statistics of the batch";
      return signalPassFailure();
    }
    if (isWrong)
      signalPassFailure();
  }

  LogicalResult split(BatchNormOp op, int64_t groups) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Type type = composite::computeType(op->getOperands());
    Expr x = composite::in(b, loc, op.getX(), type);
    SmallVector<int64_t> shape(x.shape()), grouped{groups};
    if (shape[0] % groups != 0)
      return op.emitOpError()
             << "expected a batch (" << shape[0] << ") that divides by the "
             << groups << " ranks of the axis 'data', each of which has "
             << "statistics of its own ('" << kBatchNormAttr << "')";
    grouped.push_back(shape[0] / groups);
    grouped.append(shape.begin() + 1, shape.end());
    // [group, row, channel, ...]
    SmallVector<int64_t> reduced{1};
    for (int64_t dim = 3; dim <= x.rank(); ++dim)
      reduced.push_back(dim);
    x = x.reshape(grouped);
    Expr mean = composite::reduceMean(x, reduced);
    Expr deviation = x - mean.expandReduced(grouped, reduced);
    Expr variance = composite::reduceMean(deviation * deviation, reduced);
    Expr inverse = rsqrt(variance + op.getEpsilon().convertToDouble());
    auto ofChannels = [&](Value value) {
      return composite::in(b, loc, value, type).broadcastTo(grouped, {2});
    };
    Expr y = deviation * inverse.expandReduced(grouped, reduced) *
                 ofChannels(op.getScale()) +
             ofChannels(op.getBias());
    auto agreed = [&](const Expr &all, Value like) -> Value {
      return composite::reduceMean(all, {0}).cast(getElementTypeOrSelf(like));
    };
    op.replaceAllUsesWith(ValueRange{
        y.reshape(shape).cast(getElementTypeOrSelf(op.getX())),
        agreed(mean, op.getMean()), agreed(variance, op.getVariance())});
    op.erase();
    return success();
  }
};

} // namespace
