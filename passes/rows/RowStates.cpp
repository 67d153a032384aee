//===- RowStates.cpp - how values follow from the rows of a batch ---------===//
#include "passes/rows/RowStates.h"

#include "ir/Signature.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tandem;

using Kind = RowState::Kind;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static int64_t rankOf(Value value) {
  return static_cast<int64_t>(shapeOf(value).size());
}

static RowState each(int64_t dim, int64_t block) {
  RowState state;
  state.kind = Kind::Each;
  state.dim = dim;
  state.block = block;
  return state;
}

static RowState constant(llvm::BitVector uniform) {
  RowState state;
  state.kind = Kind::Constant;
  state.uniform = std::move(uniform);
  return state;
}

static RowState plain(Kind kind) {
  RowState state;
  state.kind = kind;
  return state;
}

BlockArgument tandem::seenThroughViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto cast = dyn_cast<CastOp>(op);
    bool isCast = cast && getElementTypeOrSelf(value).isInteger() &&
                  getElementTypeOrSelf(op->getOperand(0)).isInteger();
    auto view = dyn_cast<ViewOpInterface>(op);
    if (!isCast && (!view || view.getFill()))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

RowStates::RowStates(func::FuncOp func) : func(func) {
  for (BlockArgument argument : func.getArguments())
    if (RoleAttr role = roleOfArgument(func, argument.getArgNumber());
        role && role.getKind() == RoleKind::Input && !rows &&
        rankOf(argument) > 0)
      rows = shapeOf(argument)[0];
  for (BlockArgument argument : func.getArguments())
    states[argument] = ofArgument(argument);
  for (Operation &op : func.getBody().front())
    visit(&op);
}

RowState RowStates::ofArgument(BlockArgument argument) const {
  RoleAttr role = roleOfArgument(func, argument.getArgNumber());
  if (role && role.getKind() == RoleKind::Input && rankOf(argument) > 0 &&
      shapeOf(argument)[0] == rows)
    return each(0, 1);
  return constant(llvm::BitVector(rankOf(argument)));
}

void RowStates::visit(Operation *op) {
  bool isConstant = op->getNumRegions() == 0 &&
                    llvm::all_of(op->getOperands(), [&](Value operand) {
                      return of(operand).is(Kind::Constant);
                    });
  RowState state =
      llvm::TypeSwitch<Operation *, RowState>(op)
          .Case([&](ConstantOp constantOp) {
            return constant(llvm::BitVector(rankOf(constantOp.getY()),
                                            bool(constantOp.getSplat())));
          })
          .Case([&](IotaOp iota) {
            llvm::BitVector uniform(rankOf(iota.getY()), true);
            uniform.reset(static_cast<unsigned>(iota.getDim()));
            return constant(uniform);
          })
          .Case([&](PointwiseOpInterface) { return ofPointwise(op); })
          .Case([&](ViewOpInterface) { return ofView(op); })
          .Case([&](ReductionOpInterface) { return ofReduction(op); })
          .Case([&](MatmulOp matmul) { return ofMatmul(matmul); })
          .Case([&](TakeOp take) { return ofTake(take); })
          .Case([&](CumsumOp cumsum) { return along(op, cumsum.getDim()); })
          .Case([&](SortOp sort) { return along(op, sort.getDim()); })
          .Case<Conv2dOp, MaxPool2dOp, AvgPool2dOp, AttentionForwardOp>(
              [&](Operation *) {
                // Of the first dimension of the first operand; of the others,
                // filters are constant, and keys and values go with queries.
                RowState first = of(op->getOperand(0));
                bool fits = first.is(Kind::Each) && first.dim == 0;
                for (Value other : llvm::drop_begin(op->getOperands())) {
                  RowState state = of(other);
                  fits &= isa<Conv2dOp>(op)
                              ? state.is(Kind::Constant)
                              : state.is(Kind::Each) && state.dim == 0 &&
                                    state.block == first.block;
                }
                fits &= !isa<AttentionForwardOp>(op) ||
                        rankOf(op->getOperand(0)) > 2;
                return fits ? first : RowState();
              })
          .Default([](Operation *) { return RowState(); });
  if (state.is(Kind::Unknown) && isConstant)
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType()))
        states[result] = constant(llvm::BitVector(rankOf(result)));
  if (!state.is(Kind::Unknown))
    for (Value result : op->getResults())
      states[result] = state;
}

