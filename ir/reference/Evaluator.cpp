//===- Evaluator.cpp - runs whole functions in double ---------------------===//
#include "ir/reference/Evaluator.h"

#include "ir/Collective.h"
#include "ir/EmptyTensors.h"
#include "ir/Signature.h"
#include "ir/reference/Arguments.h"
#include "ir/reference/Rounding.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

namespace {

using Value_ = std::optional<Array>;

/// What all blocks of a program see.
struct Program {
  const Call &call;
  bool keepsDigits;          ///< of f16 and bf16 (Rounding.h)
  llvm::StringSet<> defined; ///< the names of the cotangents that are
};

/// The values of one block while it is evaluated.
class Frame {
public:
  explicit Frame(const Program &program) : program(program) {}

  LogicalResult run(Block &block);
  void bind(Value value, Value_ array) {
    tensors.insert_or_assign(value, std::move(array));
  }
  void bind(Value value, Ref ref) { refs.insert_or_assign(value, ref); }
  /// A tensor's value, or what a ref shows.
  Value_ get(Value value) const {
    if (isa<RefType>(value.getType()))
      return refs.find(value)->second.read();
    return tensors.find(value)->second;
  }
  const Ref &ref(Value value) const { return refs.find(value)->second; }
  /// What the handle that came in as `argument` shows now.
  const Ref &handle(BlockArgument argument) const {
    auto it = handles.find(argument);
    return it == handles.end() ? ref(argument) : it->second;
  }
  bool changesHandles() const { return !handles.empty(); }

private:
  LogicalResult run(Operation *op);
  LogicalResult runRead(ReadOp op);
  LogicalResult runWrite(WriteOp op);
  LogicalResult runTranspose(TransposeHandleOp op);
  LogicalResult runKernel(KernelOp op);
  LogicalResult runCustom(CustomVjpOp op);
  LogicalResult runFlow(Operation *op);
  LogicalResult runScan(ScanOp op);
  LogicalResult runWhile(WhileOp op);
  /// Runs a region that takes these values, and returns what it yields.
  FailureOr<SmallVector<Value_>> runRegion(Region &region,
                                           SmallVector<Value_> values);
  LogicalResult runIfDefined(IfDefinedOp op);
  void runOrZero(OrZeroOp op);
  LogicalResult runCollective(CollectiveOpInterface op);
  void runTensors(ReferenceOpInterface op);
  /// `from` is now known as `to`: the same handle, which shows `ref`.
  void move(Value from, Value to, Ref ref);
  bool holds(ArrayAttr condition) const;
  /// Frees the operands that `op` was the last to use.
  void release(Operation *op);

  const Program &program;
  DenseMap<Value, Value_> tensors;
  DenseMap<Value, Ref> refs;
  /// The argument whose handle a ref is, and what changed handles show.
  DenseMap<Value, BlockArgument> origin;
  DenseMap<BlockArgument, Ref> handles;
  DenseMap<Value, unsigned> usesLeft;
};

} // namespace

LogicalResult Frame::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (failed(run(&op)))
      return failure();
    release(&op);
  }
  return success();
}

LogicalResult Frame::run(Operation *op) {
  if (auto make = dyn_cast<MakeRefOp>(op)) {
    Value_ value = get(make.getValue());
    if (!value)
      return op->emitOpError() << "makes storage of an undefined value";
    bind(make.getRef(), Ref::holding(make.getRef().getType(), *value));
    return success();
  }
  if (auto read = dyn_cast<ReadOp>(op))
    return runRead(read);
  if (auto write = dyn_cast<WriteOp>(op))
    return runWrite(write);
  if (auto transpose = dyn_cast<TransposeHandleOp>(op))
    return runTranspose(transpose);
  if (auto set = dyn_cast<SetHandleOp>(op)) {
    move(set.getX(), set.getZ(), ref(set.getY()));
    return success();
  }
  if (auto resize = dyn_cast<ResizeOp>(op)) {
    Memory &storage = *ref(resize.getRef()).storage;
    uint64_t whole = storage.elements.size();
    if (resize.getElements() != 0 && resize.getElements() != whole)
      return op->emitOpError() << "expected 0 or " << whole
                               << " elements, those of the whole storage, but "
                                  "got "
                               << resize.getElements();
    resize.getElements() == 0 ? storage.free() : storage.allocate();
    return success();
  }
  if (auto kernel = dyn_cast<KernelOp>(op))
    return runKernel(kernel);
  if (auto custom = dyn_cast<CustomVjpOp>(op))
    return runCustom(custom);
  if (isa<IfOp, ScanOp, WhileOp>(op))
    return runFlow(op);
  if (auto orZero = dyn_cast<OrZeroOp>(op)) {
    runOrZero(orZero);
    return success();
  }
  if (auto ifDefined = dyn_cast<IfDefinedOp>(op))
    return runIfDefined(ifDefined);
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return runCollective(collective);
  if (isa<UndefinedOp>(op)) {
    bind(op->getResult(0), std::nullopt);
    return success();
  }
  if (isa<RefViewOpInterface>(op) && isa<RefType>(op->getResult(0).getType())) {
    Value source = cast<RefViewOpInterface>(op).getViewSource();
    bind(op->getResult(0), ref(source).view(op));
    return success();
  }
  runTensors(cast<ReferenceOpInterface>(op));
  return success();
}

