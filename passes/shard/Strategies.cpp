//===- Strategies.cpp - how an op is computed by the ranks of an axis -----===//
#include "passes/shard/Strategies.h"

#include "ir/ops/Convolution.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace tandem;

using Strategies = SmallVector<Strategy>;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static int64_t rankOf(Value value) {
  return static_cast<int64_t>(shapeOf(value).size());
}

static Placement whole() { return Placement::whole(); }
static Placement cut(int64_t dim, int64_t unit = 1) {
  return Placement::cut(dim, unit);
}
static Placement partial() { return Placement::partial(); }

static Strategy oneResult(ArrayRef<Placement> operands, Placement result,
                          Fill fill = Fill::Any) {
  return {SmallVector<Placement, 3>(operands), {result}, false, fill};
}

Strategy Strategy::scaled(int64_t times) const {
  Strategy result = *this;
  for (Placement &placement : result.operands)
    placement.unit *= placement.isCut() ? times : 1;
  for (Placement &placement : result.results)
    placement.unit *= placement.isCut() ? times : 1;
  return result;
}

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

/// The operands that the op is linear in together: a part of a sum of them
/// gives a part of the sum of results. Others are whole. Each list is one way.
static SmallVector<SmallVector<unsigned>> linearOperands(Operation *op) {
  if (op->getNumResults() != 1 || !isFloat(op->getResult(0)))
    return {};
  return llvm::TypeSwitch<Operation *, SmallVector<SmallVector<unsigned>>>(op)
      .Case<AddOp, SubOp, AccumulateOp>([](auto) {
        return SmallVector<SmallVector<unsigned>>{{0, 1}};
      })
      .Case<NegOp, OrZeroOp, DivOp>(
          [](auto) { return SmallVector<SmallVector<unsigned>>{{0}}; })
      .Case<MulOp>([](auto) {
        return SmallVector<SmallVector<unsigned>>{{0}, {1}};
      })
      .Case<IfDefinedOp>([](auto) {
        return SmallVector<SmallVector<unsigned>>{{0, 1}};
      })
      .Case<SelectOp>([](auto) {
        return SmallVector<SmallVector<unsigned>>{{1, 2}};
      })
      .Case([](CastOp cast) {
        // Each part would be rounded by itself.
        unsigned before =
            getElementTypeOrSelf(cast.getX()).getIntOrFloatBitWidth();
        unsigned after =
            getElementTypeOrSelf(cast.getY()).getIntOrFloatBitWidth();
        return isFloat(cast.getX()) && before <= after
                   ? SmallVector<SmallVector<unsigned>>{{0}}
                   : SmallVector<SmallVector<unsigned>>{};
      })
      .Default(SmallVector<SmallVector<unsigned>>{});
}

static void addPointwise(Operation *op, Strategies &list) {
  unsigned n = op->getNumOperands();
  for (int64_t dim = 0; dim < rankOf(op->getResult(0)); ++dim)
    list.push_back(oneResult(SmallVector<Placement>(n, cut(dim)), cut(dim)));
  for (const SmallVector<unsigned> &linear : linearOperands(op)) {
    SmallVector<Placement> operands(n, whole());
    for (unsigned i : linear)
      if (i < n)
        operands[i] = partial();
    list.push_back(oneResult(operands, partial()));
  }
}

//===----------------------------------------------------------------------===//
// Elements that move
//===----------------------------------------------------------------------===//

SmallVector<ReshapedDim> tandem::outermostDims(ArrayRef<int64_t> from,
                                               ArrayRef<int64_t> to) {
  SmallVector<ReshapedDim> dims;
  if (llvm::is_contained(from, 0))
    return dims;
  size_t i = 0, j = 0;
  while (true) {
    while (i < from.size() && from[i] == 1)
      ++i;
    while (j < to.size() && to[j] == 1)
      ++j;
    if (i == from.size() || j == to.size())
      return dims;
    ReshapedDim dim{int64_t(i), int64_t(j)};
    int64_t left = from[i++], right = to[j++];
    // Elements of one index of the outermost dimensions.
    int64_t ofLeft = 1, ofRight = 1;
    while (left != right)
      if (left < right)
        left *= from[i], ofLeft *= from[i++];
      else
        right *= to[j], ofRight *= to[j++];
    int64_t both = std::lcm(ofLeft, ofRight);
    dim.fromUnit = both / ofLeft;
    dim.toUnit = both / ofRight;
    dims.push_back(dim);
  }
}

