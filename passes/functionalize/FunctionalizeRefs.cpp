//===- FunctionalizeRefs.cpp - storage becomes values, roles say the rest -===//
//
// What a program did to the storage of an argument becomes a result with the
// role `update`; what it did to the argument's handle becomes properties of the
// argument's role; outputs that share storage with an argument or with each
// other say so in theirs.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/functionalize/Functionalizer.h"

#include "ir/EmptyTensors.h"
#include "ir/Signature.h"
#include "ir/Where.h"

namespace tandem {
#define GEN_PASS_DEF_FUNCTIONALIZEREFS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class GraphFunctionalizer {
public:
  explicit GraphFunctionalizer(func::FuncOp func)
      : func(func), block(func.getBody().front()), functionalizer(block),
        builder(functionalizer.builder) {}

  LogicalResult run();

private:
  /// A ref argument, the value that it came in with, and its role.
  struct Argument {
    Value ref;
    BlockArgument value;
    RoleAttr role;
    View *view; ///< what it showed at first
    unsigned index;

    std::string str() const { return nameOfArgument(role, index); }
  };
  struct Result {
    Value value;
    RoleAttr role;
    View *view; ///< null: a value
  };

  std::string nameOf(const Result &result) const {
    return nameOfResult(result.role, &result - results.data());
  }
  LogicalResult replaceArguments();
  LogicalResult bindAliases();
  LogicalResult bindShared(StorageState *storage);
  LogicalResult bindGroup(const StorageState *storage,
                          ArrayRef<Argument *> group);
  LogicalResult checkAliases();
  LogicalResult describeHandles();
  LogicalResult addOutputs();
  LogicalResult describeSharing();
  LogicalResult checkStrides(const Result &result, const View *base,
                             const std::string &name);
  void addUpdates();
  LogicalResult checkPrivateStates();
  void finish();

  DictionaryAttr aliasOf(StringRef kind, StringAttr name, const View *base,
                         const View *view);
  Argument *argumentOf(const StorageState *storage);

  func::FuncOp func;
  Block &block;
  Functionalizer functionalizer;
  OpBuilder &builder;
  SmallVector<Argument> arguments;
  SmallVector<Result> results;
};

} // namespace

/// Puts a tensor argument behind every ref argument; finish() removes the refs.
LogicalResult GraphFunctionalizer::replaceArguments() {
  builder.setInsertionPointToStart(&block);
  for (auto [i, argumentType] : llvm::enumerate(func.getArgumentTypes())) {
    unsigned position = i + arguments.size();
    BlockArgument value = block.getArgument(position);
    RoleAttr role = roleOfArgument(func, i);
    if (auto type = dyn_cast<RefType>(argumentType)) {
      Value ref = value;
      value = block.insertArgument(position + 1, type.getTensorType(),
                                   ref.getLoc());
      arguments.push_back(
          {ref, value, role, nullptr, static_cast<unsigned>(i)});
    }
    if (role.has("requires_grad"))
      functionalizer.addTracked(value);
  }
  for (Argument &argument : arguments) {
    if (argument.role.has("alias"))
      continue;
    auto type = cast<RankedTensorType>(argument.value.getType());
    bool isFreed = argument.role.has("freed");
    StorageState *storage = functionalizer.views.addStorage(
        type, isFreed ? Value() : argument.value, argument.ref.getLoc());
    storage->role = argument.role;
    storage->index = argument.index;
    storage->isFreed = storage->wasFreed = isFreed;
    argument.view = storage->whole;
    functionalizer.bind(argument.ref, argument.view);
  }
  return bindAliases();
}

