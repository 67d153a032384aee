//===- InsertHostCopies.cpp - copies to the host's memory and back --------===//
#include "passes/Passes.h"

#include "ir/HostCopy.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_INSERTHOSTCOPIES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static bool isOnHost(RoleAttr role) {
  return role && role.getKind() == RoleKind::Saved && role.has(RoleAttr::kHost);
}

namespace {

struct InsertHostCopies : tandem::impl::InsertHostCopiesBase<InsertHostCopies> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return markAllAnalysesPreserved();
    OpBuilder builder(&getContext());
    for (BlockArgument argument : func.getArguments()) {
      if (!isOnHost(roleOfArgument(func, argument.getArgNumber())))
        continue;
      builder.setInsertionPointToStart(argument.getOwner());
      auto copy =
          ToDeviceOp::create(builder, argument.getLoc(), argument.getType(),
                             argument, BufferAttr(), ArrayAttr());
      argument.replaceAllUsesExcept(copy, copy);
      ++inserted;
    }
    Operation *terminator = func.getBody().front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      if (!isOnHost(roleOfResult(func, operand.getOperandNumber())))
        continue;
      Value value = operand.get();
      builder.setInsertionPointAfterValue(value);
      operand.set(ToHostOp::create(builder, value.getLoc(), value.getType(),
                                   value, BufferAttr(), ArrayAttr()));
      ++inserted;
    }
  }
};

} // namespace
