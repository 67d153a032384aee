//===- Arguments.cpp - refs that come in ----------------------------------===//
//
// A ref argument is a tensor argument and a storage; those that are declared to
// be views of one another share one.
//
//===----------------------------------------------------------------------===//
#include "passes/functionalize/GraphFunctionalizer.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

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
    if (role.has(RoleAttr::kRequiresGrad))
      functionalizer.addTracked(value);
  }
  for (Argument &argument : arguments) {
    if (argument.role.has(RoleAttr::kAlias))
      continue;
    auto type = cast<RankedTensorType>(argument.value.getType());
    bool isFreed = argument.role.has(RoleAttr::kFreed);
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
    Alias alias = argument.role.getAlias();
    if (!alias)
      continue;
    Location loc = argument.ref.getLoc();
    StringAttr of = alias.of;
    auto error = [&] {
      ok = false;
      return mlir::emitError(loc) << argument.str() << " ";
    };
    StorageState *storage = of ? shared.lookup(of) : nullptr;
    bool isOfArgument = of && findValue(func, of.getValue());
    if (!storage && isOfArgument) {
      auto base = llvm::find_if(arguments, [&](const Argument &other) {
        return other.role.getName() == of && other.view &&
               !other.view->source && !other.role.has(RoleAttr::kAlias);
      });
      if (base == arguments.end()) {
        error() << "is declared to share the storage of '" << of.getValue()
                << "', so expected that to be a ref of its own";
        continue;
      }
      storage = base->view->storage;
    } else if (!storage) {
      TypeAttr type = alias.type;
      if (!of || !type || !isTensorType(type.getValue())) {
        error() << "is declared to share storage that is no argument, so "
                   "expected 'of' and the 'type' of that storage";
        continue;
      }
      storage = functionalizer.views.addStorage(
          cast<RankedTensorType>(type.getValue()), Value(), loc);
    }
    shared[of] = storage;
    View *view = functionalizer.views.add(storage->whole, alias.views, loc);
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