LogicalResult Frame::runRead(ReadOp op) {
  Value_ value = ref(op.getRef()).read();
  if (!value)
    return op.emitOpError() << "reads storage that is freed, or that nobody "
                               "filled since it was";
  bind(op.getValue(), std::move(value));
  return success();
}

LogicalResult Frame::runWrite(WriteOp op) {
  Value_ value = get(op.getValue());
  if (!value)
    return op.emitOpError() << "writes an undefined value";
  if (!ref(op.getRef()).write(*value))
    return op.emitOpError() << "writes storage that is freed";
  return success();
}

void Frame::move(Value from, Value to, Ref ref) {
  auto it = origin.find(from);
  BlockArgument argument =
      it != origin.end() ? it->second : dyn_cast<BlockArgument>(from);
  if (argument) {
    origin[to] = argument;
    handles.insert_or_assign(argument, ref);
  }
  bind(to, std::move(ref));
}

LogicalResult Frame::runTranspose(TransposeHandleOp op) {
  const Ref &from = ref(op.getX());
  Ref to{from.storage, Array(op.getY().getType().getShape()), from.element};
  int64_t i = 0;
  forEachIndex(to.positions.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    std::swap(source[op.getA()], source[op.getB()]);
    to.positions[i++] = from.positions(source);
  });
  move(op.getX(), op.getY(), std::move(to));
  return success();
}

LogicalResult Frame::runKernel(KernelOp op) {
  Frame frame(program);
  Block &body = op.getBody().front();
  for (auto [argument, input] :
       llvm::zip_equal(body.getArguments(), op.getInputs()))
    frame.bind(argument, get(input));
  if (failed(frame.run(body)))
    return failure();
  for (auto [result, value] :
       llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
    bind(result, frame.get(value));
  return success();
}

/// The forward region, in either form of the op.
LogicalResult Frame::runCustom(CustomVjpOp op) {
  Frame frame(program);
  Block &body = op.getForward().front();
  for (auto [argument, input] : llvm::zip(body.getArguments(), op.getInputs()))
    frame.bind(argument, get(input));
  for (auto [argument, input] : llvm::zip_equal(
           body.getArguments().drop_front(op.getInputs().size()), op.getRefs()))
    frame.bind(argument, ref(input));
  if (failed(frame.run(body)))
    return failure();
  if (frame.changesHandles())
    return op.emitOpError() << "changes a handle of the program around it";
  for (auto [result, value] :
       llvm::zip(op.getResults(), body.getTerminator()->getOperands()))
    bind(result, frame.get(value));
  return success();
}

FailureOr<SmallVector<Value_>> Frame::runRegion(Region &region,
                                                SmallVector<Value_> values) {
  Frame frame(program);
  Block &body = region.front();
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), values))
    frame.bind(argument, std::move(value));
  if (failed(frame.run(body)))
    return failure();
  SmallVector<Value_> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(frame.get(value));
  return yielded;
}

