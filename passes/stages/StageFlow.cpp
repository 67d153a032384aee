//===- StageFlow.cpp - what of a graph goes between stages ----------------===//
#include "passes/stages/StageFlow.h"

#include "ir/Ops.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tandem;

llvm::SetVector<Value> StageFlow::operandsOf(Operation *op) {
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  return operands;
}

StageFlow::StageFlow(func::FuncOp graph) : graph(graph) {
  for (Operation &op : graph.getBody().front().without_terminator()) {
    positions[&op] = static_cast<unsigned>(all.size());
    all.push_back(&op);
  }
  findFloating();
  findCarried();
  findBound();
}

/// Each stage has all inputs of the model, and its own copy of what is only
/// read.
bool StageFlow::isSource(BlockArgument argument) const {
  RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
  return !role.has(RoleAttr::kRequiresGrad) && !written.contains(argument);
}

bool StageFlow::isFree(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isSource(argument);
  return floating.contains(value.getDefiningOp());
}

static bool isLight(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost || op->getNumRegions() || !isMemoryEffectFree(op))
    return false;
  OpClass kind = cost.getOpClass();
  return kind == OpClass::Constant || kind == OpClass::View ||
         kind == OpClass::Pointwise;
}

void StageFlow::findFloating() {
  Operation *terminator = graph.getBody().front().getTerminator();
  // What is written by what does not float is no source, and so on.
  for (size_t known = all.size() + 1; known != written.size();) {
    known = written.size();
    floating.clear();
    for (Operation *op : all)
      if (isLight(op) && llvm::all_of(op->getOperands(), [&](Value value) {
            return isFree(value);
          }))
        floating.insert(op);
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      RoleAttr role = roleOfResult(graph, i);
      if (role.getKind() != RoleKind::Update || isFree(value))
        continue;
      if (auto index = findValue(graph, role.getName()))
        written.insert(graph.getArgument(*index));
    }
  }
}

void StageFlow::findCarried() {
  for (auto [at, op] : llvm::enumerate(all)) {
    if (isFloating(op))
      continue;
    auto here = static_cast<unsigned>(at);
    for (Value operand : operandsOf(op))
      if (!isFree(operand) && !written.contains(operand))
        values.insert({operand, {here, here}}).first->second.last = here;
    for (Value result : op->getResults())
      values.insert({result, {here, here}});
  }
}

void StageFlow::findBound() {
  Operation *terminator = graph.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    RoleAttr role = roleOfResult(graph, i);
    auto index = role.getKind() == RoleKind::Update
                     ? findValue(graph, role.getName())
                     : std::optional<unsigned>();
    if (!index || !written.contains(graph.getArgument(*index)))
      continue;
    BlockArgument argument = graph.getArgument(*index);
    auto *maker = value.getDefiningOp();
    unsigned at = maker ? positions.at(maker) : 0;
    Bound made = {argument, at, at};
    for (auto [position, op] : llvm::enumerate(all))
      if (!isFloating(op) && operandsOf(op).contains(argument)) {
        made.first = std::min(made.first, static_cast<unsigned>(position));
        made.last = std::max(made.last, static_cast<unsigned>(position));
      }
    states.push_back(made);
  }
}
