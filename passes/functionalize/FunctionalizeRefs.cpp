//===- FunctionalizeRefs.cpp - storage becomes values ---------------------===//
//
// Walks @graph once, in order, and keeps for every storage the value that it
// holds at that point. A read is that value seen through the ref's views; a
// write makes a new value: through a view, the view's elements scattered into
// those of its source, and so on to the base. Every other view of the storage
// is made again from the new base when it is next read. What a program did to
// the storage of an argument becomes a result with the role `update`.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/IR/IRMapping.h"

namespace tandem {
#define GEN_PASS_DEF_FUNCTIONALIZEREFS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class Functionalizer {
public:
  explicit Functionalizer(func::FuncOp func)
      : func(func), block(func.getBody().front()), builder(func.getContext()) {}

  LogicalResult run();

private:
  /// What a ref showed when its storage was at `version`.
  struct Seen {
    Value value;
    unsigned version;
  };

  /// A ref argument, the value that it came in with, and its role.
  struct Argument {
    Value ref;
    BlockArgument value;
    RoleAttr role;
  };

  void replaceArguments();
  LogicalResult visit(Operation *op);
  LogicalResult visitWrite(WriteOp write);
  /// The ref of the whole storage that `ref` is a view of.
  Value baseOf(Value ref) const;
  /// What `ref` shows now, if that is known without new ops.
  Value known(Value ref) const;
  /// What `ref` shows now; makes its views again where it must.
  Value valueOf(Value ref, Location loc);
  /// Follows gradients: the results of `op` are tracked if an operand is.
  void track(Operation *op);
  void finish(func::ReturnOp terminator);

  func::FuncOp func;
  Block &block;
  OpBuilder builder;
  DenseMap<Value, Seen> seen;
  /// Counts the writes to each storage, by its base.
  DenseMap<Value, unsigned> version;
  /// Values through which gradients flow to an argument that requires one.
  DenseSet<Value> tracked;
  SmallVector<Operation *> dead;
  SmallVector<Argument> arguments;
};

} // namespace

static RefViewOpInterface viewOf(Value ref) {
  return ref.getDefiningOp<RefViewOpInterface>();
}

Value Functionalizer::baseOf(Value ref) const {
  while (auto view = viewOf(ref))
    ref = view.getViewSource();
  return ref;
}

Value Functionalizer::known(Value ref) const {
  auto it = seen.find(ref);
  return it != seen.end() && it->second.version == version.lookup(baseOf(ref))
             ? it->second.value
             : Value();
}

Value Functionalizer::valueOf(Value ref, Location loc) {
  // From the outermost view back to what is known; then forward again.
  SmallVector<Value> unknown;
  Value value;
  for (Value source = ref; !(value = known(source));
       source = viewOf(source).getViewSource())
    unknown.push_back(source);
  unsigned now = version.lookup(baseOf(ref));
  for (Value view : llvm::reverse(unknown)) {
    Operation *op = view.getDefiningOp();
    IRMapping map;
    map.map(viewOf(view).getViewSource(), value);
    Operation *copy = builder.clone(*op, map);
    copy->getResult(0).setType(cast<RefType>(view.getType()).getTensorType());
    value = copy->getResult(0);
    seen[view] = {value, now};
  }
  return value;
}

/// Puts a tensor argument behind every ref argument; finish() removes the refs.
void Functionalizer::replaceArguments() {
  for (auto [i, argumentType] : llvm::enumerate(func.getArgumentTypes())) {
    unsigned position = i + arguments.size();
    BlockArgument value = block.getArgument(position);
    RoleAttr role = roleOfArgument(func, i);
    if (auto type = dyn_cast<RefType>(argumentType)) {
      Value ref = value;
      value = block.insertArgument(position + 1, type.getTensorType(),
                                   ref.getLoc());
      seen[ref] = {value, 0};
      arguments.push_back({ref, value, role});
    }
    if (role.has("requires_grad"))
      tracked.insert(value);
  }
}

void Functionalizer::track(Operation *op) {
  if (!op->hasAttr(kNoGradAttr) && !op->hasTrait<NotDifferentiable>() &&
      llvm::any_of(op->getOperands(),
                   [&](Value operand) { return tracked.contains(operand); }))
    for (Value result : op->getResults())
      if (isDifferentiableType(result.getType()))
        tracked.insert(result);
}

