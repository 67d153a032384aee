//===- Shard.cpp - programs of one process as a rank runs them ------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/shard/Sharder.h"

namespace tandem {
#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct Shard : tandem::impl::ShardBase<Shard> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh)
      return markAllAnalysesPreserved();
    bool isWrong = false;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func->hasAttr(kLocalAttr))
        continue;
      if (func.getName() == "grad_joint") {
        func.emitError() << "gradients of second order are not compiled for a "
                            "mesh of ranks yet";
        isWrong = true;
        continue;
      }
      Sharder sharder(func, mesh);
      isWrong |= failed(sharder.run());
      if (isWrong)
        continue;
      // What was computed whole and is needed in pieces alone.
      eraseDeadOps(func);
      collectives += sharder.collectives();
    }
    if (isWrong)
      signalPassFailure();
  }
};

} // namespace