/// Arguments that are declared to be views of another one, or of storage that
/// is no argument.
LogicalResult GraphFunctionalizer::bindAliases() {
  llvm::MapVector<StringAttr, StorageState *> shared;
  bool ok = true;
  for (Argument &argument : arguments) {
    auto alias = argument.role.getProperties().getAs<DictionaryAttr>("alias");
    if (!alias)
      continue;
    Location loc = argument.ref.getLoc();
    auto of = alias.getAs<StringAttr>("of");
    auto error = [&] {
      ok = false;
      return mlir::emitError(loc) << argument.str() << " ";
    };
    StorageState *storage = of ? shared.lookup(of) : nullptr;
    bool isOfArgument = of && findValue(func, of.getValue());
    if (!storage && isOfArgument) {
      auto base = llvm::find_if(arguments, [&](const Argument &other) {
        return other.role.getName() == of && other.view &&
               !other.view->source && !other.role.has("alias");
      });
      if (base == arguments.end()) {
        error() << "is declared to share the storage of '" << of.getValue()
                << "', so expected that to be a ref of its own";
        continue;
      }
      storage = base->view->storage;
    } else if (!storage) {
      auto type = alias.getAs<TypeAttr>("type");
      if (!of || !type || !isTensorType(type.getValue())) {
        error() << "is declared to share storage that is no argument, so "
                   "expected 'of' and the 'type' of that storage";
        continue;
      }
      storage = functionalizer.views.addStorage(
          cast<RankedTensorType>(type.getValue()), Value(), loc);
    }
    shared[of] = storage;
    View *view = functionalizer.views.add(storage->whole,
                                          alias.getAs<ArrayAttr>("views"), loc);
    if (view && view->type != argument.value.getType()) {
      error() << "is declared to show " << view->type << " of '"
              << of.getValue() << "', but is of type "
              << argument.value.getType();
      view = nullptr;
    }
    argument.view = view;
    ok &= view != nullptr;
    if (view && storage->role)
      functionalizer.bind(argument.ref, view);
  }
  if (!ok)
    return failure();
  for (auto [name, storage] : shared)
    if (!storage->role)
      ok &= succeeded(bindShared(storage));
  return success(ok);
}

/// Storage that is no argument. Those who show none of its elements in common
/// have nothing to do with each other.
LogicalResult GraphFunctionalizer::bindShared(StorageState *storage) {
  std::vector<std::vector<Argument *>> groups;
  for (Argument &argument : arguments) {
    if (argument.view->storage != storage)
      continue;
    std::vector<Argument *> group;
    llvm::erase_if(groups, [&](const std::vector<Argument *> &other) {
      bool meets = llvm::any_of(other, [&](const Argument *member) {
        return mayOverlap(member->view, argument.view);
      });
      if (meets)
        llvm::append_range(group, other);
      return meets;
    });
    group.push_back(&argument);
    groups.push_back(std::move(group));
  }
  bool ok = true;
  for (std::vector<Argument *> &group : groups) {
    llvm::sort(group, [](const Argument *a, const Argument *b) {
      return a->index < b->index;
    });
    ok &= succeeded(bindGroup(storage, group));
  }
  return success(ok);
}

/// Elements that `group` shows, put together from its arguments.
LogicalResult GraphFunctionalizer::bindGroup(const StorageState *storage,
                                             ArrayRef<Argument *> group) {
  Views &views = functionalizer.views;
  if (Argument &one = *group.front();
      group.size() == 1 && !mayOverlapItself(one.view)) {
    StorageState *own =
        views.addStorage(one.view->type, one.value, one.ref.getLoc());
    own->role = one.role;
    own->index = one.index;
    one.view = own->whole;
    functionalizer.bind(one.ref, one.view);
    return success();
  }
  RankedTensorType type = storage->whole->type;
  Location loc = storage->whole->loc;
  StorageState *own =
      views.addStorage(type, ConstantOp::splat(builder, loc, type, 0), loc);
  own->isShared = true;
  for (Argument *argument : group) {
    argument->view = views.rebase(argument->view, own);
    functionalizer.bind(argument->ref, argument->view);
    View *culprit = nullptr;
    SmallVector<std::pair<View *, Value>> written;
    Value whole = views.scatter(argument->view, argument->value,
                                argument->ref.getLoc(), culprit, written);
    if (!whole)
      return mlir::emitError(argument->ref.getLoc())
             << argument->str()
             << " is declared to show elements that overlap each other";
    views.overwrite(own, whole);
    if (functionalizer.isTracked(argument->value))
      functionalizer.addTracked(whole);
  }
  return success();
}

