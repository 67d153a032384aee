//===- SetPrecision.cpp - what is asked of products -----------------------===//
#include "passes/Passes.h"
#include "passes/target/Target.h"

#include "ir/Keys.h"
#include "ir/Ops.h"

namespace tandem {
#define GEN_PASS_DEF_SETPRECISION
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct SetPrecision : tandem::impl::SetPrecisionBase<SetPrecision> {
  void runOnOperation() final {
    getOperation().walk([](Operation *op) {
      StringRef precision = productPrecision(op);
      if (!precision.empty() && precision != "f32")
        op->setAttr(key::kPrecision,
                    StringAttr::get(op->getContext(), precision));
    });
  }
};

} // namespace