LogicalResult Functionalizer::visitWrite(WriteOp write) {
  Value ref = write.getRef(), value = write.getValue();
  // Writing back what is there changes nothing.
  if (known(ref) == value)
    return success();
  // Such a write changes the value and leaves the gradient as it was, for
  // which there is no op.
  if (write->hasAttr(kNoGradAttr) && tracked.contains(known(baseOf(ref))))
    return write.emitOpError() << "in a no-grad region overwrites a value that "
                                  "gradients flow through";
  SmallVector<std::pair<Value, Value>> written = {{ref, value}};
  while (auto view = viewOf(ref)) {
    Value source = view.getViewSource();
    Value base = valueOf(source, write.getLoc());
    value = view.scatterInto(builder, write.getLoc(), base, value);
    if (!value) {
      auto error = write.emitOpError()
                   << "writes through '" << view->getName()
                   << "', whose elements overlap in storage";
      error.attachNote(view.getLoc()) << "the view is made here";
      return failure();
    }
    ref = source;
    written.push_back({ref, value});
  }
  unsigned now = ++version[ref];
  for (auto [view, elements] : written)
    seen[view] = {elements, now};
  return success();
}

LogicalResult Functionalizer::visit(Operation *op) {
  auto isRef = [](Value value) { return isa<RefType>(value.getType()); };
  if (llvm::none_of(op->getOperands(), isRef) &&
      llvm::none_of(op->getResults(), isRef)) {
    track(op);
    return success();
  }
  dead.push_back(op);
  if (isa<RefViewOpInterface>(op))
    return success();
  if (auto make = dyn_cast<MakeRefOp>(op)) {
    seen[make.getRef()] = {make.getValue(), 0};
    return success();
  }
  builder.setInsertionPoint(op);
  Operation *before = op->getPrevNode();
  if (auto read = dyn_cast<ReadOp>(op))
    read.getValue().replaceAllUsesWith(valueOf(read.getRef(), op->getLoc()));
  else if (!isa<WriteOp>(op))
    return op->emitOpError() << "uses a ref, but is neither a view, a read nor "
                                "a write of it";
  else if (failed(visitWrite(cast<WriteOp>(op))))
    return failure();
  // What a write in a no-grad region makes belongs to that region.
  for (Operation *made = before ? before->getNextNode() : &block.front();
       made != op; made = made->getNextNode()) {
    if (isa<WriteOp>(op) && op->hasAttr(kNoGradAttr))
      made->setAttr(kNoGradAttr, builder.getUnitAttr());
    track(made);
  }
  return success();
}

/// Outputs first, then the updates in the order of the arguments.
void Functionalizer::finish(func::ReturnOp terminator) {
  builder.setInsertionPoint(terminator);
  SmallVector<Value> results;
  SmallVector<Attribute> attributes;
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    results.push_back(isa<RefType>(value.getType())
                          ? valueOf(value, terminator.getLoc())
                          : value);
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kRoleAttr, roleOfResult(func, i))));
  }
  for (const Argument &argument : arguments) {
    Value now = known(argument.ref);
    if (now == argument.value)
      continue;
    results.push_back(now);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        kRoleAttr, RoleAttr::get(func.getContext(), RoleKind::Update,
                                 argument.role.getName().getValue()))));
  }
  terminator->setOperands(results);
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  for (const Argument &argument : arguments)
    block.eraseArgument(cast<BlockArgument>(argument.ref).getArgNumber());
  func.setFunctionType(builder.getFunctionType(block.getArgumentTypes(),
                                               TypeRange(ValueRange(results))));
  func.setResAttrsAttr(builder.getArrayAttr(attributes));
}

LogicalResult Functionalizer::run() {
  replaceArguments();
  bool ok = true;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    ok &= succeeded(visit(&op));
  if (!ok)
    return failure();
  finish(cast<func::ReturnOp>(block.getTerminator()));
  return success();
}

namespace {

struct FunctionalizeRefs
    : tandem::impl::FunctionalizeRefsBase<FunctionalizeRefs> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(expectPhase(module, "capture")))
      return signalPassFailure();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!graph || graph.isExternal() || !graph.getBody().hasOneBlock()) {
      module.emitError() << "expected a function 'graph' with a body of one "
                            "block";
      return signalPassFailure();
    }
    if (failed(verifySignature(graph)) || failed(Functionalizer(graph).run()) ||
        failed(leavePhase(module, "functionalize")))
      signalPassFailure();
  }
};

} // namespace