/// Bytes that are written as one type and differentiated as another have no
/// gradient.
LogicalResult GraphFunctionalizer::checkAliases() {
  bool ok = true;
  for (const Argument &argument : arguments) {
    if (!hasBitcast(argument.view) || !argument.view->storage->lastWrite)
      continue;
    for (const Argument &other : arguments) {
      if (other.view->storage != argument.view->storage ||
          !other.role.has("requires_grad"))
        continue;
      auto error = argument.view->storage->lastWrite->emitOpError()
                   << "writes storage that " << argument.str() << " shows as "
                   << argument.view->type.getElementType() << " and "
                   << other.str() << ", which requires grad, "
                   << "as " << other.view->type.getElementType();
      error.attachNote(argument.ref.getLoc()) << "it is declared here";
      ok = false;
    }
  }
  return success(ok);
}

/// An argument that shows all of the storage: the one that it came in with,
/// where there is one; or null.
GraphFunctionalizer::Argument *
GraphFunctionalizer::argumentOf(const StorageState *storage) {
  Argument *found = nullptr;
  for (Argument &argument : arguments)
    if (argument.view->storage == storage && !argument.view->source &&
        (!found || (storage->role && argument.index == storage->index)))
      found = &argument;
  return found;
}

DictionaryAttr GraphFunctionalizer::aliasOf(StringRef kind, StringAttr name,
                                            const View *base,
                                            const View *view) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(kind, name),
       builder.getNamedAttr("views", stepsBetween(base, view))});
}

/// What the program did to the handles of its arguments, and to the size of
/// their storages.
LogicalResult GraphFunctionalizer::describeHandles() {
  bool ok = true;
  for (Argument &argument : arguments) {
    const Functionalizer::Handle &handle =
        functionalizer.handleOf(argument.ref);
    const StorageState *storage = argument.view->storage;
    RoleAttr &role = argument.role;
    if (storage->isFreed != storage->wasFreed &&
        argumentOf(storage) == &argument) {
      int64_t elements =
          storage->isFreed ? 0 : storage->whole->type.getNumElements();
      role = role.with("resize", builder.getI64IntegerAttr(elements));
    }
    if (storage->isFreed != storage->wasFreed && !argumentOf(storage)) {
      storage->resize->emitOpError()
          << "changes the size of storage that " << argument.str()
          << " shows a part of, and no argument the whole";
      ok = false;
    }
    bool isInput = role.getKind() == RoleKind::Input;
    if (!isInput && role.has("resize")) {
      storage->resize->emitOpError()
          << "changes the size of the storage of " << argument.str()
          << ", which is the model's; expected that of an input";
      ok = false;
    }
    if (handle.now == handle.before)
      continue;
    Operation *change = handle.set ? handle.set : handle.transpose;
    if (!isInput) {
      change->emitOpError() << "changes the handle of " << argument.str()
                            << ", which is the model's; expected an input";
      ok = false;
      continue;
    }
    if (handle.now->storage == handle.before->storage &&
        isSourceOf(handle.before, handle.now)) {
      if (!stridesBetween(handle.before, handle.now)) {
        change->emitOpError()
            << "gives " << argument.str()
            << " a view of itself whose elements are not at equal distances "
               "in storage";
        ok = false;
        continue;
      }
      role = role.with(
          "metadata", aliasOf("of", role.getName(), handle.before, handle.now));
      continue;
    }
    if (role.has("requires_grad") && handle.visibleWrite) {
      auto error = change->emitOpError()
                   << "changes the storage of " << argument.str()
                   << ", which requires grad and is written by "
                   << whereIs(handle.visibleWrite);
      error.attachNote(handle.visibleWrite->getLoc()) << "it is written here";
      ok = false;
      continue;
    }
    Argument *other = nullptr;
    for (Argument &candidate : arguments)
      if (&candidate != &argument && candidate.view &&
          isSourceOf(candidate.view, handle.now) &&
          (!other || isSourceOf(other->view, candidate.view)))
        other = &candidate;
    if (!other) {
      change->emitOpError() << "gives " << argument.str()
                            << " storage that no other argument has";
      ok = false;
      continue;
    }
    if (!stridesBetween(other->view, handle.now)) {
      change->emitOpError()
          << "gives " << argument.str() << " a view of " << other->str()
          << " whose elements are not at equal distances in storage";
      ok = false;
      continue;
    }
    role = role.with("storage", aliasOf("of", other->role.getName(),
                                        other->view, handle.now));
  }
  return success(ok);
}

