//===- DropAliasOutputs.cpp - outputs that are views are no results -------===//
#include "passes/Passes.h"
#include "passes/partition/Programs.h"

#include "ir/Keys.h"

namespace tandem {
#define GEN_PASS_DEF_DROPALIASOUTPUTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

void tandem::setAliases(func::FuncOp func, func::FuncOp source) {
  Builder builder(func.getContext());
  SmallVector<Attribute> list;
  for (unsigned i = 0, n = source.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(source, i);
    if (!role || !isAliasOutput(role))
      continue;
    NamedAttrList entry(role.getProperty<DictionaryAttr>(RoleAttr::kAlias));
    entry.set(key::kName, role.getName());
    entry.set(key::kType, TypeAttr::get(source.getResultTypes()[i]));
    if (Attribute part = role.getProperty<StringAttr>(RoleAttr::kPartOf))
      entry.set(key::kPartOf, part);
    list.push_back(entry.getDictionary(func.getContext()));
  }
  if (!list.empty())
    func->setAttr(kAliasesAttr, builder.getArrayAttr(list));
}

namespace {

struct DropAliasOutputs : tandem::impl::DropAliasOutputsBase<DropAliasOutputs> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    // What a joint gives out decides what is saved; its programs leave them
    // out when it is divided.
    if (func.isExternal() || func.getName() == "joint" ||
        func.getName() == "grad_joint")
      return markAllAnalysesPreserved();
    llvm::BitVector views(func.getNumResults());
    for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
      if (RoleAttr role = roleOfResult(func, i); role && isAliasOutput(role))
        views.set(i);
    if (views.none())
      return markAllAnalysesPreserved();
    dropped += views.count();
    setAliases(func, func);
    func.walk([&](func::ReturnOp op) { op->eraseOperands(views); });
    (void)func.eraseResults(views);
  }
};

} // namespace
