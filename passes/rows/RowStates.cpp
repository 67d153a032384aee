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

static RowState each(int64_t dim, int64_t block, int64_t repeats = 1) {
  RowState state;
  state.kind = Kind::Each;
  state.dim = dim;
  state.block = block;
  state.repeats = repeats;
  return state;
}

/// A state that goes over rows, in another dimension.
static RowState moved(RowState state, int64_t dim) {
  state.dim = dim;
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

/// The elements of what follows from constants by broadcasts and comparisons;
/// null if it does not.
static Attribute constantOf(Value value) {
  Attribute known;
  if (matchPattern(value, m_Constant(&known)))
    return known;
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<BroadcastOp, CompareOp>(op))
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (!operands.emplace_back(constantOf(operand)))
      return {};
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return {};
  return dyn_cast<Attribute>(results.front());
}

/// What a select gives whose condition is one and the same for all elements, as
/// that of what a program does in training alone; null for another op.
static Value chosenBy(Operation *op) {
  auto select = dyn_cast<SelectOp>(op);
  auto condition = select ? dyn_cast_or_null<SplatElementsAttr>(
                                constantOf(select->getOperand(0)))
                          : SplatElementsAttr();
  return condition ? select->getOperand(condition.getSplatValue<bool>() ? 1 : 2)
                   : Value();
}