/// A dimension stays one if an index of it is an index of the operand's, and
/// nothing else follows from it.
static void addView(Operation *op, Strategies &list) {
  Value from = op->getOperand(0), to = op->getResult(0);
  auto view = cast<ViewOpInterface>(op);
  if (isa<ReshapeOp>(op)) {
    for (ReshapedDim dim : outermostDims(shapeOf(from), shapeOf(to)))
      list.push_back(
          oneResult({cut(dim.from, dim.fromUnit)}, cut(dim.to, dim.toUnit)));
  } else {
    AffineMap map = view.getIndexMap();
    for (int64_t j = 0; j < rankOf(to); ++j) {
      int64_t source = -1, readers = 0;
      for (auto [i, expr] : llvm::enumerate(map.getResults())) {
        if (!expr.isFunctionOfDim(unsigned(j)))
          continue;
        ++readers;
        if (isa<AffineDimExpr>(expr) && shapeOf(from)[i] == shapeOf(to)[j])
          source = int64_t(i);
      }
      if (readers == 0 && isa<BroadcastOp>(op))
        list.push_back(oneResult({whole()}, cut(j)));
      else if (readers == 1 && source >= 0)
        list.push_back(oneResult({cut(source)}, cut(j)));
    }
  }
  bool isZeroFill = true;
  if (TypedAttr fill = view.getFill()) {
    auto number = dyn_cast<FloatAttr>(fill);
    isZeroFill = number && number.getValue().isZero();
  }
  if (isZeroFill && isFloat(to))
    list.push_back(oneResult({partial()}, partial()));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static void addReduction(Operation *op, Strategies &list) {
  ArrayRef<int64_t> dims = cast<ReductionOpInterface>(op).getReducedDims();
  std::optional<CollectiveReduce> reduce;
  Fill fill = Fill::None;
  bool hasInfinity = isFloat(op->getOperand(0));
  if (isa<ReduceSumOp>(op)) {
    reduce = CollectiveReduce::sum;
    fill = Fill::Zero;
  } else if (isa<ReduceMaxOp>(op)) {
    reduce = CollectiveReduce::max;
    fill = hasInfinity ? Fill::Lowest : Fill::None;
  } else if (isa<ReduceMinOp>(op)) {
    reduce = CollectiveReduce::min;
    fill = hasInfinity ? Fill::Highest : Fill::None;
  }
  int64_t result = 0;
  for (int64_t dim = 0; dim < rankOf(op->getOperand(0)); ++dim) {
    if (!llvm::is_contained(dims, dim))
      list.push_back(oneResult({cut(dim)}, cut(result++)));
    else if (reduce)
      list.push_back(oneResult({cut(dim)}, Placement::partial(*reduce), fill));
  }
  if (isa<ReduceSumOp>(op))
    list.push_back(oneResult({partial()}, partial()));
}

static void addMatmul(MatmulOp op, Strategies &list) {
  int64_t outer = rankOf(op.getY()) - 2;
  int64_t m = outer + (op.getTransposeLhs() ? 1 : 0);
  int64_t lhsK = outer + (op.getTransposeLhs() ? 0 : 1);
  int64_t n = outer + (op.getTransposeRhs() ? 0 : 1);
  int64_t rhsK = outer + (op.getTransposeRhs() ? 1 : 0);
  for (int64_t dim = 0; dim < outer; ++dim)
    list.push_back(oneResult({cut(dim), cut(dim)}, cut(dim)));
  list.push_back(oneResult({cut(m), whole()}, cut(outer)));
  list.push_back(oneResult({whole(), cut(n)}, cut(outer + 1)));
  // Both: a number that is none stays one, times a zero.
  list.push_back(oneResult({cut(lhsK), cut(rhsK)}, partial(), Fill::Zero));
  list.push_back(oneResult({partial(), whole()}, partial()));
  list.push_back(oneResult({whole(), partial()}, partial()));
}

/// Images are cut; filters only where there are no groups, whose channels
/// belong together.
static void addConvolution(Operation *op, Strategies &list) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](Conv2dOp conv) {
        list.push_back(oneResult({cut(0), whole()}, cut(0)));
        if (conv.getGroups() == 1) {
          list.push_back(oneResult({whole(), cut(0)}, cut(1)));
          list.push_back(oneResult({cut(1), cut(1)}, partial(), Fill::Zero));
        }
      })
      .Case([&](Conv2dInputGradOp conv) {
        list.push_back(oneResult({cut(0), whole()}, cut(0)));
        if (conv.getGroups() == 1) {
          list.push_back(oneResult({whole(), cut(1)}, cut(1)));
          list.push_back(oneResult({cut(1), cut(0)}, partial(), Fill::Zero));
        }
      })
      .Case([&](Conv2dFilterGradOp conv) {
        list.push_back(oneResult({cut(0), cut(0)}, partial(), Fill::Zero));
        if (conv.getGroups() == 1) {
          list.push_back(oneResult({whole(), cut(1)}, cut(0)));
          list.push_back(oneResult({cut(1), whole()}, cut(1)));
        }
      });
  list.push_back(oneResult({partial(), whole()}, partial()));
  list.push_back(oneResult({whole(), partial()}, partial()));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

