//===- ViewChain.cpp - views as attributes --------------------------------===//
#include "compiler/capture/ViewChain.h"
#include "ir/BuildOp.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;

ArrayAttr tandem::viewChain(Value base, Value ref) {
  Builder b(base.getContext());
  SmallVector<Attribute> chain;
  while (ref != base) {
    auto view = ref.getDefiningOp<RefViewOpInterface>();
    if (!view)
      return {};
    NamedAttrList step;
    for (NamedAttribute attribute : view->getAttrs())
      if (!attribute.getName().getValue().starts_with("tandem."))
        step.append(attribute);
    step.set(key::kOp, b.getStringAttr(view->getName().stripDialect()));
    if (isa<BitcastOp>(view))
      step.set(key::kType,
               TypeAttr::get(cast<RefType>(ref.getType()).getElementType()));
    chain.push_back(step.getDictionary(base.getContext()));
    ref = view.getViewSource();
  }
  std::reverse(chain.begin(), chain.end());
  return b.getArrayAttr(chain);
}

Type tandem::viewType(StringRef op, Type ref, Type element) {
  if (op != "bitcast" || !element)
    return {};
  if (auto type = dyn_cast<RefType>(ref))
    return RefType::get(ref.getContext(), type.getShape(), element);
  return cast<RankedTensorType>(ref).clone(element);
}

FailureOr<Value> tandem::buildViews(OpBuilder &builder, Location loc, Value ref,
                                    ArrayAttr chain) {
  for (auto step : chain.getAsRange<DictionaryAttr>()) {
    auto op = step.getAs<StringAttr>(key::kOp);
    auto type = step.getAs<TypeAttr>(key::kType);
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute attribute : step)
      if (attribute.getName() != key::kOp && attribute.getName() != key::kType)
        attributes.push_back(attribute);
    SmallVector<Type> types;
    if (Type result = viewType(op.getValue(), ref.getType(),
                               type ? type.getValue() : Type()))
      types.push_back(result);
    auto made = buildOp(builder, loc, op.getValue(), ref, attributes, types);
    if (failed(made))
      return failure();
    if (!isa<RefViewOpInterface>(*made)) {
      auto error = emitError(loc)
                   << "expected a view, but got '" << op.getValue() << "'";
      (*made)->erase();
      return error;
    }
    ref = (*made)->getResult(0);
  }
  return ref;
}

//===----------------------------------------------------------------------===//
// Declared aliases
//===----------------------------------------------------------------------===//

/// The tensor type of an argument that may be a ref.
static Type tensorTypeOf(BlockArgument argument) {
  if (auto ref = dyn_cast<RefType>(argument.getType()))
    return ref.getTensorType();
  return argument.getType();
}

/// Follows one alias to its storage.
static LogicalResult
resolveAlias(func::FuncOp func, BlockArgument argument,
             llvm::StringMap<std::pair<StringRef, Type>> &storages) {
  RoleAttr role = roleOfArgument(func, argument.getArgNumber());
  Alias alias = role.getAlias();
  if (!alias)
    return success();
  auto fail = [&] { return mlir::emitError(argument.getLoc()); };
  StringAttr of = alias.of;
  TypeAttr type = alias.type;
  SmallVector<Attribute> chain(alias.views.getValue());
  for (unsigned steps = 0;; ++steps) {
    auto index = findValue(func, of);
    if (steps > func.getNumArguments() || of == role.getName())
      return fail() << "expected '" << role.getName().getValue()
                    << "' to alias another storage, but it aliases itself";
    if (!index)
      break;
    BlockArgument base = func.getArgument(*index);
    if (type && type.getValue() != tensorTypeOf(base))
      return fail() << "expected '" << of.getValue() << "', which '"
                    << role.getName().getValue() << "' aliases, to have type "
                    << type.getValue() << ", but got " << tensorTypeOf(base);
    type = {};
    Alias outer = roleOfArgument(func, *index).getAlias();
    if (!outer)
      break;
    chain.insert(chain.begin(), outer.views.begin(), outer.views.end());
    of = outer.of;
    type = outer.type;
  }
  if (!type && !findValue(func, of))
    return fail() << "expected '" << role.getName().getValue()
                  << "' to alias an argument or storage of a known type, but "
                     "there is no '"
                  << of.getValue() << "'";
  if (type) {
    auto [other, isNew] =
        storages.insert({of, {role.getName().getValue(), type.getValue()}});
    if (other->second.second != type.getValue())
      return fail() << "expected the storage '" << of.getValue()
                    << "' to have one type, but '" << other->second.first
                    << "' says " << other->second.second << " and '"
                    << role.getName().getValue() << "' says "
                    << type.getValue();
  }
  MLIRContext *context = func.getContext();
  Alias resolved{of, {}, ArrayAttr::get(context, chain), type};
  setRoleOfArgument(func, argument.getArgNumber(),
                    role.with(RoleAttr::kAlias, resolved.toAttr(context)));
  return success();
}

LogicalResult tandem::resolveAliases(func::FuncOp func) {
  llvm::StringMap<std::pair<StringRef, Type>> storages;
  bool ok = true;
  for (BlockArgument argument : func.getArguments())
    ok &= succeeded(resolveAlias(func, argument, storages));
  return success(ok);
}
