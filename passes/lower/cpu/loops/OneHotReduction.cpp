//===- OneHotReduction.cpp - sums over rows that are one element of them --===//
#include "passes/lower/cpu/loops/OneHotReduction.h"

#include "ir/Ops.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;

/// True if `value` is the index of `dim` at each of `index`.
static bool isIndexOf(Value value, unsigned dim, ArrayRef<AffineExpr> index) {
  auto iota = value.getDefiningOp<IotaOp>();
  return iota && iota.getType().getElementType().isInteger() &&
         index[iota.getDim()] == getAffineDimExpr(dim, value.getContext());
}

std::optional<OneHotReduction>
lower::cpu::findOneHotReduction(const LoopNest::Reduction &reduction,
                                const LoopNest &nest, unsigned dim) {
  ReductionOpInterface op = reduction.op;
  auto sum = dyn_cast<ReduceSumOp>(op.getOperation());
  auto select = sum ? sum.getX().getDefiningOp<SelectOp>() : SelectOp();
  auto hit =
      select ? select.getCondition().getDefiningOp<CompareOp>() : CompareOp();
  if (!hit || hit.getPredicate() != ComparePredicate::eq ||
      !(matchPattern(select.getRhs(), m_AnyZeroFloat()) ||
        matchPattern(select.getRhs(), m_Zero())) ||
      nest.dims(/*isReduced=*/true) != SmallVector<unsigned>{dim})
    return std::nullopt;
  for (auto [index, other] :
       {std::pair<Value, Value>{hit.getLhs(), hit.getRhs()},
        {hit.getRhs(), hit.getLhs()}}) {
    auto repeat = other.getDefiningOp<BroadcastOp>();
    if (!repeat || !isIndexOf(index, dim, reduction.index))
      continue;
    Place place, source;
    place.index.assign(reduction.index.begin(), reduction.index.end());
    SmallVector<IndexGuard> inside;
    if (!throughView(repeat, place, nest.sizes, source, inside) ||
        !inside.empty() || !source.guards.empty() ||
        llvm::any_of(source.index, [&](AffineExpr expr) {
          return expr.isFunctionOfDim(dim);
        }))
      continue;
    return OneHotReduction{
        select.getLhs(), repeat.getX(),
        SmallVector<AffineExpr>(source.index.begin(), source.index.end())};
  }
  return std::nullopt;
}