bool RowStates::isUniform(Value value, int64_t dim) const {
  RowState state = of(value);
  return state.is(Kind::Constant) && state.uniform.test(unsigned(dim));
}

RowState RowStates::ofPointwise(Operation *op) const {
  std::optional<RowState> rowwise;
  llvm::BitVector uniform(rankOf(op->getResult(0)), true);
  for (Value operand : op->getOperands()) {
    RowState state = of(operand);
    if (state.is(Kind::Constant)) {
      uniform &= state.uniform;
      continue;
    }
    if (!state.is(Kind::Each))
      return ofSums(op);
    if (rowwise && (rowwise->dim != state.dim || rowwise->block != state.block))
      return {};
    rowwise = state;
  }
  // What goes by its place of itself, as a random number does, is an op with
  // operands that do.
  if (!rowwise)
    return constant(uniform);
  for (Value operand : op->getOperands())
    if (of(operand).is(Kind::Constant) && !isUniform(operand, rowwise->dim))
      return {};
  return *rowwise;
}

/// Of operands among which are sums: what is linear in them stays one.
RowState RowStates::ofSums(Operation *op) const {
  auto isTotal = [](const RowState &state) {
    return state.is(Kind::Sum) || state.is(Kind::Mean) ||
           state.is(Kind::Weighted);
  };
  RowState first = of(op->getOperand(0));
  if (isa<NegOp, CastOp, DetachOp>(op)) {
    Type element = getElementTypeOrSelf(op->getResult(0));
    return isa<FloatType>(element) ? first : RowState();
  }
  if (op->getNumOperands() != 2)
    return {};
  RowState second = of(op->getOperand(1));
  if (isa<DivOp>(op) && isTotal(first))
    return second.is(Kind::Constant)
               ? first
               : ofQuotient(op->getOperand(0), op->getOperand(1));
  if (isa<MulOp>(op)) {
    if (first.is(Kind::Constant) && isTotal(second))
      return second;
    return second.is(Kind::Constant) && isTotal(first) ? first : RowState();
  }
  if (!isa<AddOp, SubOp>(op))
    return {};
  if (first.is(Kind::Constant))
    std::swap(first, second);
  if (!isTotal(first))
    return {};
  if (second.is(Kind::Constant))
    return first.is(Kind::Sum) ? plain(Kind::Mean) : first;
  if (first.is(Kind::Weighted) || second.is(Kind::Weighted)) {
    bool isSame = first.kind == second.kind &&
                  first.counted == second.counted &&
                  first.ignored == second.ignored;
    return isSame ? first : RowState();
  }
  if (!isTotal(second))
    return {};
  return plain(first.kind == second.kind ? first.kind : Kind::Mean);
}

/// A sum over rows, divided by the number of elements of an integer input that
/// are not one value: a mean over those that count.
RowState RowStates::ofQuotient(Value total, Value count) const {
  while (auto cast = count.getDefiningOp<CastOp>())
    count = cast.getX();
  auto sum = count.getDefiningOp<ReduceSumOp>();
  if (!of(total).is(Kind::Sum) || !sum ||
      rankOf(sum.getX()) != static_cast<int64_t>(sum.getDims().size()))
    return {};
  Value counted = sum.getX();
  while (auto cast = counted.getDefiningOp<CastOp>())
    counted = cast.getX();
  auto compare = counted.getDefiningOp<CompareOp>();
  if (!compare || compare.getPredicate() != ComparePredicate::ne)
    return {};
  BlockArgument labels = seenThroughViews(compare.getLhs());
  APInt ignored;
  if (!labels || !of(labels).is(Kind::Each) ||
      cast<RankedTensorType>(labels.getType()).getNumElements() !=
          cast<RankedTensorType>(counted.getType()).getNumElements() ||
      !matchPattern(compare.getRhs(), m_ConstantInt(&ignored)))
    return {};
  RowState state = plain(Kind::Weighted);
  state.counted = roleOfArgument(func, labels.getArgNumber()).getName();
  state.ignored = ignored.getSExtValue();
  return state;
}

