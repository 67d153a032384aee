//===- Flow.cpp - branches and loops that data decides --------------------===//
//
// What regions must yield, and the gradients of `if` and `scan`: ops of the
// same kind, whose regions make a region again and then its backward, so that
// they can be differentiated in their turn.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Flow.cpp.inc"

void TandemDialect::addFlowOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Flow.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// What must hold
//===----------------------------------------------------------------------===//

static LogicalResult expectTypes(Operation *op, const Twine &what,
                                 TypeRange expected, TypeRange got) {
  if (expected == got)
    return success();
  return op->emitOpError() << "expected " << what << " to have types ("
                           << expected << "), but got (" << got << ")";
}

/// Regions end with a yield. Storage that they write is their own.
static LogicalResult checkRegions(Operation *op) {
  for (Region &region : op->getRegions()) {
    Block &block = region.front();
    if (block.empty() || !isa<YieldOp>(block.back()))
      return op->emitOpError()
             << "expected each region to end with 'tandem.yield'";
    for (auto inner : block.getOps<CustomVjpOp>()) {
      if (inner.getRefs().empty())
        continue;
      auto error = inner.emitOpError()
                   << "takes refs in a region of '" << op->getName() << "'";
      error.attachNote(op->getLoc()) << "the region's op is here";
      return failure();
    }
  }
  return success();
}

static TypeRange yieldedBy(Region &region) {
  return region.front().getTerminator()->getOperandTypes();
}

LogicalResult IfOp::verify() {
  if (failed(checkRegions(*this)))
    return failure();
  for (auto [region, name] : {std::pair(&getThen(), "the first region"),
                              std::pair(&getOtherwise(), "the second region")})
    if (failed(expectTypes(*this, Twine("the arguments of ") + name,
                           getInputs().getTypes(),
                           region->getArgumentTypes())) ||
        failed(expectTypes(*this, Twine("what ") + name + " yields",
                           getResultTypes(), yieldedBy(*region))))
      return failure();
  return success();
}

/// The type of one slice along dimension 0; null without that dimension.
static Type sliceOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() == 0)
    return {};
  return RankedTensorType::get(tensor.getShape().drop_front(),
                               tensor.getElementType());
}

/// The type of `length` slices; null if there is no such tensor.
static Type stackOf(Type type, int64_t length) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape = {length};
  llvm::append_range(shape, tensor.getShape());
  if (!isTensorShape(shape))
    return {};
  return RankedTensorType::get(shape, tensor.getElementType());
}

LogicalResult ScanOp::verify() {
  if (failed(checkRegions(*this)))
    return failure();
  auto length = static_cast<int64_t>(getLength());
  if (length < 0 || length > kMaxElements)
    return emitOpError() << "expected a length within [0, " << kMaxElements
                         << "], but got " << length;
  SmallVector<Type> arguments(getCarries().getTypes());
  for (auto [i, type] : llvm::enumerate(getInputs().getTypes())) {
    Type slice = sliceOf(type);
    if (!slice || cast<RankedTensorType>(type).getDimSize(0) != length)
      return emitOpError() << "expected input #" << i << " to have " << length
                           << " slices along dimension 0, but got " << type;
    arguments.push_back(slice);
  }
  llvm::append_range(arguments, getConstants().getTypes());
  if (failed(expectTypes(*this, "the body's arguments", arguments,
                         getBody().getArgumentTypes())))
    return failure();
  TypeRange yielded = yieldedBy(getBody());
  unsigned carries = getCarries().size();
  if (yielded.size() < carries)
    return emitOpError() << "expected the body to yield at least " << carries
                         << " values, one for each carry, but got "
                         << yielded.size();
  if (failed(expectTypes(*this, "the carries that the body yields",
                         getCarries().getTypes(), yielded.take_front(carries))))
    return failure();
  SmallVector<Type> results(yielded.take_front(carries));
  for (auto [i, type] : llvm::enumerate(yielded.drop_front(carries))) {
    Type stack = stackOf(type, length);
    if (!stack)
      return emitOpError() << "has no stack of " << length << " slices of type "
                           << type
                           << ": expected a tensor of at most 2^40 elements";
    results.push_back(stack);
  }
  return expectTypes(*this, "the results", results, getResultTypes());
}