LogicalResult GraphFunctionalizer::addOutputs() {
  auto terminator = cast<func::ReturnOp>(block.getTerminator());
  bool ok = true;
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    RoleAttr role = roleOfResult(func, i);
    View *view = nullptr;
    Value result = value;
    if (isa<RefType>(value.getType())) {
      view = functionalizer.viewOf(value);
      result = functionalizer.views.read(view);
      if (!result) {
        func.emitError() << nameOfResult(role, i) << " is freed at the end";
        ok = false;
      }
      if (StringAttr whole = partOf(view))
        role = role.with("part_of", whole);
      // What has no elements shares none.
      if (isEmptyTensor(view->type))
        view = nullptr;
    }
    results.push_back({result, role, view});
  }
  return success(ok && succeeded(describeSharing()));
}

/// An output that shares storage is a handle: shape and strides.
LogicalResult GraphFunctionalizer::checkStrides(const Result &result,
                                                const View *base,
                                                const std::string &name) {
  if (stridesBetween(base, result.view))
    return success();
  auto error = func.emitError()
               << nameOf(result) << " is a view of " << name
               << " whose elements are not at equal distances in storage; "
                  "return a copy";
  error.attachNote(result.view->loc) << "the view is made here";
  return failure();
}

/// Outputs that are refs share the storage of an argument, or of each other.
LogicalResult GraphFunctionalizer::describeSharing() {
  bool ok = true;
  for (Result &result : results) {
    if (!result.view)
      continue;
    // The argument, or else the output, that it is a view of by the fewest
    // steps.
    const Argument *argument = nullptr;
    for (const Argument &candidate : arguments)
      if (isSourceOf(candidate.view, result.view) &&
          (!argument || isSourceOf(argument->view, candidate.view)))
        argument = &candidate;
    if (argument) {
      result.role =
          result.role.with("alias", aliasOf("of", argument->role.getName(),
                                            argument->view, result.view));
      ok &= succeeded(checkStrides(result, argument->view, argument->str()));
      continue;
    }
    const Result *base = nullptr;
    for (const Result &candidate : results) {
      bool isBefore = candidate.view != result.view || &candidate < &result;
      if (&candidate == &result || !candidate.view || !isBefore ||
          !isSourceOf(candidate.view, result.view))
        continue;
      // The largest: what others are views of is no view itself.
      if (!base || isSourceOf(candidate.view, base->view))
        base = base && base->view == candidate.view ? base : &candidate;
    }
    if (base) {
      result.role =
          result.role.with("alias", aliasOf("output", base->role.getName(),
                                            base->view, result.view));
      ok &= succeeded(checkStrides(result, base->view, nameOf(*base)));
      continue;
    }
    for (const Result &other : results) {
      if (&other >= &result)
        break;
      if (!other.view || isSourceOf(result.view, other.view) ||
          !mayOverlap(other.view, result.view))
        continue;
      auto error = func.emitError()
                   << nameOf(other) << " and " << nameOf(result)
                   << " overlap in storage that no output and no argument "
                      "shows whole; return the tensor that they are views of "
                      "as well";
      error.attachNote(result.view->loc)
          << "'" << result.role.str() << "' is made here";
      ok = false;
    }
  }
  return success(ok);
}

