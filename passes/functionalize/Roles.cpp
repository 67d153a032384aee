//===- Roles.cpp - what is left of mutations ------------------------------===//
//
// Properties of the arguments' roles, outputs, and updates.
//
//===----------------------------------------------------------------------===//
#include "passes/functionalize/GraphFunctionalizer.h"

#include "ir/EmptyTensors.h"
#include "ir/Keys.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

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
      role = role.with(RoleAttr::kResize, builder.getI64IntegerAttr(elements));
    }
    if (storage->isFreed != storage->wasFreed && !argumentOf(storage)) {
      storage->resize->emitOpError()
          << "changes the size of storage that " << argument.str()
          << " shows a part of, and no argument the whole";
      ok = false;
    }
    bool isInput = role.getKind() == RoleKind::Input;
    if (!isInput && role.has(RoleAttr::kResize)) {
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
      role = role.with(RoleAttr::kMetadata, aliasOf(key::kOf, role.getName(),
                                                    handle.before, handle.now));
      continue;
    }
    if (role.has(RoleAttr::kRequiresGrad) && handle.visibleWrite) {
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
    role =
        role.with(RoleAttr::kStorage, aliasOf(key::kOf, other->role.getName(),
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
        role = role.with(RoleAttr::kPartOf, whole);
      // What has no elements shares none.
      if (isEmptyTensor(view->type))
        view = nullptr;
    }
    results.push_back({result, role, view});
  }
  return success(ok && succeeded(describeSharing()));
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
      role = role.withUnit(RoleAttr::kVisible);
      write = storage->visibleWrite;
    }
    role = role.with(RoleAttr::kWhere, builder.getStringAttr(whereIs(write)));
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
          {builder.getNamedAttr(key::kMessage, builder.getStringAttr(message)),
           builder.getNamedAttr(key::kLoc, LocationAttr(state.writeLoc))}));
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
