//===- DropHostOffload.cpp - what is on the host need not go there --------===//
#include "passes/Passes.h"
#include "passes/target/Target.h"

#include "ir/Tags.h"

namespace tandem {
#define GEN_PASS_DEF_DROPHOSTOFFLOAD
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct DropHostOffload : tandem::impl::DropHostOffloadBase<DropHostOffload> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (isForCuda(module))
      return markAllAnalysesPreserved();
    Operation *first = nullptr;
    unsigned count = 0;
    for (StringRef name : {"joint", "grad_joint"})
      if (auto joint = module.lookupSymbol<func::FuncOp>(name))
        for (Operation &op : joint.getOps())
          if (op.removeAttr(kOffloadAttr)) {
            first = first ? first : &op;
            ++count;
          }
    if (!first)
      return markAllAnalysesPreserved();
    dropped += count;
    auto remark = first->emitRemark()
                  << "'" << kOffloadAttr << "' on '" << first->getName()
                  << "' says nothing: the programs' memory is the host's";
    if (count > 1)
      remark << "; nor on " << count - 1 << " more";
  }
};

} // namespace
