//===- Storage.cpp - which arguments a program may overwrite --------------===//
#include "passes/plan/Storage.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

static bool isValue(RoleAttr role) {
  return role && (role.getKind() == RoleKind::Input ||
                  role.getKind() == RoleKind::Param ||
                  role.getKind() == RoleKind::State);
}

std::optional<unsigned> tandem::updatedArgument(func::FuncOp func,
                                                StringRef name) {
  if (name.consume_front("cotangent of "))
    return findArgument(func, RoleKind::Cotangent, name);
  std::optional<unsigned> found;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (isValue(role) && role.getName() == name && (!found || role.has("pass")))
      found = i;
  }
  return found;
}

/// The name of the storage that an argument shows: its own, or that of what it
/// is declared to be an alias of.
static StringAttr storageOf(func::FuncOp func, RoleAttr role) {
  StringAttr name = role.getName();
  // An alias of an alias; as many steps as there are arguments, at most.
  for (unsigned step = 0, n = func.getNumArguments(); step < n; ++step) {
    auto alias = role.getProperties().getAs<DictionaryAttr>("alias");
    auto of = alias ? alias.getAs<StringAttr>("of") : StringAttr();
    if (!of)
      break;
    name = of;
    auto index = updatedArgument(func, of.getValue());
    if (!index)
      break;
    role = roleOfArgument(func, *index);
  }
  return name;
}

SmallVector<bool> tandem::haveOwnStorage(func::FuncOp func) {
  SmallVector<StringAttr> storages;
  DenseMap<StringAttr, unsigned> counts;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    storages.push_back(isValue(role) ? storageOf(func, role) : StringAttr());
    if (storages.back())
      ++counts[storages.back()];
  }
  SmallVector<bool> own;
  for (StringAttr storage : storages)
    own.push_back(!storage || counts[storage] == 1);
  return own;
}

bool tandem::isDonated(func::FuncOp func, unsigned index) {
  RoleAttr role = roleOfArgument(func, index);
  if (!role || role.getKind() != RoleKind::Saved || role.has("alias"))
    return false;
  // A backward that keeps a graph leaves everything to those that come after.
  StringRef maker = func.getName() == "backward"        ? "forward"
                    : func.getName() == "grad_backward" ? "grad_forward"
                                                        : "";
  auto module = func->getParentOfType<ModuleOp>();
  auto forward = module && !maker.empty()
                     ? module.lookupSymbol<func::FuncOp>(maker)
                     : func::FuncOp();
  auto result = forward ? findResult(forward, RoleKind::Saved, role.getName())
                        : std::nullopt;
  return result && !roleOfResult(forward, *result).has("alias");
}
