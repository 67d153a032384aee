//===- EraseDeadOps.cpp - what nothing uses goes --------------------------===//
#include "passes/common/EraseDeadOps.h"
#include "passes/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

namespace tandem {
#define GEN_PASS_DEF_ERASEDEADOPS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

unsigned tandem::eraseDeadOps(Block &block) {
  unsigned count = 0;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op)) {
      op.erase();
      ++count;
    }
  return count;
}

unsigned tandem::eraseDeadOps(func::FuncOp func) {
  return eraseDeadOps(func.getBody().front());
}

namespace {
struct EraseDeadOps : tandem::impl::EraseDeadOpsBase<EraseDeadOps> {
  void runOnOperation() final { erased += eraseDeadOps(getOperation()); }
};
} // namespace