/// Of an undefined value nothing can be made, and decided even less.
LogicalResult Frame::runFlow(Operation *op) {
  if (llvm::any_of(op->getOperands(), [&](Value v) { return !get(v); })) {
    for (Value result : op->getResults())
      bind(result, std::nullopt);
    return success();
  }
  if (auto scan = dyn_cast<ScanOp>(op))
    return runScan(scan);
  if (auto loop = dyn_cast<WhileOp>(op))
    return runWhile(loop);
  auto branch = cast<IfOp>(op);
  SmallVector<Value_> values;
  for (Value input : branch.getInputs())
    values.push_back(get(input));
  bool taken = (*get(branch.getCondition()))[0] != 0;
  auto made = runRegion(taken ? branch.getThen() : branch.getOtherwise(),
                        std::move(values));
  if (failed(made))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *made))
    bind(result, std::move(value));
  return success();
}

LogicalResult Frame::runScan(ScanOp op) {
  auto length = static_cast<int64_t>(op.getLength()), trips = length;
  if (op.getTrips())
    trips = std::clamp<double>((*get(op.getTrips()))[0], 0, length);
  SmallVector<Value_> carries;
  for (Value carry : op.getCarries())
    carries.push_back(get(carry));
  SmallVector<Array> stacks;
  for (Value stack : op.stacks())
    stacks.emplace_back(cast<RankedTensorType>(stack.getType()));
  for (int64_t i = 0; i < trips; ++i) {
    int64_t t = op.getReverse() ? trips - 1 - i : i;
    SmallVector<Value_> values = std::move(carries);
    for (Value input : op.getInputs()) {
      auto type = cast<RankedTensorType>(input.getType());
      Array slice(type.getShape().drop_front());
      const Array &whole = *tensors.find(input)->second;
      std::copy_n(whole.data.begin() + t * slice.size(), slice.size(),
                  slice.data.begin());
      values.push_back(std::move(slice));
    }
    for (Value constant : op.getConstants())
      values.push_back(get(constant));
    auto made = runRegion(op.getBody(), std::move(values));
    if (failed(made))
      return failure();
    unsigned count = op.getCarries().size();
    carries.assign(made->begin(), made->begin() + count);
    for (auto [k, stack] : llvm::enumerate(stacks)) {
      const Array &slice = *(*made)[count + k];
      std::copy_n(slice.data.begin(), slice.size(),
                  stack.data.begin() + t * slice.size());
    }
  }
  for (auto [k, result] :
       llvm::enumerate(op.getResults().drop_back(stacks.size())))
    bind(result, std::move(carries[k]));
  for (auto [k, result] : llvm::enumerate(op.stacks()))
    bind(result, std::move(stacks[k]));
  return success();
}

LogicalResult Frame::runWhile(WhileOp op) {
  SmallVector<Value_> carries, constants;
  for (Value carry : op.getCarries())
    carries.push_back(get(carry));
  for (Value constant : op.getConstants())
    constants.push_back(get(constant));
  while (true) {
    SmallVector<Value_> values = carries;
    llvm::append_range(values, constants);
    auto goesOn = runRegion(op.getCondition(), values);
    if (failed(goesOn))
      return failure();
    if ((*(*goesOn)[0])[0] == 0)
      break;
    auto made = runRegion(op.getBody(), std::move(values));
    if (failed(made))
      return failure();
    carries = std::move(*made);
  }
  for (auto [result, value] : llvm::zip_equal(op.getResults(), carries))
    bind(result, std::move(value));
  return success();
}

/// Every group has a defined cotangent.
bool Frame::holds(ArrayAttr condition) const {
  return llvm::all_of(condition, [&](Attribute group) {
    return llvm::any_of(cast<ArrayAttr>(group), [&](Attribute name) {
      return program.defined.contains(cast<StringAttr>(name).getValue());
    });
  });
}

void Frame::runOrZero(OrZeroOp op) {
  Value_ value;
  if (holds(op.getNeeds())) {
    value = get(op.getX());
    if (!value)
      value = Array(op.getY().getType());
  }
  bind(op.getY(), std::move(value));
}

LogicalResult Frame::runIfDefined(IfDefinedOp op) {
  Value_ value = get(holds(op.getWhen()) ? op.getFresh() : op.getOld());
  if (!value)
    return op.emitOpError() << "has no value for these cotangents";
  bind(op.getY(), std::move(value));
  return success();
}