LogicalResult WhileOp::verify() {
  if (failed(checkRegions(*this)))
    return failure();
  if (getCarries().empty())
    return emitOpError() << "expected at least one carry";
  SmallVector<Type> arguments(getCarries().getTypes());
  llvm::append_range(arguments, getConstants().getTypes());
  auto truth = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  if (failed(expectTypes(*this, "the condition's arguments", arguments,
                         getCondition().getArgumentTypes())) ||
      failed(expectTypes(*this, "the body's arguments", arguments,
                         getBody().getArgumentTypes())) ||
      failed(expectTypes(*this, "what the condition yields", truth,
                         yieldedBy(getCondition()))) ||
      failed(expectTypes(*this, "what the body yields", getCarries().getTypes(),
                         yieldedBy(getBody()))))
    return failure();
  return expectTypes(*this, "the results", getCarries().getTypes(),
                     getResultTypes());
}

//===----------------------------------------------------------------------===//
// What they cost
//===----------------------------------------------------------------------===//

static int64_t flopsOf(Region &region) {
  int64_t flops = 0;
  for (Operation &op : region.front())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      flops = llvm::SaturatingAdd<uint64_t>(flops, cost.getFlops()) &
              std::numeric_limits<int64_t>::max();
  return flops;
}

int64_t IfOp::getFlops() {
  return std::max(flopsOf(getThen()), flopsOf(getOtherwise()));
}

int64_t ScanOp::getFlops() {
  uint64_t flops =
      llvm::SaturatingMultiply<uint64_t>(getLength(), flopsOf(getBody()));
  return std::min<uint64_t>(flops, std::numeric_limits<int64_t>::max());
}

