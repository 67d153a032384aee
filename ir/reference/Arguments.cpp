//===- Arguments.cpp - which storage each argument of a call shows --------===//
#include "ir/reference/Arguments.h"

#include "ir/Signature.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

namespace {

/// Gives the arguments of a call their places.
class Binder {
public:
  Binder(func::FuncOp func, const Call &call, Outcome &outcome)
      : func(func), call(call), outcome(outcome), refs(func.getNumArguments()) {
  }
  FailureOr<ArgumentRefs> run();

private:
  LogicalResult bind(unsigned index);
  LogicalResult bindAlias(unsigned index, DictionaryAttr alias);
  FailureOr<Ref> declared(unsigned index, DictionaryAttr alias);
  std::string nameOf(unsigned index) {
    RoleAttr role = roleOfArgument(func, index);
    return role ? role.getName().str() : "";
  }
  RefType typeOf(unsigned index) {
    return dyn_cast<RefType>(func.getArgumentTypes()[index]);
  }

  func::FuncOp func;
  const Call &call;
  Outcome &outcome;
  ArgumentRefs refs;
  llvm::StringMap<Ref> storages; ///< declared ones that are no argument
  SmallVector<unsigned> open;    ///< arguments that wait for their base
};

} // namespace

LogicalResult Binder::bind(unsigned index) {
  RefType type = typeOf(index);
  if (!type || refs[index])
    return success();
  RoleAttr role = roleOfArgument(func, index);
  auto alias = role ? role.getProperties().getAs<DictionaryAttr>("alias")
                    : DictionaryAttr();
  if (alias)
    return bindAlias(index, alias);
  if (const std::optional<Array> &value = call.arguments[index])
    refs[index] = Ref::holding(type, *value);
  else
    refs[index] = Ref::whole(
        std::make_shared<Memory>(type.getElementType(),
                                 type.getTensorType().getNumElements()),
        type.getShape());
  if (!call.arguments[index])
    refs[index]->storage->free();
  refs[index]->storage->name = nameOf(index);
  return success();
}

/// The ref to the whole of what the alias of argument `index` names.
FailureOr<Ref> Binder::declared(unsigned index, DictionaryAttr alias) {
  auto of = alias.getAs<StringAttr>("of");
  if (!of)
    return func.emitError() << "expected the alias of argument #" << index
                            << " to be of an argument or a storage";
  if (auto base = findValue(func, of)) {
    if (llvm::is_contained(open, *base) || !typeOf(*base))
      return func.emitError()
             << "expected '" << of.getValue() << "', of which argument #"
             << index << " is an alias, to have storage of its own";
    if (failed(bind(*base)))
      return failure();
    return *refs[*base];
  }
  auto it = storages.find(of.getValue());
  if (it != storages.end())
    return it->second;
  auto type = alias.getAs<TypeAttr>("type");
  auto tensor =
      type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!tensor || !isTensorType(tensor))
    return func.emitError() << "expected the storage '" << of.getValue()
                            << "' of argument #" << index << " to have a type";
  auto given = call.storages.find(of.str());
  Array value = given == call.storages.end() ? Array(tensor) : given->second;
  if (ArrayRef<int64_t>(value.shape) != tensor.getShape())
    return func.emitError() << "expected the storage '" << of.getValue()
                            << "' to be of type " << tensor;
  Ref whole = Ref::holding(RefType::of(tensor), value);
  whole.storage->name = of.str();
  // What the call does not say of it, the arguments do.
  if (given == call.storages.end())
    whole.storage->filled.assign(value.size(), false);
  storages.try_emplace(of.getValue(), whole);
  return whole;
}

LogicalResult Binder::bindAlias(unsigned index, DictionaryAttr alias) {
  open.push_back(index);
  FailureOr<Ref> base = declared(index, alias);
  open.pop_back();
  if (failed(base))
    return failure();
  FailureOr<Ref> ref =
      base->view(alias.getAs<ArrayAttr>("views"), func.getLoc());
  if (failed(ref))
    return failure();
  RefType type = typeOf(index);
  if (type.getShape() != ArrayRef<int64_t>(ref->positions.shape) ||
      type.getElementType() != ref->element)
    return func.emitError() << "expected argument #" << index
                            << " to have the type of what it is an alias of";
  const std::optional<Array> &value = call.arguments[index];
  // Elements that are there already must be those of the call.
  std::vector<bool> &filled = ref->storage->filled;
  for (int64_t i = 0; value && i < value->size(); ++i) {
    auto position = static_cast<size_t>(ref->positions[i]);
    Ref element{ref->storage, Array(ArrayRef<int64_t>{}), ref->element};
    element.positions[0] = ref->positions[i];
    Array number(ArrayRef<int64_t>{});
    number[0] = (*value)[i];
    if (filled.empty() || !filled[position])
      (void)element.write(number);
    else if ((*element.read())[0] != number[0])
      return func.emitError()
             << "expected argument #" << index << " to show the storage of '"
             << ref->storage->name << "', but it has other elements";
  }
  refs[index] = *ref;
  return success();
}

FailureOr<ArgumentRefs> Binder::run() {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    if (!typeOf(i))
      continue;
    if (failed(bind(i)))
      return failure();
    if (!llvm::is_contained(outcome.storages, refs[i]->storage))
      outcome.storages.push_back(refs[i]->storage);
  }
  // Zeros where neither the call nor an argument says what a storage holds.
  for (auto &entry : storages)
    entry.second.storage->filled.assign(entry.second.positions.size(), true);
  return std::move(refs);
}

FailureOr<ArgumentRefs> reference::bindRefs(func::FuncOp func, const Call &call,
                                            Outcome &outcome) {
  return Binder(func, call, outcome).run();
}
