//===- Storage.cpp - which arguments a program may overwrite --------------===//
#include "passes/plan/Storage.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

static bool isValue(RoleAttr role) {
  return role && (role.getKind() == RoleKind::Input ||
                  role.getKind() == RoleKind::Param ||
                  role.getKind() == RoleKind::State ||
                  role.getKind() == RoleKind::Prepared);
}

ArgumentStorage::ArgumentStorage(func::FuncOp func) : func(func) {
  unsigned n = func.getNumArguments();
  for (unsigned i = 0; i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (role && role.getKind() == RoleKind::Cotangent)
      cotangents.try_emplace(role.getName().getValue(), i);
    if (!isValue(role))
      continue;
    auto [entry, isNew] = updated.try_emplace(role.getName().getValue(), i);
    if (!isNew && role.has(RoleAttr::kPass))
      entry->second = i;
  }
  SmallVector<StringAttr> storages;
  DenseMap<StringAttr, unsigned> counts;
  for (unsigned i = 0; i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    storages.push_back(isValue(role) ? storageOf(role) : StringAttr());
    if (storages.back())
      ++counts[storages.back()];
  }
  for (StringAttr storage : storages)
    own.push_back(!storage || counts[storage] == 1);
  findDonated();
}

std::optional<unsigned> ArgumentStorage::updatedArgument(StringRef name) const {
  const auto &names =
      name.consume_front("cotangent of ") ? cotangents : updated;
  auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

StringAttr ArgumentStorage::storageOf(RoleAttr role) {
  StringAttr name = role.getName();
  // An alias of an alias; as many steps as there are arguments, at most.
  for (unsigned step = 0, n = func.getNumArguments(); step < n; ++step) {
    StringAttr of = role.getAlias().of;
    if (!of)
      break;
    name = of;
    auto index = updatedArgument(of.getValue());
    if (!index)
      break;
    role = roleOfArgument(func, *index);
  }
  return name;
}

void ArgumentStorage::findDonated() {
  donated.assign(func.getNumArguments(), false);
  // A backward that keeps a graph leaves everything to those that come after.
  StringRef maker = func.getName() == "backward"        ? "forward"
                    : func.getName() == "grad_backward" ? "grad_forward"
                                                        : "";
  auto module = func->getParentOfType<ModuleOp>();
  auto forward = module && !maker.empty()
                     ? module.lookupSymbol<func::FuncOp>(maker)
                     : func::FuncOp();
  if (!forward)
    return;
  RoleIndex roles(forward);
  for (unsigned i = 0; i < donated.size(); ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (!role || role.getKind() != RoleKind::Saved ||
        role.has(RoleAttr::kAlias) || role.has(RoleAttr::kHost))
      continue;
    auto result = roles.result(RoleKind::Saved, role.getName());
    donated[i] =
        result && !roleOfResult(forward, *result).has(RoleAttr::kAlias);
  }
}
