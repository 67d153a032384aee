//===- Custom.cpp - gradients that a program brings itself ----------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tandem;

//===----------------------------------------------------------------------===//
// The types of a custom_vjp, of any number
//===----------------------------------------------------------------------===//

static ParseResult parseOperandTypes(OpAsmParser &parser,
                                     SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] {
    return parser.parseType(types.emplace_back());
  });
}

static void printOperandTypes(OpAsmPrinter &printer, Operation *,
                              TypeRange types) {
  printer << '(' << types << ')';
}

/// Results stand without parentheses where there are some.
static ParseResult parseResultTypes(OpAsmParser &parser,
                                    SmallVectorImpl<Type> &types) {
  if (succeeded(parser.parseOptionalLParen()))
    return parser.parseRParen();
  return parser.parseTypeList(types);
}

static void printResultTypes(OpAsmPrinter &printer, Operation *,
                             TypeRange types) {
  if (types.empty())
    printer << "()";
  else
    printer << types;
}

#define GET_OP_CLASSES
#include "ir/ops/Custom.cpp.inc"

void TandemDialect::addCustomOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Custom.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// custom_vjp: what must hold
//===----------------------------------------------------------------------===//

std::string CustomVjpOp::str() {
  return ("custom_vjp \"" + getName() + "\"").str();
}

static LogicalResult expectTypes(CustomVjpOp op, const Twine &what,
                                 TypeRange expected, TypeRange got) {
  if (expected == got)
    return success();
  return op.emitOpError() << "expected " << what << " to have types ("
                          << expected << "), but got (" << got << ")";
}

/// The ref argument of the region that `ref` is a view or a handle of; null if
/// its storage is made in the region.
static BlockArgument rootOf(Value ref) {
  while (Operation *op = ref.getDefiningOp()) {
    if (isa<MakeRefOp>(op))
      return {};
    ref = op->getOperand(0);
  }
  return cast<BlockArgument>(ref);
}

/// Every effect on a ref of the op is declared: `first` is the argument that is
/// ref 0.
static LogicalResult verifyEffects(CustomVjpOp op, Block &block, unsigned first,
                                   ArrayRef<int64_t> declared,
                                   StringRef property) {
  bool ok = true;
  block.walk([&](Operation *inner) {
    Value ref;
    if (auto write = dyn_cast<WriteOp>(inner))
      ref = write.getRef();
    else if (isa<TransposeHandleOp, SetHandleOp, ResizeOp>(inner))
      ref = inner->getOperand(0);
    if (isa<CustomVjpOp>(inner)) {
      inner->emitOpError() << "stands in a region of another custom_vjp";
      ok = false;
    }
    if (!ref)
      return;
    BlockArgument root = rootOf(ref);
    if (!root || root.getArgNumber() < first ||
        llvm::is_contained(declared, root.getArgNumber() - first))
      return;
    auto error = inner->emitOpError()
                 << "writes ref #" << root.getArgNumber() - first << " of "
                 << op.str() << ", which '" << property << "' does not declare";
    error.attachNote(op.getLoc()) << "the custom_vjp is here";
    ok = false;
  });
  return success(ok);
}

static LogicalResult verifyPositions(CustomVjpOp op, StringRef what,
                                     ArrayRef<int64_t> positions,
                                     int64_t count) {
  for (int64_t position : positions)
    if (position < 0 || position >= count)
      return op.emitOpError() << "expected '" << what << "' to be within [0, "
                              << count << "), but got " << position;
  return success();
}