void Frame::runTensors(ReferenceOpInterface op) {
  SmallVector<const Array *> in;
  for (Value operand : op->getOperands())
    if (const Value_ &value = tensors.find(operand)->second)
      in.push_back(&*value);
  if (in.size() == op->getNumOperands()) {
    SmallVector<Array> out;
    for (Type type : op->getResultTypes())
      out.emplace_back(cast<RankedTensorType>(type));
    if (!areEmptyTensors(op->getResultTypes()))
      op.evaluate(in, out);
    if (program.call.computed)
      program.call.computed(op, out);
    for (auto [result, array] : llvm::zip_equal(op->getResults(), out)) {
      if (!program.keepsDigits && !program.call.computed)
        roundToType(getElementTypeOrSelf(result.getType()), array);
      bind(result, std::move(array));
    }
    return;
  }
  Value_ one;
  if (isa<AccumulateOp>(op) && in.size() == 1)
    one = *in[0];
  for (Value result : op->getResults())
    bind(result, one);
}

/// Without other ranks, a group of one.
LogicalResult Frame::runCollective(CollectiveOpInterface op) {
  if (op->getNumOperands() && !get(op->getOperand(0)))
    return op->emitOpError() << "reads an undefined value";
  Array out;
  const Array *in = nullptr;
  if (op->getNumOperands())
    in = &*tensors.find(op->getOperand(0))->second;
  if (op->getNumResults())
    out = Array(cast<RankedTensorType>(op->getResult(0).getType()));
  if (program.call.meet) {
    if (failed(program.call.meet(op, in, op->getNumResults() ? &out : nullptr)))
      return failure();
  } else if (int64_t ranks = groupSize(op, op.axes()); ranks > 1) {
    return op->emitOpError()
           << "expected to run on " << ranks << " ranks together";
  } else {
    op.evaluateGroup(in, out);
  }
  if (!op->getNumResults())
    return success();
  Value result = op->getResult(0);
  if (program.call.computed)
    program.call.computed(op, out);
  else if (!program.keepsDigits)
    roundToType(getElementTypeOrSelf(result.getType()), out);
  bind(result, std::move(out));
  return success();
}

void Frame::release(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto [it, first] = usesLeft.try_emplace(operand, 0);
    if (first)
      it->second = std::distance(operand.use_begin(), operand.use_end());
    if (--it->second == 0) {
      tensors.erase(operand);
      if (!isa<BlockArgument>(operand))
        refs.erase(operand);
    }
  }
  for (Value result : op->getResults())
    if (result.use_empty())
      tensors.erase(result);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Everything in `func` can be evaluated, and the arguments have their shapes.
static LogicalResult check(func::FuncOp func, const Call &call) {
  if (func.isExternal())
    return func.emitError()
           << "expected function '" << func.getName() << "' to have a body";
  if (!func.getBody().hasOneBlock())
    return func.emitError()
           << "expected function '" << func.getName() << "' to have one block";
  if (call.arguments.size() != func.getNumArguments())
    return func.emitError() << "expected " << func.getNumArguments()
                            << " arguments but got " << call.arguments.size();
  bool ok = true;
  for (auto [i, pair] : llvm::enumerate(
           llvm::zip_equal(func.getArgumentTypes(), call.arguments))) {
    auto [type, array] = pair;
    auto ref = dyn_cast<RefType>(type);
    auto tensor = dyn_cast<RankedTensorType>(type);
    ArrayRef<int64_t> expected = ref      ? ref.getShape()
                                 : tensor ? tensor.getShape()
                                          : ArrayRef<int64_t>();
    if ((ref || tensor) &&
        (!array || expected == ArrayRef<int64_t>(array->shape)))
      continue;
    auto error = func.emitError() << "expected argument #" << i << " of type "
                                  << type << " but got shape [";
    llvm::interleaveComma(array->shape, error);
    error << "]";
    ok = false;
  }
  func.getBody().walk([&](Operation *op) {
    auto custom = dyn_cast<CustomVjpOp>(op->getParentOp());
    if (custom && op->getParentRegion() == &custom.getBackward())
      return; // the joint's
    if (!isa<ReferenceOpInterface, MakeRefOp, ReadOp, WriteOp,
             TransposeHandleOp, SetHandleOp, ResizeOp, KernelOp, CustomVjpOp,
             UndefinedOp, IfOp, ScanOp, WhileOp, CollectiveOpInterface>(op) &&
        !op->hasTrait<OpTrait::IsTerminator>()) {
      op->emitError() << "'" << op->getName() << "' op has no reference";
      ok = false;
    }
  });
  return success(ok);
}