void RowStates::visit(Operation *op) {
  // The body of a loop is visited until nothing changes.
  for (Value result : op->getResults())
    states.erase(result);
  if (auto scan = dyn_cast<ScanOp>(op))
    return visitScan(scan);
  if (Value chosen = chosenBy(op)) {
    if (RowState state = of(chosen); !state.is(Kind::Unknown))
      states[op->getResult(0)] = state;
    return;
  }
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
                              : state.goesAs(first) && state.dim == 0;
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
    if (rowwise && *rowwise != state)
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
    return moved(state, dim.getPosition());
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

/// The dimensions of a reshape's result along which all elements are equal,
/// from those of its operand. Dimensions that become others together are a
/// group, as are [4, 6] and [24] of [4, 6, 2] and [24, 2].
static llvm::BitVector uniformAfterReshape(Value from, Value to,
                                           const llvm::BitVector &uniform) {
  ArrayRef<int64_t> before = shapeOf(from), after = shapeOf(to);
  llvm::BitVector result(after.size(), uniform.all());
  if (llvm::is_contained(before, 0))
    return result;
  for (size_t i = 0, j = 0; i < before.size() && j < after.size();) {
    bool isUniform = true;
    size_t begin = j;
    int64_t left = 1, right = 1;
    do {
      if (left <= right && i < before.size()) {
        isUniform &= before[i] == 1 || uniform.test(unsigned(i));
        left *= before[i++];
      } else {
        right *= after[j++];
      }
    } while (left != right || j == begin);
    for (size_t d = begin; d < j; ++d)
      result[unsigned(d)] = isUniform || after[d] == 1;
  }
  return result;
}

/// The same elements in row-major order. Element i of the tensor is of row
/// (i / stride) % rows; a dimension goes over rows if no place of it, and
/// nothing of the dimensions behind it, crosses from one row to the next.
RowState RowStates::ofReshape(Operation *op) const {
  Value from = op->getOperand(0), to = op->getResult(0);
  RowState state = of(from);
  if (state.is(Kind::Constant))
    return constant(uniformAfterReshape(from, to, state.uniform));
  if (!state.is(Kind::Each))
    return state;
  auto sizeBehind = [](ArrayRef<int64_t> shape, size_t dim) {
    return ShapedType::getNumElements(shape.drop_front(dim + 1));
  };
  ArrayRef<int64_t> shape = shapeOf(to);
  int64_t stride = state.block * sizeBehind(shapeOf(from), state.dim);
  if (!rows || !stride)
    return {};
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t behind = sizeBehind(shape, dim);
    // With one row every dimension would do: one that has more than one place.
    if (stride % behind != 0 ||
        (size == 1 && rows == 1 && dim + 1 < shape.size()))
      continue;
    int64_t block = stride / behind;
    if (size % (rows * block) == 0)
      return each(int64_t(dim), block, size / (rows * block));
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
    return moved(state, state.dim - before);
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
  if (lhs.is(Kind::Constant) && rhs.is(Kind::Constant)) {
    // A row is uniform with the rows that it is made of, a column likewise.
    llvm::BitVector uniform = lhs.uniform;
    uniform &= rhs.uniform;
    uniform[unsigned(outer)] =
        isUniform(op.getLhs(), outer + (op.getTransposeLhs() ? 1 : 0));
    uniform[unsigned(outer + 1)] =
        isUniform(op.getRhs(), outer + (op.getTransposeRhs() ? 0 : 1));
    return constant(uniform);
  }
  if (!lhs.is(Kind::Each))
    std::swap(lhs, rhs);
  if (!lhs.is(Kind::Each))
    return {};
  bool isLeft = of(op.getLhs()).is(Kind::Each);
  Value other = isLeft ? op.getRhs() : op.getLhs();
  if (lhs.dim < outer)
    return rhs == lhs || isUniform(other, lhs.dim) ? lhs : RowState();
  if (!rhs.is(Kind::Constant))
    return {};
  int64_t rowDim = isLeft ? outer + (op.getTransposeLhs() ? 1 : 0)
                          : outer + (op.getTransposeRhs() ? 0 : 1);
  if (lhs.dim != rowDim)
    return {};
  return moved(lhs, isLeft ? outer : outer + 1);
}

RowState RowStates::ofTake(TakeOp op) const {
  RowState table = of(op.getTable()), indices = of(op.getIndices());
  if (table.is(Kind::Constant) && indices.is(Kind::Each))
    return indices;
  if (indices.is(Kind::Constant) && table.is(Kind::Each) && table.dim > 0)
    return moved(table, table.dim - 1 + rankOf(op.getIndices()));
  return {};
}

/// Of an op that goes along `dim`, and keeps the shape.
RowState RowStates::along(Operation *op, int64_t dim) const {
  RowState state = of(op->getOperand(0));
  return state.is(Kind::Each) && state.dim != dim ? state : RowState();
}

/// What holds of a value that is the one or the other.
RowState RowStates::joined(const RowState &before,
                           const RowState &after) const {
  if (before == after)
    return before;
  if (before.is(Kind::Constant) && after.is(Kind::Constant)) {
    llvm::BitVector uniform = before.uniform;
    uniform &= after.uniform;
    return constant(uniform);
  }
  const RowState &rowwise = before.is(Kind::Each) ? before : after;
  const RowState &other = before.is(Kind::Each) ? after : before;
  bool fits = rowwise.is(Kind::Each) && other.is(Kind::Constant) &&
              other.uniform.test(unsigned(rowwise.dim));
  return fits ? rowwise : RowState();
}

/// A loop over another dimension than rows keeps them apart where its body
/// does. The carries are what they begin with or what the body makes of them:
/// what holds of both is found by visiting it until nothing changes.
void RowStates::visitScan(ScanOp op) {
  if (op.getTrips() && !of(op.getTrips()).is(Kind::Constant))
    return;
  Block &body = op.getBody().front();
  size_t carries = op.getCarries().size();
  auto arguments = body.getArguments();
  for (auto [argument, input] :
       llvm::zip(arguments.drop_front(carries), op.getInputs())) {
    RowState state = of(input);
    if (state.is(Kind::Constant)) {
      llvm::BitVector uniform;
      for (int64_t d = 1; d < rankOf(input); ++d)
        uniform.push_back(state.uniform.test(unsigned(d)));
      state = constant(uniform);
    } else if (state.is(Kind::Each)) {
      state = state.dim ? moved(state, state.dim - 1) : RowState();
    }
    states[argument] = state;
  }
  for (auto [argument, value] :
       llvm::zip(arguments.drop_front(carries + op.getInputs().size()),
                 op.getConstants()))
    states[argument] = of(value);
  for (auto [argument, value] : llvm::zip(arguments, op.getCarries()))
    states[argument] = of(value);

  OperandRange made = body.getTerminator()->getOperands();
  for (bool isStable = false; !isStable;) {
    isStable = true;
    for (Operation &inner : body.without_terminator())
      visit(&inner);
    for (auto [argument, value] :
         llvm::zip(arguments.take_front(carries), made)) {
      RowState state = joined(of(argument), of(value));
      isStable &= state == of(argument);
      states[argument] = state;
    }
  }
  for (size_t i = 0; i < carries; ++i)
    states[op.getResult(i)] = of(arguments[i]);
  for (auto [stack, value] : llvm::zip(op.stacks(), made.drop_front(carries))) {
    RowState state = of(value);
    if (state.is(Kind::Constant)) {
      llvm::BitVector uniform(1);
      for (unsigned d = 0; d < state.uniform.size(); ++d)
        uniform.push_back(state.uniform.test(d));
      state = constant(uniform);
    } else if (state.is(Kind::Each)) {
      state = moved(state, state.dim + 1);
    }
    states[stack] = state;
  }
}
