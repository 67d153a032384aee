//===- BuildEvaluate.cpp - a graph for inference --------------------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/StringSet.h"

namespace tandem {
#define GEN_PASS_DEF_BUILDEVALUATE
#include "passes/Passes.h.inc"
} // namespace tandem

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
    if (StringAttr of = role.getAlias().of;
        of && written.contains(of.getValue()))
      setRoleOfResult(evaluate, i, role.without(RoleAttr::kAlias));
  }
  evaluate.getBody().front().getTerminator()->eraseOperands(updates);
  (void)evaluate.eraseResults(updates);
}

/// True if another argument or result speaks of an argument called `name`.
static bool isSpokenOf(func::FuncOp func, StringRef name) {
  auto speaks = [&](RoleAttr role) {
    bool found = RoleAttr::belongs(role.getKind()) && role.getName() == name;
    for (StringRef property :
         {RoleAttr::kAlias, RoleAttr::kMetadata, RoleAttr::kStorage})
      if (auto of = Alias::from(role.getProperty<DictionaryAttr>(property)).of)
        found |= of.getValue() == name;
    return found;
  };
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (speaks(roleOfArgument(func, i)))
      return true;
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (speaks(roleOfResult(func, i)))
      return true;
  return false;
}

/// True if another output is a view of the result `index`.
static bool isShown(func::FuncOp func, unsigned index) {
  StringAttr name = roleOfResult(func, index).getName();
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (roleOfResult(func, i).getAlias().output == name)
      return true;
  return false;
}

/// Takes the output `loss`, or without one the output 'loss', out of a graph
/// for inference, and with it the inputs that nothing else reads. A graph that
/// has no other output keeps it.
static void dropLoss(func::FuncOp graph, StringRef loss) {
  auto index =
      findResult(graph, RoleKind::Output, loss.empty() ? "loss" : loss);
  unsigned outputs = 0;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
    outputs += roleOfResult(graph, i).getKind() == RoleKind::Output;
  if (!index || outputs < 2 || isShown(graph, *index))
    return;
  llvm::BitVector wasRead(graph.getNumArguments());
  for (BlockArgument argument : graph.getArguments())
    wasRead[argument.getArgNumber()] = !argument.use_empty();
  graph.getBody().front().getTerminator()->eraseOperand(*index);
  (void)graph.eraseResult(*index);
  eraseDeadOps(graph);
  for (unsigned i = graph.getNumArguments(); i-- > 0;) {
    RoleAttr role = roleOfArgument(graph, i);
    if (role.getKind() == RoleKind::Input && wasRead[i] &&
        graph.getArgument(i).use_empty() && !isSpokenOf(graph, role.getName()))
      (void)graph.eraseArgument(i);
  }
}

namespace {

struct BuildEvaluate : tandem::impl::BuildEvaluateBase<BuildEvaluate> {
  using BuildEvaluateBase::BuildEvaluateBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    func::FuncOp evaluate = graph.clone();
    graph->getBlock()->getOperations().insert(std::next(graph->getIterator()),
                                              evaluate);
    evaluate.setName("evaluate");
    if (inference) {
      graph.erase();
      auto named = module->getAttrOfType<StringAttr>(kLossAttr);
      dropLoss(evaluate,
               loss.empty() && named ? named.getValue() : StringRef(loss));
    }
    evaluate.walk(
        [](CompositeOpInterface composite) { composite.setInference(); });
    dropWrites(evaluate);
  }
};

} // namespace
