//===- Frozen.cpp - what inference computes of params and states alone ----===//
#include "passes/partition/Frozen.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Dialect.h"
#include "ir/Signature.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tandem;

FrozenValues::FrozenValues(func::FuncOp evaluate) {
  for (BlockArgument argument : evaluate.getArguments())
    if (RoleKind kind =
            roleOfArgument(evaluate, argument.getArgNumber()).getKind();
        kind == RoleKind::Param || kind == RoleKind::State) {
      frozen.insert(argument);
      ofVariables.insert(argument);
    }
  for (Operation &op : evaluate.getOps()) {
    if (op.getNumRegions() || !isMemoryEffectFree(&op) ||
        !llvm::all_of(op.getOperands(),
                      [&](Value operand) { return frozen.contains(operand); }))
      continue;
    frozen.insert(op.result_begin(), op.result_end());
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return ofVariables.contains(operand);
        }))
      ofVariables.insert(op.result_begin(), op.result_end());
  }
}

FailureOr<func::FuncOp> tandem::findFrozenProgram(ModuleOp module) {
  if (!module->hasAttr(kPrepareAttr))
    return func::FuncOp();
  if (module.lookupSymbol("joint"))
    return module.emitError()
           << "'" << kPrepareAttr
           << "' is for inference alone, but there is a function 'joint'";
  if (failed(checkSignatures(module)))
    return failure();
  return module.lookupSymbol<func::FuncOp>("evaluate");
}
