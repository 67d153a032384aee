//===- HoistSums.cpp - sums that loops carry ------------------------------===//
//
// The gradient of a loop's constant is a carry: each iteration adds its part,
//
//   g' = g + matmul(a, b)
//
// with a contraction over the few rows that one iteration has. Where nothing in
// the loop reads g, all parts can be computed behind it:
//
//   g' = g + matmul(all a's, all b's)
//
// with a contraction over the rows of all iterations, and without one pass over
// g in each of them. The factors are stacks: inputs of the loop, what it yields
// anyway, or new ones. The same holds for sums over dimensions, and for sums
// and views of both. The order of the additions is another one than before.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/Tags.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_HOISTSUMS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class Hoister {
public:
  explicit Hoister(ScanOp scan)
      : scan(scan), body(scan.getBody().front()), yield(body.getTerminator()),
        numCarries(scan.getCarries().size()),
        numInputs(scan.getInputs().size()) {}
  /// How many carries left the loop; if some did, another op took its place.
  unsigned run();

private:
  /// What carry `i` has added to it in each iteration, if that is all that is
  /// done with it.
  Value addedTo(unsigned i);
  /// True if the sum of `value` over the iterations can be computed from
  /// stacks, which are added to `factors`.
  bool isSum(Value value, SmallVector<Value> &factors);
  /// Where the stack of a value of the body comes from.
  bool isInput(Value value);
  bool isYielded(Value value);
  /// The sum of `value` over the iterations.
  Expr total(Value value);
  Expr stackOf(Value value);
  /// The stack with the rows of all iterations as dimension 0.
  Expr rows(Value value);

  ScanOp scan;
  Block &body;
  Operation *yield;
  unsigned numCarries, numInputs;
  std::optional<OpBuilder> builder;
  Location loc = UnknownLoc::get(scan.getContext());
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value Hoister::addedTo(unsigned i) {
  BlockArgument carry = body.getArgument(i);
  if (!carry.hasOneUse())
    return {};
  auto add = dyn_cast<AddOp>(*carry.user_begin());
  if (!add || !add->hasOneUse() || yield->getOperand(i) != add.getResult())
    return {};
  return add.getLhs() == carry ? add.getRhs() : add.getLhs();
}

/// The contracted dimension is the first one of both.
static bool contractsRows(MatmulOp product) {
  return typeOf(product.getLhs()).getRank() == 2 && product.getTransposeLhs() &&
         !product.getTransposeRhs();
}

bool Hoister::isSum(Value value, SmallVector<Value> &factors) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto product = dyn_cast<MatmulOp>(op)) {
    factors.append({product.getLhs(), product.getRhs()});
    return contractsRows(product);
  }
  if (auto sum = dyn_cast<ReduceSumOp>(op)) {
    factors.push_back(sum.getX());
    return true;
  }
  if (auto add = dyn_cast<AddOp>(op))
    return isSum(add.getLhs(), factors) && isSum(add.getRhs(), factors);
  if (auto pad = dyn_cast<PadOp>(op)) {
    auto fill = dyn_cast<FloatAttr>(pad.getValue());
    return fill && fill.getValue().isPosZero() && isSum(pad.getX(), factors);
  }
  return isa<ReshapeOp, PermuteOp, SliceOp>(op) &&
         isSum(op->getOperand(0), factors);
}

/// With `trips` an input has numbers behind the last iteration.
bool Hoister::isInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && !scan.getTrips() &&
         argument.getArgNumber() >= numCarries &&
         argument.getArgNumber() < numCarries + numInputs;
}

bool Hoister::isYielded(Value value) {
  return llvm::is_contained(yield->getOperands().drop_front(numCarries), value);
}

Expr Hoister::stackOf(Value value) {
  if (isInput(value))
    return {*builder, loc,
            scan.getInputs()[cast<BlockArgument>(value).getArgNumber() -
                             numCarries]};
  auto slices = yield->getOperands().drop_front(numCarries);
  auto found = llvm::find(slices, value);
  return {*builder, loc, scan.stacks()[found - slices.begin()]};
}

Expr Hoister::rows(Value value) {
  Expr stack = stackOf(value);
  return stack.reshape({stack.dim(0) * stack.dim(1), stack.dim(2)});
}

Expr Hoister::total(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto product = dyn_cast<MatmulOp>(op)) {
    Value made =
        MatmulOp::create(*builder, loc, product.getType(),
                         rows(product.getLhs()), rows(product.getRhs()),
                         /*transpose_lhs=*/true,
                         /*transpose_rhs=*/false, product.getPrecisionAttr());
    return {*builder, loc, made};
  }
  if (auto sum = dyn_cast<ReduceSumOp>(op)) {
    SmallVector<int64_t> dims = {0};
    for (int64_t dim : sum.getDims())
      dims.push_back(dim + 1);
    return stackOf(sum.getX()).reduceSum(dims);
  }
  if (auto add = dyn_cast<AddOp>(op))
    return total(add.getLhs()) + total(add.getRhs());
  IRMapping map;
  map.map(op->getOperand(0), Value(total(op->getOperand(0))));
  return {*builder, loc, builder->clone(*op, map)->getResult(0)};
}