SmallVector<int64_t> Handle::strides() const {
  SmallVector<int64_t> result;
  int64_t step = positions.size();
  for (int64_t size : positions.shape) {
    step /= size;
    result.push_back(
        size == 1 ? 0 : static_cast<int64_t>(positions[step] - positions[0]));
  }
  return result;
}

static std::optional<Handle> handleOf(const Ref &ref, Outcome &outcome) {
  auto it = llvm::find(outcome.storages, ref.storage);
  Handle handle{static_cast<unsigned>(it - outcome.storages.begin()),
                ref.positions};
  if (it == outcome.storages.end())
    outcome.storages.push_back(ref.storage);
  return handle;
}

/// What a caller has more digits of than the type, the program never sees.
static Call withRoundedArguments(func::FuncOp func, const Call &call) {
  Call rounded = call;
  for (auto [type, array] :
       llvm::zip_equal(func.getArgumentTypes(), rounded.arguments))
    if (array)
      roundToType(isa<RefType>(type) ? cast<RefType>(type).getElementType()
                                     : getElementTypeOrSelf(type),
                  *array);
  return rounded;
}

static FailureOr<Outcome> runCall(func::FuncOp func, const Call &call,
                                  bool keepsDigits) {
  Program program{call, keepsDigits, {}};
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i);
        role && role.getKind() == RoleKind::Cotangent && call.arguments[i])
      program.defined.insert(role.getName().getValue());
  Frame frame(program);
  Outcome outcome;
  Block &body = func.getBody().front();
  FailureOr<ArgumentRefs> refs = bindRefs(func, call, outcome);
  if (failed(refs))
    return failure();
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    if ((*refs)[i])
      frame.bind(argument, *(*refs)[i]);
    else
      frame.bind(argument, call.arguments[i]);
  }
  if (failed(frame.run(body)))
    return failure();
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    bool isRef = isa<RefType>(argument.getType());
    const Value_ &given = call.arguments[i];
    outcome.arguments.push_back(isRef ? frame.handle(argument).read() : given);
    outcome.argumentHandles.push_back(
        isRef ? handleOf(frame.handle(argument), outcome) : std::nullopt);
  }
  for (Value value : body.getTerminator()->getOperands()) {
    bool isRef = isa<RefType>(value.getType());
    outcome.results.push_back(frame.get(value));
    outcome.resultHandles.push_back(isRef ? handleOf(frame.ref(value), outcome)
                                          : std::nullopt);
  }
  return outcome;
}

FailureOr<Outcome> reference::run(func::FuncOp func, const Call &call) {
  if (failed(check(func, call)))
    return failure();
  return runCall(func, withRoundedArguments(func, call),
                 /*keepsDigits=*/false);
}

/// The values of the results, all of which have one.
static FailureOr<SmallVector<Array>> resultsOf(func::FuncOp func,
                                               FailureOr<Outcome> &outcome) {
  if (failed(outcome))
    return failure();
  SmallVector<Array> results;
  for (auto [i, value] : llvm::enumerate(outcome->results)) {
    if (!value)
      return func.emitError() << "result #" << i << " has no value";
    results.push_back(std::move(*value));
  }
  return results;
}

FailureOr<SmallVector<Array>> reference::evaluateUnrounded(
    func::FuncOp func, ArrayRef<Array> arguments,
    std::function<void(Operation *, MutableArrayRef<Array>)> computed) {
  Call call;
  call.computed = std::move(computed);
  llvm::append_range(call.arguments, arguments);
  if (failed(check(func, call)))
    return failure();
  FailureOr<Outcome> outcome = runCall(func, call, /*keepsDigits=*/true);
  return resultsOf(func, outcome);
}

FailureOr<SmallVector<Array>>
reference::evaluate(func::FuncOp func, ArrayRef<Array> arguments,
                    SmallVectorImpl<Array> *refsAfter) {
  Call call;
  llvm::append_range(call.arguments, arguments);
  FailureOr<Outcome> outcome = run(func, call);
  auto results = resultsOf(func, outcome);
  if (succeeded(results) && refsAfter) {
    refsAfter->clear();
    for (auto [i, value] : llvm::enumerate(outcome->arguments)) {
      if (!value)
        return func.emitError()
               << "argument #" << i << " shows storage that is freed";
      refsAfter->push_back(std::move(*value));
    }
  }
  return results;
}