/// The states, rejections and the backward's arguments of the functional form.
static LogicalResult verifyFunctional(CustomVjpOp op, Block &backward) {
  unsigned inputs = op.getInputs().size(), outputs = op.numOutputs();
  unsigned saved = op.numSaved(), states = 0;
  if (auto list = op.getStates())
    for (Attribute attribute : *list) {
      ++states;
      auto state = dyn_cast<DictionaryAttr>(attribute);
      auto name = state ? state.getAs<StringAttr>("name") : StringAttr();
      auto input = state ? state.getAs<IntegerAttr>("input") : IntegerAttr();
      bool isInput = input && input.getInt() >= 0 &&
                     input.getInt() < static_cast<int64_t>(inputs);
      if (!name == !input || (input && !isInput))
        return op.emitOpError()
               << "expected a state to have a 'name' or the position of an "
                  "'input' within [0, "
               << inputs << "), but got " << attribute;
    }
  if (auto list = op.getRejected())
    for (Attribute attribute : *list) {
      auto entry = dyn_cast<DictionaryAttr>(attribute);
      if (!entry || !entry.getAs<StringAttr>("message"))
        return op.emitOpError() << "expected what is rejected to have a "
                                   "'message', but got "
                                << attribute;
    }
  if (failed(verifyPositions(op, "cotangent_writes", op.getCotangentWrites(),
                             outputs)) ||
      failed(verifyPositions(op, "unchecked", op.getUnchecked(), saved)))
    return failure();
  if (backward.getNumArguments() != saved + outputs + states)
    return op.emitOpError()
           << "expected the backward to have " << saved + outputs + states
           << " arguments (saved values, cotangents, states), but got "
           << backward.getNumArguments();
  TypeRange results = op.getResultTypes();
  SmallVector<Type> expected(results.take_back(saved));
  llvm::append_range(expected, results.take_front(outputs));
  return expectTypes(
      op, "the backward's saved values and cotangents", expected,
      TypeRange(backward.getArgumentTypes()).take_front(saved + outputs));
}

LogicalResult CustomVjpOp::verify() {
  Block &forward = getForward().front(), &backward = getBackward().front();
  for (Block *block : {&forward, &backward})
    if (block->empty() || !isa<YieldOp>(block->back()))
      return emitOpError() << "expected each region to end with 'tandem.yield'";
  Operation *made = forward.getTerminator();
  SmallVector<Type> expected(getInputs().getTypes());
  llvm::append_range(expected, getRefs().getTypes());
  if (failed(expectTypes(*this, "the forward's arguments", expected,
                         forward.getArgumentTypes())))
    return failure();
  if (isFunctional()) {
    int64_t outputs = *getOutputs(), saved = getSaved().value_or(-1);
    if (!getRefs().empty() || outputs < 0 || saved < 0 ||
        outputs + saved > getNumResults() || !getDifferentiable() ||
        *getDifferentiable() > getInputs().size())
      return emitOpError() << "expected the functional form to have 'outputs', "
                              "'saved' and 'differentiable' within bounds and "
                              "no refs";
    if (failed(expectTypes(*this, "what the forward yields", getResultTypes(),
                           made->getOperandTypes())))
      return failure();
    return verifyFunctional(*this, backward);
  }
  if (made->getNumOperands() < getNumResults())
    return emitOpError() << "expected the forward to yield at least "
                         << getNumResults() << " values, but got "
                         << made->getNumOperands();
  if (failed(expectTypes(
          *this, "what the forward yields", getResultTypes(),
          TypeRange(made->getOperandTypes()).take_front(getNumResults()))))
    return failure();
  // Saved values, cotangents (tensors or refs), refs.
  unsigned saved = numSaved(), count = saved + getNumResults();
  expected.assign(made->getOperandTypes().begin() + getNumResults(),
                  made->getOperandTypes().end());
  llvm::append_range(expected, getResultTypes());
  llvm::append_range(expected, getRefs().getTypes());
  SmallVector<Type> got(backward.getArgumentTypes());
  for (unsigned i = saved; i < count && i < got.size(); ++i)
    if (auto ref = dyn_cast<RefType>(got[i]))
      got[i] = ref.getTensorType();
  if (failed(expectTypes(*this, "the backward's arguments", expected, got)))
    return failure();
  if (failed(verifyPositions(*this, "writes", getWrites(), getRefs().size())) ||
      failed(verifyPositions(*this, "backward_writes", getBackwardWrites(),
                             getRefs().size())) ||
      failed(verifyPositions(*this, "unchecked", getUnchecked(), saved)))
    return failure();
  LogicalResult effects =
      verifyEffects(*this, forward, getInputs().size(), getWrites(), "writes");
  if (failed(verifyEffects(*this, backward, count, getBackwardWrites(),
                           "backward_writes")))
    return failure();
  return effects;
}

//===----------------------------------------------------------------------===//
// custom_vjp: the gradient
//===----------------------------------------------------------------------===//