static void addTake(TakeOp op, Strategies &list) {
  int64_t rank = rankOf(op.getIndices());
  for (int64_t dim = 0; dim < rank; ++dim)
    list.push_back(oneResult({whole(), cut(dim)}, cut(dim)));
  for (int64_t dim = 1; dim < rankOf(op.getTable()); ++dim)
    list.push_back(oneResult({cut(dim), whole()}, cut(dim - 1 + rank)));
  if (!isFloat(op.getTable()))
    return;
  list.push_back(
      {{cut(0), whole()}, {partial()}, /*masksRows=*/true, Fill::Any});
  list.push_back(oneResult({partial(), whole()}, partial()));
}

static void addTakeGrad(TakeGradOp op, Strategies &list) {
  int64_t rank = rankOf(op.getIndices());
  for (int64_t dim = 0; dim < rank; ++dim)
    // Nothing is added to whatever row an index of padding names.
    list.push_back(oneResult({cut(dim), cut(dim)}, partial(), Fill::Zero));
  for (int64_t dim = 1; dim < rankOf(op.getY()); ++dim)
    list.push_back(oneResult({cut(dim - 1 + rank), whole()}, cut(dim)));
  // Rows of other ranks are outside of the table, and ignored.
  list.push_back({{whole(), whole()}, {cut(0)}, /*masksRows=*/true, Fill::Any});
  list.push_back(oneResult({partial(), whole()}, partial()));
}

static void addScatter(ScatterOp op, Strategies &list) {
  int64_t rank = rankOf(op.getIndices());
  for (int64_t dim = 1; dim < rankOf(op.getTable()); ++dim)
    list.push_back(
        oneResult({cut(dim), whole(), cut(dim - 1 + rank)}, cut(dim)));
}

/// Ops that go along one dimension, or over some: the others are cut, of all
/// operands and results that have them.
static void addOtherDims(Operation *op, ArrayRef<int64_t> dims,
                         Strategies &list) {
  for (int64_t dim : dims) {
    Strategy strategy;
    strategy.operands.assign(op->getNumOperands(), cut(dim));
    strategy.results.assign(op->getNumResults(), cut(dim));
    list.push_back(std::move(strategy));
  }
}

static SmallVector<int64_t> dimsBut(Value value, int64_t but) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rankOf(value); ++dim)
    if (dim != but)
      dims.push_back(dim);
  return dims;
}

SmallVector<Strategy> tandem::strategiesOf(Operation *op) {
  Strategies list;
  Strategy replicated;
  replicated.operands.assign(op->getNumOperands(), whole());
  replicated.results.assign(op->getNumResults(), whole());
  list.push_back(std::move(replicated));
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ConstantOp constant) {
        if (constant.getSplat())
          addOtherDims(op, dimsBut(constant.getY(), -1), list);
      })
      .Case([&](IotaOp iota) {
        addOtherDims(op, dimsBut(iota.getY(), -1), list);
      })
      .Case<ViewOpInterface>([&](auto) { addView(op, list); })
      .Case<PointwiseOpInterface>([&](auto) { addPointwise(op, list); })
      .Case<ReductionOpInterface>([&](auto) { addReduction(op, list); })
      .Case([&](MatmulOp matmul) { addMatmul(matmul, list); })
      .Case<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp>(
          [&](auto) { addConvolution(op, list); })
      .Case<AttentionForwardOp, AttentionQueryGradOp, AttentionKeyGradOp>(
          [&](auto) {
            // What is softmax over keys, and what is one product per head.
            SmallVector<int64_t> dims;
            for (int64_t dim = 0; dim < rankOf(op->getOperand(0)) - 2; ++dim)
              dims.push_back(dim);
            addOtherDims(op, dims, list);
          })
      .Case([&](TakeOp take) { addTake(take, list); })
      .Case([&](TakeGradOp grad) { addTakeGrad(grad, list); })
      .Case([&](ScatterOp scatter) { addScatter(scatter, list); })
      .Case([&](CumsumOp cumsum) {
        addOtherDims(op, dimsBut(cumsum.getX(), cumsum.getDim()), list);
      })
      .Case([&](SortOp sort) {
        addOtherDims(op, dimsBut(sort.getX(), sort.getDim()), list);
      })
      // Planes by themselves.
      .Case<MaxPool2dOp, MaxPool2dGradOp, MaxPool2dTakeOp, AvgPool2dOp,
            AvgPool2dGradOp>([&](auto) {
        addOtherDims(op, {0, 1}, list);
      });
  return list;
}