RowState RowStates::ofView(Operation *op) const {
  if (isa<ReshapeOp>(op))
    return ofReshape(op);
  auto view = cast<ViewOpInterface>(op);
  Value from = op->getOperand(0), to = op->getResult(0);
  RowState state = of(from);
  AffineMap map = view.getIndexMap();
  if (state.is(Kind::Each)) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(unsigned(state.dim)));
    if (!dim || shapeOf(to)[dim.getPosition()] != shapeOf(from)[state.dim])
      return {};
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (int64_t(i) != state.dim && expr.isFunctionOfDim(dim.getPosition()))
        return {};
    return each(dim.getPosition(), state.block);
  }
  if (!state.is(Kind::Constant))
    // Elements of a sum over rows are sums.
    return view.getFill() || state.is(Kind::Unknown) ? RowState() : state;
  llvm::BitVector uniform(rankOf(to), !view.getFill());
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    for (unsigned d = 0; d < uniform.size(); ++d)
      if (!state.uniform.test(i) && expr.isFunctionOfDim(d))
        uniform.reset(d);
  return constant(uniform);
}

/// The same elements in row-major order. A dimension over rows with nothing but
/// sizes of 1 before it stays one as long as the new one can be cut between
/// rows.
RowState RowStates::ofReshape(Operation *op) const {
  Value from = op->getOperand(0), to = op->getResult(0);
  RowState state = of(from);
  if (state.is(Kind::Constant))
    return constant(llvm::BitVector(rankOf(to), state.uniform.all()));
  if (!state.is(Kind::Each))
    return state;
  ArrayRef<int64_t> before = shapeOf(from).take_front(state.dim),
                    shape = shapeOf(to);
  if (shape.take_front(state.dim + 1) ==
      shapeOf(from).take_front(state.dim + 1))
    return state;
  if (!rows || llvm::any_of(before, [](int64_t size) { return size != 1; }))
    return {};
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size != 1 || rows == 1)
      return size % rows == 0 ? each(int64_t(dim), size / rows) : RowState();
  }
  return {};
}

RowState RowStates::ofReduction(Operation *op) const {
  ArrayRef<int64_t> dims = cast<ReductionOpInterface>(op).getReducedDims();
  Value from = op->getOperand(0);
  RowState state = of(from);
  if (state.is(Kind::Each)) {
    if (llvm::is_contained(dims, state.dim))
      return isa<ReduceSumOp>(op) ? plain(Kind::Sum) : RowState();
    int64_t before =
        llvm::count_if(dims, [&](int64_t dim) { return dim < state.dim; });
    return each(state.dim - before, state.block);
  }
  if (state.is(Kind::Constant)) {
    llvm::BitVector uniform;
    for (int64_t d = 0; d < rankOf(from); ++d)
      if (!llvm::is_contained(dims, d))
        uniform.push_back(state.uniform.test(unsigned(d)));
    return constant(uniform);
  }
  return isa<ReduceSumOp>(op) ? state : RowState();
}

RowState RowStates::ofMatmul(MatmulOp op) const {
  RowState lhs = of(op.getLhs()), rhs = of(op.getRhs());
  int64_t outer = rankOf(op.getY()) - 2;
  if (!lhs.is(Kind::Each))
    std::swap(lhs, rhs);
  if (!lhs.is(Kind::Each))
    return {};
  bool isLeft = of(op.getLhs()).is(Kind::Each);
  Value other = isLeft ? op.getRhs() : op.getLhs();
  if (lhs.dim < outer)
    return (rhs.is(Kind::Each) && rhs.dim == lhs.dim &&
            rhs.block == lhs.block) ||
                   isUniform(other, lhs.dim)
               ? lhs
               : RowState();
  if (!rhs.is(Kind::Constant))
    return {};
  int64_t rowDim = isLeft ? outer + (op.getTransposeLhs() ? 1 : 0)
                          : outer + (op.getTransposeRhs() ? 0 : 1);
  if (lhs.dim != rowDim)
    return {};
  return each(isLeft ? outer : outer + 1, lhs.block);
}

RowState RowStates::ofTake(TakeOp op) const {
  RowState table = of(op.getTable()), indices = of(op.getIndices());
  if (table.is(Kind::Constant) && indices.is(Kind::Each))
    return indices;
  if (indices.is(Kind::Constant) && table.is(Kind::Each) && table.dim > 0)
    return each(table.dim - 1 + rankOf(op.getIndices()), table.block);
  return {};
}

/// Of an op that goes along `dim`, and keeps the shape.
RowState RowStates::along(Operation *op, int64_t dim) const {
  RowState state = of(op->getOperand(0));
  return state.is(Kind::Each) && state.dim != dim ? state : RowState();
}