int64_t WhileOp::getFlops() {
  return std::min<uint64_t>(uint64_t(flopsOf(getCondition())) +
                                flopsOf(getBody()),
                            std::numeric_limits<int64_t>::max());
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

namespace {

/// A region that makes another one again, to go on from there.
class Copy {
public:
  /// The block's arguments are those of `source`, then what is added.
  explicit Copy(Region &source) : source(source.front()) {
    region.push_back(new Block);
    for (BlockArgument argument : this->source.getArguments())
      add(argument.getType());
  }
  /// Copies the ops; what is made later stands in front of `yield`.
  void copyOps(Location loc) {
    IRMapping map;
    for (auto [argument, copy] :
         llvm::zip(source.getArguments(), block().getArguments()))
      map.map(argument, copy);
    // The region has no op yet, so it knows no context.
    OpBuilder builder(loc.getContext());
    builder.setInsertionPointToEnd(&block());
    for (Operation &op : source.without_terminator())
      builder.clone(op, map);
    yield = YieldOp::create(builder, loc, ValueRange());
    for (Value value : source.getTerminator()->getOperands())
      yielded.push_back(map.lookupOrDefault(value));
  }
  BlockArgument add(Type type) {
    return block().addArgument(type, UnknownLoc::get(type.getContext()));
  }
  Block &block() { return region.front(); }
  /// `value`, or zeros.
  Value orZeros(Value value, Type type) {
    OpBuilder builder(yield);
    return value ? value
                 : ConstantOp::splat(builder, yield->getLoc(),
                                     cast<RankedTensorType>(type), 0.0);
  }
  /// Ends the region, and erases what nothing uses.
  void finish(ValueRange values) {
    yield->setOperands(values);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  Region region;
  Operation *yield = nullptr;
  /// What `source` yields, here.
  SmallVector<Value> yielded;

private:
  Block &source;
};

} // namespace

LogicalResult IfOp::pullback(Pullback &p) {
  SmallVector<unsigned> wanted, given;
  for (unsigned i = 0, n = getInputs().size(); i < n; ++i)
    if (p.needs(1 + i))
      wanted.push_back(i);
  for (unsigned i = 0, n = getNumResults(); i < n; ++i)
    if (p.has(i))
      given.push_back(i);

  SmallVector<Value> operands(getInputs());
  for (unsigned i : given)
    operands.push_back(p.dy(i));
  Copy branches[] = {Copy(getThen()), Copy(getOtherwise())};
  SmallVector<Value> gradients[2];
  for (auto [branch, list] : llvm::zip(branches, gradients)) {
    SmallVector<Value> wrt, targets, cotangents;
    for (unsigned i : given)
      cotangents.push_back(branch.add(getResult(i).getType()));
    branch.copyOps(p.loc);
    for (unsigned i : wanted)
      wrt.push_back(branch.block().getArgument(i));
    for (unsigned i : given)
      targets.push_back(branch.yielded[i]);
    auto made = p.differentiate(branch.yield, wrt, targets, cotangents);
    if (failed(made))
      return failure();
    list = *made;
  }

  // An input gets a gradient from either branch, or zeros.
  SmallVector<unsigned> got;
  SmallVector<Type> types;
  SmallVector<Value> yields[2];
  for (auto [k, i] : llvm::enumerate(wanted)) {
    if (!gradients[0][k] && !gradients[1][k])
      continue;
    got.push_back(i);
    types.push_back(getInputs()[i].getType());
    for (int b : {0, 1})
      yields[b].push_back(branches[b].orZeros(gradients[b][k], types.back()));
  }
  if (got.empty())
    return success();
  for (int b : {0, 1})
    branches[b].finish(yields[b]);
  for (unsigned i = operands.size(); i-- > 0;) {
    if (!branches[0].block().getArgument(i).use_empty() ||
        !branches[1].block().getArgument(i).use_empty())
      continue;
    operands.erase(operands.begin() + i);
    for (Copy &branch : branches)
      branch.block().eraseArgument(i);
  }
  auto made = IfOp::create(p.builder, p.loc, types, getCondition(), operands);
  made.getThen().takeBody(branches[0].region);
  made.getOtherwise().takeBody(branches[1].region);
  for (auto [k, i] : llvm::enumerate(got))
    p.set(1 + i, p.expr(made.getResult(k)));
  return success();
}

namespace {

/// The backward of a scan: a scan in the other direction.
class ScanGradient {
public:
  ScanGradient(ScanOp op, Pullback &p)
      : op(op), p(p), numCarries(op.getCarries().size()),
        numInputs(op.getInputs().size()),
        numConstants(op.getConstants().size()),
        firstOperand(op.getTrips() ? 1 : 0) {}
  LogicalResult run();

private:
  /// One attempt, with cotangents of the carries in `flowing`. What turns out
  /// to be missing there is added; then the attempt is in vain.
  FailureOr<bool> build();
  LogicalResult finish();
  void findActive();
  /// The stack of what carry `i` was at the start of each iteration; a stack
  /// of the forward where it has one.
  FailureOr<Value> stackOfCarry(unsigned i);
  LogicalResult saveCarries();

  bool needs(unsigned i) const { return p.needs(firstOperand + i); }
  bool needsInput(unsigned i) const { return needs(numCarries + i); }
  bool needsConstant(unsigned i) const {
    return needs(numCarries + numInputs + i);
  }

  ScanOp op;
  Pullback &p;
  unsigned numCarries, numInputs, numConstants, firstOperand;
  /// The carries that depend on what a gradient is wanted of.
  llvm::SmallSetVector<unsigned, 4> active;
  /// Those among them that have a cotangent.
  llvm::SmallSetVector<unsigned, 4> flowing;
  /// The stacks that have one.
  SmallVector<unsigned> given;
  /// The body: the forward's arguments, cotangents of `given`, of `flowing`.
  std::optional<Copy> copy;
  /// By argument of the forward's body.
  SmallVector<Value> gradients;
  /// The stack that gives each carry that the backward uses.
  SmallVector<Value> saved;
};

} // namespace

/// A carry is active if what the body makes of it depends on an active value.
void ScanGradient::findActive() {
  Block &body = op.getBody().front();
  DenseSet<Value> depends;
  for (unsigned i = 0; i < body.getNumArguments(); ++i)
    if (needs(i)) {
      depends.insert(body.getArgument(i));
      if (i < numCarries)
        active.insert(i);
    }
  for (bool grows = true; grows;) {
    grows = false;
    for (Operation &inner : body.without_terminator())
      if (!inner.hasAttr(kNoGradAttr) && !inner.hasTrait<NotDifferentiable>() &&
          llvm::any_of(inner.getOperands(),
                       [&](Value v) { return depends.contains(v); }))
        for (Value result : inner.getResults())
          if (isDifferentiableType(result.getType()))
            depends.insert(result);
    for (unsigned i = 0; i < numCarries; ++i)
      if (depends.contains(body.getTerminator()->getOperand(i)) &&
          active.insert(i)) {
        depends.insert(body.getArgument(i));
        grows = true;
      }
  }
}

FailureOr<bool> ScanGradient::build() {
  copy.emplace(op.getBody());
  SmallVector<Value> targets, cotangents, wrt;
  SmallVector<unsigned> positions;
  for (unsigned i : given)
    cotangents.push_back(
        copy->add(sliceOf(op.getResult(numCarries + i).getType())));
  for (unsigned i : flowing)
    cotangents.push_back(copy->add(op.getResult(i).getType()));
  copy->copyOps(p.loc);
  for (unsigned i : given)
    targets.push_back(copy->yielded[numCarries + i]);
  for (unsigned i : flowing)
    targets.push_back(copy->yielded[i]);
  unsigned count = op.getBody().getNumArguments();
  for (unsigned i = 0; i < count; ++i)
    if (i < numCarries ? active.contains(i) : needs(i)) {
      positions.push_back(i);
      wrt.push_back(copy->block().getArgument(i));
    }
  auto made = p.differentiate(copy->yield, wrt, targets, cotangents);
  if (failed(made))
    return failure();
  gradients.assign(count, Value());
  bool grows = false;
  for (auto [i, value] : llvm::zip_equal(positions, *made)) {
    gradients[i] = value;
    if (value && i < numCarries)
      grows |= flowing.insert(i);
  }
  return !grows;
}

/// Gives the forward stacks of the carries in `saved` that it has none of: a
/// new op takes its place.
LogicalResult ScanGradient::saveCarries() {
  Block &body = op.getBody().front();
  Operation *yield = body.getTerminator();
  SmallVector<unsigned> added;
  SmallVector<Type> types(op.getResultTypes());
  saved.assign(numCarries, Value());
  for (unsigned i = 0; i < numCarries; ++i) {
    if (copy->block().getArgument(i).use_empty())
      continue;
    ValueRange slices = yield->getOperands().drop_front(numCarries);
    auto found = llvm::find(slices, Value(body.getArgument(i)));
    if (found != slices.end()) {
      saved[i] = op.getResult(numCarries + (found - slices.begin()));
      continue;
    }
    Type carry = body.getArgument(i).getType();
    Type stack = stackOf(carry, op.getLength());
    if (!stack)
      return op.emitOpError() << "has too many iterations (" << op.getLength()
                              << ") to keep carry #" << i << " of type "
                              << carry << " of each of them for the gradient";
    added.push_back(i);
    types.push_back(stack);
  }
  if (added.empty())
    return success();
  OpBuilder builder(op);
  auto made = ScanOp::create(
      builder, op.getLoc(), types, op.getLengthAttr(), op.getTrips(),
      op.getReverseAttr(), op.getCarries(), op.getInputs(), op.getConstants());
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping map;
  op.getBody().cloneInto(&made.getBody(), map);
  Operation *end = made.getBody().front().getTerminator();
  unsigned known = op.getNumResults();
  for (auto [k, i] : llvm::enumerate(added)) {
    end->insertOperands(end->getNumOperands(), made.getBody().getArgument(i));
    saved[i] = made.getResult(known + k);
  }
  for (auto [result, fresh] : llvm::zip(op.getResults(), made.getResults())) {
    for (Value &value : saved)
      if (value == result)
        value = fresh;
    result.replaceAllUsesWith(fresh);
  }
  return success();
}

LogicalResult ScanGradient::finish() {
  Block &body = copy->block();
  unsigned count = op.getBody().getNumArguments();
  // Yield: the cotangents of carries, the sums for constants, the slices for
  // inputs.
  SmallVector<Value> yields, initial;
  SmallVector<unsigned> summed, sliced;
  for (unsigned i : flowing) {
    yields.push_back(copy->orZeros(gradients[i], op.getResult(i).getType()));
    initial.push_back(p.dy(i));
  }
  OpBuilder builder(copy->yield);
  for (unsigned i = numCarries + numInputs; i < count; ++i)
    if (Value gradient = gradients[i]) {
      summed.push_back(i);
      auto type = cast<RankedTensorType>(gradient.getType());
      yields.push_back(
          AddOp::create(builder, p.loc, copy->add(type), gradient));
      initial.push_back(ConstantOp::splat(p.builder, p.loc, type, 0.0));
    }
  for (unsigned i = numCarries; i < numCarries + numInputs; ++i)
    if (Value gradient = gradients[i]) {
      sliced.push_back(i);
      yields.push_back(gradient);
    }
  copy->finish(yields);
  SmallVector<Type> types;
  for (Value value : initial)
    types.push_back(value.getType());
  for (unsigned i : sliced)
    types.push_back(op.getInputs()[i - numCarries].getType());
  if (failed(saveCarries()))
    return failure();

  // Now the arguments as a scan has them: carries, inputs, constants.
  SmallVector<Value> inputs, constants;
  SmallVector<BlockArgument> order;
  unsigned firstCarry = count + given.size();
  for (unsigned i = 0; i < initial.size(); ++i)
    order.push_back(body.getArgument(firstCarry + i));
  auto take = [&](unsigned argument, Value operand, SmallVector<Value> &list) {
    if (body.getArgument(argument).use_empty())
      return;
    list.push_back(operand);
    order.push_back(body.getArgument(argument));
  };
  for (unsigned i = 0; i < numCarries; ++i)
    take(i, saved[i], inputs);
  for (unsigned i = 0; i < numInputs; ++i)
    take(numCarries + i, op.getInputs()[i], inputs);
  for (auto [k, i] : llvm::enumerate(given))
    take(count + k, p.dy(numCarries + i), inputs);
  for (unsigned i = 0; i < numConstants; ++i)
    take(numCarries + numInputs + i, op.getConstants()[i], constants);
  unsigned before = body.getNumArguments();
  for (BlockArgument argument : order)
    argument.replaceAllUsesWith(
        body.addArgument(argument.getType(), argument.getLoc()));
  body.eraseArguments(0, before);

  auto direction = op.getReverse() ? UnitAttr() : p.builder.getUnitAttr();
  auto made =
      ScanOp::create(p.builder, p.loc, types, op.getLengthAttr(), op.getTrips(),
                     direction, initial, inputs, constants);
  made.getBody().takeBody(copy->region);
  for (auto [k, i] : llvm::enumerate(flowing))
    if (needs(i))
      p.set(firstOperand + i, p.expr(made.getResult(k)));
  for (auto [k, i] : llvm::enumerate(summed))
    p.set(firstOperand + i, p.expr(made.getResult(flowing.size() + k)));
  for (auto [k, i] : llvm::enumerate(sliced))
    p.set(firstOperand + i, p.expr(made.getResult(initial.size() + k)));
  return success();
}

LogicalResult ScanGradient::run() {
  findActive();
  for (unsigned i = 0; i < numCarries; ++i)
    if (active.contains(i) && p.has(i))
      flowing.insert(i);
  for (unsigned i = numCarries, n = op.getNumResults(); i < n; ++i)
    if (p.has(i))
      given.push_back(i - numCarries);
  if (op.getLength() == 0) {
    for (unsigned i : flowing)
      if (needs(i))
        p.set(firstOperand + i, p.dy(i));
    return success();
  }
  // Where a gradient of a carry appears, the iteration before has a cotangent.
  for (FailureOr<bool> done = false; !*done;)
    if (failed(done = build()))
      return failure();
  if (llvm::none_of(gradients, [](Value value) { return bool(value); }))
    return success();
  return finish();
}

LogicalResult ScanOp::pullback(Pullback &p) {
  return ScanGradient(*this, p).run();
}
