//===- BuildEvaluate.cpp - a graph for inference --------------------------===//
#include "passes/autodiff/CustomVjp.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/JointBuilder.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

/// Nothing is written, so no handle changes, and an output that would share the
/// storage of a written argument has its own.
static void dropWrites(func::FuncOp evaluate) {
  llvm::StringSet<> written;
  for (unsigned i = 0, n = evaluate.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(evaluate, i);
        role.getKind() == RoleKind::Update)
      written.insert(role.getName());
  for (unsigned i = 0, n = evaluate.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(evaluate, i);
    for (StringRef property : {"metadata", "storage", "resize"}) {
      if (role.has(property))
        written.insert(role.getName());
      role = role.without(property);
    }
    setRoleOfArgument(evaluate, i, role);
  }
  llvm::BitVector updates(evaluate.getNumResults());
  for (unsigned i = 0, n = evaluate.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(evaluate, i);
    updates[i] = role.getKind() == RoleKind::Update;
    auto alias = role.getProperties().getAs<DictionaryAttr>("alias");
    if (auto of = alias ? alias.getAs<StringAttr>("of") : StringAttr();
        of && written.contains(of.getValue()))
      setRoleOfResult(evaluate, i, role.without("alias"));
  }
  evaluate.getBody().front().getTerminator()->eraseOperands(updates);
  (void)evaluate.eraseResults(updates);
}

LogicalResult tandem::buildEvaluate(func::FuncOp evaluate) {
  setInference(evaluate);
  dropWrites(evaluate);
  fuseComposites(evaluate);
  if (failed(decomposeComposites(evaluate)) || failed(expandGrads(evaluate)))
    return failure();
  return finishJoint(evaluate);
}