/// The new values of storages, in the order of the arguments.
void GraphFunctionalizer::addUpdates() {
  for (const Argument &argument : arguments) {
    const StorageState *storage = argument.view->storage;
    if (!storage->lastWrite || storage->isFreed)
      continue;
    // One argument that shows all of it is enough.
    const Argument *whole = argumentOf(storage);
    if (whole && whole != &argument)
      continue;
    Value now = functionalizer.views.read(argument.view);
    if (now == argument.value)
      continue;
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Update,
                              argument.role.getName().getValue());
    Operation *write = storage->lastWrite;
    if (storage->visibleWrite) {
      role = role.withUnit("visible");
      write = storage->visibleWrite;
    }
    role = role.with("where", builder.getStringAttr(whereIs(write)));
    results.push_back({now, role, nullptr});
  }
}

/// A private copy is what the storage holds when the forward is over, and
/// nobody else sees it.
LogicalResult GraphFunctionalizer::checkPrivateStates() {
  bool ok = true;
  for (const Functionalizer::PrivateState &state :
       functionalizer.privateStates) {
    CustomVjpOp op = state.op;
    if (state.storage->version != state.version) {
      auto error = op.emitOpError()
                   << "has a backward that uses a ref to an intermediate which "
                      "the forward writes later; save the value instead";
      error.attachNote(state.storage->lastWrite->getLoc())
          << "it is written here";
      ok = false;
    }
    if (state.write.empty())
      continue;
    for (const Result &result : results) {
      if (!result.view || result.view->storage != state.storage)
        continue;
      std::string message = state.write +
                            " writes in a backward storage that " +
                            nameOf(result) + " shows";
      SmallVector<Attribute> rejected;
      if (op.getRejected())
        llvm::append_range(rejected, *op.getRejected());
      rejected.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("message", builder.getStringAttr(message)),
           builder.getNamedAttr("loc", LocationAttr(state.writeLoc))}));
      op.setRejectedAttr(builder.getArrayAttr(rejected));
    }
  }
  return success(ok);
}

void GraphFunctionalizer::finish() {
  SmallVector<Value> values;
  SmallVector<Attribute> resultRoles, argumentRoles;
  auto dictionary = [&](RoleAttr role) {
    return builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
  };
  for (const Result &result : results) {
    values.push_back(result.value);
    resultRoles.push_back(dictionary(result.role));
  }
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    argumentRoles.push_back(dictionary(roleOfArgument(func, i)));
  for (const Argument &argument : arguments)
    if (auto i = findValue(func, argument.role.getName()))
      argumentRoles[*i] = dictionary(argument.role);
  block.getTerminator()->setOperands(values);
  functionalizer.eraseRefOps();
  for (const Argument &argument : arguments)
    block.eraseArgument(cast<BlockArgument>(argument.ref).getArgNumber());
  func.setFunctionType(builder.getFunctionType(block.getArgumentTypes(),
                                               TypeRange(ValueRange(values))));
  func.setArgAttrsAttr(builder.getArrayAttr(argumentRoles));
  func.setResAttrsAttr(builder.getArrayAttr(resultRoles));
}

LogicalResult GraphFunctionalizer::run() {
  if (failed(replaceArguments()) || failed(functionalizer.run()))
    return failure();
  // Everything that is wrong at the end is reported at once.
  bool ok = succeeded(checkAliases());
  ok &= succeeded(describeHandles());
  ok &= succeeded(addOutputs());
  ok &= succeeded(checkPrivateStates());
  if (!ok)
    return failure();
  addUpdates();
  finish();
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
    if (failed(verifySignature(graph)) ||
        failed(GraphFunctionalizer(graph).run()) ||
        failed(leavePhase(module, "functionalize")))
      signalPassFailure();
  }
};

} // namespace
