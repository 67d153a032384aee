//===- ClearTags.cpp - what nobody reads any more -------------------------===//
#include "passes/Passes.h"

#include "ir/Tags.h"

namespace tandem {
#define GEN_PASS_DEF_CLEARTAGS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct ClearTags : tandem::impl::ClearTagsBase<ClearTags> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    bool isJoint = func.getName() == "joint" || func.getName() == "grad_joint";
    for (Operation &op : func.getOps()) {
      size_t before = op.getAttrs().size();
      op.removeAttr(kNoGradAttr);
      if (!isJoint)
        dropTags(&op);
      cleared += op.getAttrs().size() != before;
    }
  }
};

} // namespace