unsigned Hoister::run() {
  if (scan.getLength() < 2)
    return 0;
  // What leaves, and the stacks that it needs.
  SmallVector<std::pair<unsigned, Value>> sums;
  llvm::SmallSetVector<Value, 4> stacked;
  for (unsigned i = 0; i < numCarries; ++i) {
    Value added = addedTo(i);
    SmallVector<Value> factors;
    if (!added || !isSum(added, factors))
      continue;
    llvm::SmallSetVector<Value, 4> fresh;
    int64_t bytes = 0;
    for (Value factor : factors)
      if (!isInput(factor) && !isYielded(factor) && !stacked.contains(factor) &&
          fresh.insert(factor))
        bytes += byteSize(typeOf(factor));
    if (bytes > byteSize(typeOf(added)))
      continue;
    sums.push_back({i, added});
    stacked.insert_range(fresh);
  }
  if (sums.empty())
    return 0;

  // The same loop with these stacks.
  OpBuilder inFront(scan);
  SmallVector<Type> types(scan.getResultTypes());
  for (Value value : stacked) {
    SmallVector<int64_t> shape = {static_cast<int64_t>(scan.getLength())};
    llvm::append_range(shape, typeOf(value).getShape());
    types.push_back(
        RankedTensorType::get(shape, typeOf(value).getElementType()));
  }
  auto made =
      ScanOp::create(inFront, scan.getLoc(), types, scan.getLengthAttr(),
                     scan.getTrips(), scan.getReverseAttr(), scan.getCarries(),
                     scan.getInputs(), scan.getConstants());
  made->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  made.getBody().takeBody(scan.getBody());
  yield->insertOperands(yield->getNumOperands(), stacked.getArrayRef());
  scan->replaceAllUsesWith(
      made->getResults().take_front(scan->getNumResults()));
  scan->erase();
  scan = made;

  // What the carries end with. In the loop they stay 0, and then disappear.
  builder.emplace(scan.getContext());
  builder->setInsertionPointAfter(scan);
  loc = scan.getLoc();
  Operation *before = scan;
  llvm::SmallBitVector gone(numCarries);
  SmallVector<Value> ends;
  for (auto [i, added] : sums) {
    Expr sum = total(added);
    auto start = scan.getCarries()[i].getDefiningOp<ConstantOp>();
    TypedAttr splat = start ? start.getSplat() : TypedAttr();
    auto number = dyn_cast_or_null<FloatAttr>(splat);
    if (!number || !number.getValue().isPosZero())
      sum = sum.wrap(scan.getCarries()[i]) + sum;
    ends.push_back(sum);
    gone.set(i);
  }
  for (Operation *op = before->getNextNode();
       op != &*builder->getInsertionPoint(); op = op->getNextNode())
    op->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  for (auto [sum, end] : llvm::zip_equal(sums, ends))
    scan.getResult(sum.first).replaceAllUsesWith(end);

  // The loop without them.
  SmallVector<Value> carries;
  SmallVector<Type> left;
  SmallVector<Value> old;
  llvm::BitVector arguments(body.getNumArguments());
  llvm::BitVector yielded(yield->getNumOperands());
  for (unsigned i = 0; i < scan->getNumResults(); ++i) {
    if (i < numCarries && gone.test(i)) {
      arguments.set(i);
      yielded.set(i);
      continue;
    }
    if (i < numCarries)
      carries.push_back(scan.getCarries()[i]);
    left.push_back(scan.getResult(i).getType());
    old.push_back(scan.getResult(i));
  }
  OpBuilder inPlace(scan);
  auto rest = ScanOp::create(inPlace, scan.getLoc(), left, scan.getLengthAttr(),
                             scan.getTrips(), scan.getReverseAttr(), carries,
                             scan.getInputs(), scan.getConstants());
  rest->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  rest.getBody().takeBody(scan.getBody());
  for (auto [from, to] : llvm::zip_equal(old, rest->getResults()))
    from.replaceAllUsesWith(to);
  scan->erase();
  yield->eraseOperands(yielded);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  body.eraseArguments(arguments);
  return sums.size();
}

namespace {
struct HoistSums : tandem::impl::HoistSumsBase<HoistSums> {
  void runOnOperation() final {
    // Inner loops first: their sums may be parts of an outer one's.
    SmallVector<ScanOp> scans;
    getOperation().walk([&](ScanOp scan) { scans.push_back(scan); });
    for (ScanOp scan : scans)
      hoisted += Hoister(scan).run();
  }
};
} // namespace
