//===- LoopSpaces.cpp - spaces of indices that loops may have -------------===//
#include "passes/plan/LoopSpaces.h"

#include "ir/Ops.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tandem;

using IsInside = llvm::function_ref<bool(Operation *)>;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

SmallVector<LoopSpace> tandem::loopSpaces(ArrayRef<Value> results,
                                          IsInside isInside) {
  SmallVector<LoopSpace> spaces;
  SmallVector<Value> work(results);
  DenseSet<Value> seen;
  SmallVector<Value> values;
  bool hasReductions = false;
  for (size_t i = 0; i < work.size(); ++i) {
    if (!seen.insert(work[i]).second)
      continue;
    values.push_back(work[i]);
    Operation *op = work[i].getDefiningOp();
    if (!op || !isInside(op))
      continue;
    hasReductions |= isa<ReductionOpInterface>(op);
    llvm::append_range(work, op->getOperands());
  }
  auto add = [&](LoopSpace space) {
    for (const LoopSpace &known : spaces)
      if (known.sizes == space.sizes && known.reduced == space.reduced)
        return;
    spaces.push_back(std::move(space));
  };
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (hasReductions) {
      auto reduction = dyn_cast_or_null<ReductionOpInterface>(op);
      if (!reduction || !isInside(op))
        continue;
      ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape();
      LoopSpace space{SmallVector<int64_t>(shape),
                      SmallVector<bool>(shape.size(), false)};
      for (int64_t d : reduction.getReducedDims())
        space.reduced[d] = true;
      add(std::move(space));
    } else if (typeOf(value).getNumElements() ==
               typeOf(results[0]).getNumElements()) {
      ArrayRef<int64_t> shape = typeOf(value).getShape();
      add({SmallVector<int64_t>(shape),
           SmallVector<bool>(shape.size(), false)});
    }
  }
  return spaces;
}

bool tandem::hasDivision(AffineExpr expr) {
  bool found = false;
  expr.walk([&](AffineExpr part) {
    found |= part.getKind() == AffineExprKind::Mod ||
             part.getKind() == AffineExprKind::FloorDiv ||
             part.getKind() == AffineExprKind::CeilDiv;
  });
  return found;
}

/// Where `expr` cuts dimension `d`: products of what the index is divided by.
static void addCuts(AffineExpr expr, unsigned d,
                    llvm::SetVector<int64_t> &cuts) {
  expr.walk([&](AffineExpr part) {
    auto division = dyn_cast<AffineBinaryOpExpr>(part);
    if (!division || !part.isFunctionOfDim(d) ||
        (part.getKind() != AffineExprKind::Mod &&
         part.getKind() != AffineExprKind::FloorDiv))
      return;
    auto by = dyn_cast<AffineConstantExpr>(division.getRHS());
    int64_t cut = by ? by.getValue() : 0;
    // (x floordiv a) mod b is cut at a and at a * b.
    if (auto inner = dyn_cast<AffineBinaryOpExpr>(division.getLHS());
        inner && inner.getKind() == AffineExprKind::FloorDiv)
      if (auto first = dyn_cast<AffineConstantExpr>(inner.getRHS()))
        cut *= first.getValue();
    cuts.insert(cut);
  });
}

/// The least innermost size that a dimension is cut to: a vector.
static constexpr int64_t kLeastCut = 16;

std::optional<LoopSpace> tandem::cutSpace(const LoopSpace &space,
                                          ArrayRef<AffineExpr> exprs) {
  LoopSpace result;
  for (auto [d, size] : llvm::enumerate(space.sizes)) {
    llvm::SetVector<int64_t> found;
    if (!space.reduced[d])
      for (AffineExpr expr : exprs)
        addCuts(expr, d, found);
    SmallVector<int64_t> cuts = found.takeVector(), parts;
    llvm::sort(cuts);
    int64_t last = 1;
    for (int64_t cut : cuts)
      if (cut >= kLeastCut && cut < size && size % cut == 0 &&
          cut % last == 0 && cut > last) {
        parts.push_back(cut / last);
        last = cut;
      }
    parts.push_back(size / last);
    for (int64_t part : llvm::reverse(parts)) {
      result.sizes.push_back(part);
      result.reduced.push_back(space.reduced[d]);
    }
  }
  if (result.sizes.size() == space.sizes.size())
    return std::nullopt;
  return result;
}