namespace {

/// Copies a backward region; what depends on an undefined value is left out.
class BackwardCopier {
public:
  BackwardCopier(CustomVjpOp op, Pullback &p) : op(op), p(p) {}
  void copy(Block &block) {
    for (Operation &inner : block.without_terminator())
      copy(&inner);
  }
  Value lookup(Value value) const { return map.lookupOrNull(value); }
  IRMapping map;

private:
  void copy(Operation *inner) {
    if (isa<UndefinedOp>(inner))
      return;
    if (auto sum = dyn_cast<AccumulateOp>(inner)) {
      Value lhs = lookup(sum.getLhs()), rhs = lookup(sum.getRhs());
      if (!lhs || !rhs) {
        if (Value one = lhs ? lhs : rhs)
          map.map(sum.getY(), one);
        return;
      }
    }
    if (llvm::any_of(inner->getOperands(),
                     [&](Value operand) { return !lookup(operand); }))
      return;
    Operation *made = p.builder.clone(*inner, map);
    made->setLoc(p.loc);
    if (op.getFirstOrder())
      made->setAttr(kFirstOrderAttr, op.getNameAttr());
  }
  CustomVjpOp op;
  Pullback &p;
};

} // namespace

/// Reports what a backward may not do.
static LogicalResult reportRejected(CustomVjpOp op) {
  if (!op.getRejected())
    return success();
  for (auto what : op.getRejected()->getAsRange<DictionaryAttr>()) {
    Location loc = op.getLoc();
    if (auto where = what.getAs<LocationAttr>("loc"))
      loc = where;
    auto error = mlir::emitError(loc)
                 << what.getAs<StringAttr>("message").getValue();
    error.attachNote(op.getLoc()) << "in the backward of " << op.str();
  }
  return failure();
}

LogicalResult CustomVjpOp::pullback(Pullback &p) {
  if (!isFunctional())
    return emitOpError() << "has refs where the joint is built";
  if (failed(reportRejected(*this)))
    return failure();
  Block &block = getBackward().front();
  BackwardCopier copier(*this, p);
  unsigned next = 0;
  auto bind = [&](Value value) {
    if (value)
      copier.map.map(block.getArgument(next), value);
    ++next;
  };
  for (unsigned n = getNumResults(), i = n - numSaved(); i < n; ++i)
    bind(getResult(i));
  for (unsigned i = 0, n = numOutputs(); i < n; ++i)
    bind(getUndefinedCotangents() ? p.dyOrUndefined(i) : p.dy(i).value);
  SmallVector<DictionaryAttr> states;
  if (getStates())
    llvm::append_range(states, getStates()->getAsRange<DictionaryAttr>());
  auto inputOf = [&](DictionaryAttr state) {
    auto position = state.getAs<IntegerAttr>("input");
    return position ? getInputs()[position.getInt()] : Value();
  };
  for (DictionaryAttr state : states) {
    if (next >= block.getNumArguments())
      return emitOpError() << "has more states than the backward has arguments";
    bind(p.state(state.getAs<StringAttr>("name"), inputOf(state),
                 block.getArgument(next).getType()));
  }
  copier.copy(block);

  ValueRange yielded = block.getTerminator()->getOperands();
  llvm::SmallVector<DictionaryAttr> written;
  for (DictionaryAttr state : states)
    if (state.contains("written"))
      written.push_back(state);
  unsigned behind = written.size() + getCotangentWrites().size();
  if (yielded.size() != numDifferentiable() + behind)
    return emitOpError() << "expected the backward to yield "
                         << numDifferentiable() << " gradients, but got "
                         << static_cast<int64_t>(yielded.size()) - behind;
  for (unsigned i = 0, n = numDifferentiable(); i < n; ++i) {
    Type wanted = getInputs()[i].getType(), got = yielded[i].getType();
    if (wanted != got)
      return emitOpError() << "expected the backward's gradient #" << i
                           << " to have type " << wanted << ", but got " << got;
    if (Value gradient = copier.lookup(yielded[i]))
      p.set(i, p.expr(gradient));
  }
  yielded = yielded.drop_front(numDifferentiable());
  for (auto [i, state] : llvm::enumerate(written))
    if (Value value = copier.lookup(yielded[i]))
      p.update(state.getAs<StringAttr>("name"), inputOf(state), value);
  for (auto [i, cotangent] : llvm::enumerate(getCotangentWrites()))
    if (Value value = copier.lookup(yielded[written.size() + i]))
      p.updateCotangent(cotangent, value);
  return success();
}

//===----------------------------------------------------------------------===//
// grad
//===----------------------------------------------------------------------===//

LogicalResult GradOp::verify() {
  if (getResultTypes() == getWrt().getTypes())
    return success();
  return emitOpError() << "expected results of types (" << getWrt().getTypes()
                       << "), but got (" << getResultTypes() << ")";
}
